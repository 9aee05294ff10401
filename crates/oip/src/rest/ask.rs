//! Requests as a client writes them.

use std::collections::BTreeMap;

use serde::Serialize;

use super::Encoded;
use super::response::{BinarySize, Flat};
use crate::{Failure, InferRequest, Parameter, Reason};

const NOT_JSON: &str = "an input has values that JSON cannot say (FP16, BF16, NaN, infinity, bytes that are not UTF-8): \
                        send it in binary form";

#[derive(Serialize)]
struct JsonRequest<'a> {
    #[serde(skip_serializing_if = "str::is_empty")]
    id: &'a str,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    parameters: BTreeMap<&'a str, &'a Parameter>,
    inputs: Vec<JsonInput<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    outputs: Vec<JsonOutput<'a>>,
}

#[derive(Serialize)]
struct JsonInput<'a> {
    name: &'a str,
    shape: &'a [u64],
    datatype: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    parameters: Option<BinarySize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<Flat<'a>>,
}

#[derive(Serialize)]
struct JsonOutput<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    parameters: Option<Classes>,
}

#[derive(Serialize)]
struct Classes {
    classification: u32,
}

/// Writes a request. With `binary`, which is an extension of the protocol, inputs follow the JSON in binary form and
/// all outputs are asked for in it; without, everything is JSON, and what JSON cannot say fails.
pub fn encode_request(request: &InferRequest, binary: bool) -> Result<Encoded, Failure> {
    let all_binary = Parameter::Bool(true);
    let mut parameters: BTreeMap<&str, &Parameter> =
        request.parameters.iter().map(|(name, value)| (name.as_str(), value)).collect();
    if binary {
        parameters.insert("binary_data_output", &all_binary);
    }
    let inputs = request.inputs.iter().map(|tensor| JsonInput {
        name: &tensor.name,
        shape: &tensor.shape,
        datatype: tensor.datatype.name(),
        parameters: binary.then_some(BinarySize { binary_data_size: tensor.data.len() }),
        data: (!binary).then_some(Flat(tensor)),
    });
    let outputs = request.outputs.iter().map(|output| JsonOutput {
        name: &output.name,
        parameters: (output.classes > 0).then_some(Classes { classification: output.classes }),
    });
    let json = serde_json::to_vec(&JsonRequest {
        id: &request.id,
        parameters,
        inputs: inputs.collect(),
        outputs: outputs.collect(),
    })
    .map_err(|_| Failure::new(Reason::Invalid, NOT_JSON))?;
    let tail =
        if binary { request.inputs.iter().map(|input| input.data.clone()).collect() } else { Vec::new() };
    Ok(Encoded { header_length: binary.then_some(json.len()), json: json.into(), binary: tail })
}
