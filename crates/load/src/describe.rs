//! What the server says of itself and of its models.

use downbeat_oip::proto::{ModelMetadataRequest, ModelMetadataResponse};
use downbeat_oip::{DataType, TensorSpec};
use serde::Deserialize;

use crate::LoadError;
use crate::connections::Connections;
use crate::mix::ModelLoad;
use crate::target::{Protocol, Target};
use crate::wire::{Letter, Reply, model_path};

#[derive(Deserialize)]
struct ServerJson {
    #[serde(default)]
    extensions: Vec<String>,
}

#[derive(Deserialize)]
struct ModelJson {
    #[serde(default)]
    inputs: Vec<InputJson>,
}

#[derive(Deserialize)]
struct InputJson {
    name: String,
    datatype: String,
    shape: Vec<i64>,
}

/// Whether the server takes tensors in binary form over HTTP, which is an extension of the protocol.
pub(crate) async fn takes_binary(target: &Target, connections: &Connections) -> Result<bool, LoadError> {
    let letter = Letter::get(target, "/v2").map_err(LoadError::Letter)?;
    let reply = connections.exchange(&letter, || ()).await?;
    let json = serde_json::from_slice::<ServerJson>(&reply.body);
    Ok(json.is_ok_and(|server| server.extensions.iter().any(|name| name == "binary_tensor_data")))
}

/// The inputs of a model.
pub(crate) async fn inputs(
    target: &Target,
    connections: &Connections,
    model: &ModelLoad,
) -> Result<Vec<TensorSpec>, LoadError> {
    let letter = match target.protocol {
        Protocol::Http => Letter::get(target, &model_path(&model.name, &model.version)),
        Protocol::Grpc => {
            let request = ModelMetadataRequest { name: model.name.clone(), version: model.version.clone() };
            Letter::call(target, "ModelMetadata", &request)
        }
    };
    let reply = connections.exchange(&letter.map_err(LoadError::Letter)?, || ()).await?;
    let failed = |message: String| LoadError::Metadata { model: model.name.clone(), message };
    if let Some((_, message)) = reply.refusal(target.protocol) {
        return Err(failed(message));
    }
    let inputs = read(target.protocol, &reply).map_err(failed)?;
    if inputs.is_empty() {
        return Err(failed("the server names no inputs: give requests with --data FILE".to_owned()));
    }
    let spec = |input: InputJson| {
        let datatype = DataType::from_name(&input.datatype).ok_or_else(|| {
            failed(format!("input '{}' has the unknown type '{}'", input.name, input.datatype))
        })?;
        Ok(TensorSpec { name: input.name, datatype, shape: input.shape })
    };
    inputs.into_iter().map(spec).collect()
}

fn read(protocol: Protocol, reply: &Reply) -> Result<Vec<InputJson>, String> {
    match protocol {
        Protocol::Http => {
            let model: ModelJson = serde_json::from_slice(&reply.body)
                .map_err(|error| format!("what the server says of it makes no sense: {error}"))?;
            Ok(model.inputs)
        }
        Protocol::Grpc => {
            let model: ModelMetadataResponse = reply.message()?;
            let input = model.inputs.into_iter();
            Ok(input.map(|i| InputJson { name: i.name, datatype: i.datatype, shape: i.shape }).collect())
        }
    }
}
