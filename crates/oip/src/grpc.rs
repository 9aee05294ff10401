//! Inference over gRPC: between the messages and [`InferRequest`], [`InferResponse`].
//!
//! Clients send tensors as `raw_input_contents` or as typed `contents`; answers are always raw, which every client
//! reads.

mod contents;
mod room;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use bytes::Bytes;

pub use room::{infer_request_bytes, request_bytes};

use crate::proto::infer_parameter::ParameterChoice;
use crate::proto::model_infer_request::{InferInputTensor, InferRequestedOutputTensor};
use crate::proto::model_infer_response::InferOutputTensor;
use crate::proto::{InferParameter, ModelInferRequest, ModelInferResponse};
use crate::rest::{refuse_shared_memory, requested_classes};
use crate::tensor::shape_from_wire;
use crate::{DataType, Failure, InferRequest, InferResponse, Parameter, Reason, RequestedOutput, Tensor};

/// The request that a message stands for.
pub fn decode(message: ModelInferRequest) -> Result<InferRequest, Failure> {
    let inputs = decode_inputs(message.inputs, message.raw_input_contents)?;
    let outputs = message
        .outputs
        .into_iter()
        .map(|output| {
            let parameters = decode_parameters(output.parameters)?;
            refuse_shared_memory("output", &output.name, &parameters)?;
            let classes = requested_classes(&output.name, &parameters)?;
            Ok(RequestedOutput { name: output.name, classes })
        })
        .collect::<Result<_, Failure>>()?;
    let request = InferRequest {
        model: message.model_name,
        version: message.model_version,
        id: message.id,
        parameters: decode_parameters(message.parameters)?,
        inputs,
        outputs,
    };
    request.check()?;
    Ok(request)
}

/// The message that says a response.
pub fn encode(response: InferResponse) -> ModelInferResponse {
    let mut outputs = Vec::with_capacity(response.outputs.len());
    let mut raw_output_contents = Vec::with_capacity(response.outputs.len());
    for tensor in response.outputs {
        outputs.push(InferOutputTensor {
            name: tensor.name,
            datatype: tensor.datatype.name().to_owned(),
            shape: tensor.shape.into_iter().map(|size| i64::try_from(size).unwrap_or(i64::MAX)).collect(),
            ..InferOutputTensor::default()
        });
        raw_output_contents.push(tensor.data);
    }
    ModelInferResponse {
        model_name: response.model,
        model_version: response.version,
        id: response.id,
        parameters: response.parameters.into_iter().map(|(name, value)| (name, value.into())).collect(),
        outputs,
        raw_output_contents,
    }
}

/// The message that a client sends for a request.
pub fn encode_request(request: InferRequest) -> ModelInferRequest {
    let wire_shape =
        |shape: Vec<u64>| shape.into_iter().map(|size| i64::try_from(size).unwrap_or(i64::MAX)).collect();
    let mut inputs = Vec::with_capacity(request.inputs.len());
    let mut raw_input_contents = Vec::with_capacity(request.inputs.len());
    for tensor in request.inputs {
        inputs.push(InferInputTensor {
            name: tensor.name,
            datatype: tensor.datatype.name().to_owned(),
            shape: wire_shape(tensor.shape),
            ..InferInputTensor::default()
        });
        raw_input_contents.push(tensor.data);
    }
    let outputs = request.outputs.into_iter().map(|output| {
        let classes = (output.classes > 0).then(|| Parameter::Int(i64::from(output.classes)).into());
        let parameters = classes.map(|classes| ("classification".to_owned(), classes)).into_iter().collect();
        InferRequestedOutputTensor { name: output.name, parameters }
    });
    ModelInferRequest {
        model_name: request.model,
        model_version: request.version,
        id: request.id,
        parameters: request.parameters.into_iter().map(|(name, value)| (name, value.into())).collect(),
        outputs: outputs.collect(),
        inputs,
        raw_input_contents,
    }
}

fn decode_inputs(inputs: Vec<InferInputTensor>, raw: Vec<Bytes>) -> Result<Vec<Tensor>, Failure> {
    if !raw.is_empty() && raw.len() != inputs.len() {
        return Err(invalid(format!(
            "the request has {} inputs, but {} raw_input_contents: each input needs one, in the same order",
            inputs.len(),
            raw.len()
        )));
    }
    let mut raw = raw.into_iter();
    inputs.into_iter().map(|input| decode_input(input, raw.next())).collect()
}

fn decode_input(input: InferInputTensor, raw: Option<Bytes>) -> Result<Tensor, Failure> {
    let name = input.name;
    refuse_shared_memory("input", &name, &decode_parameters(input.parameters)?)?;
    let datatype = DataType::from_name(&input.datatype)
        .ok_or_else(|| invalid(format!("input '{name}' has the unknown type '{}'", input.datatype)))?;
    let shape = shape_from_wire(&name, &input.shape)?;
    let data = match (raw, input.contents) {
        (Some(raw), None) => raw,
        (None, Some(contents)) => contents::to_binary(&name, datatype, &shape, &contents)?,
        (Some(_), Some(_)) => {
            return Err(invalid(format!(
                "input '{name}' has 'contents' though the request has raw_input_contents: only one can be its content"
            )));
        }
        (None, None) => {
            return Err(invalid(format!(
                "input '{name}' has no content: give raw_input_contents or 'contents'"
            )));
        }
    };
    Ok(Tensor::new(name, datatype, shape, data)?)
}

fn decode_parameters(
    parameters: impl IntoIterator<Item = (String, InferParameter)>,
) -> Result<BTreeMap<String, Parameter>, Failure> {
    parameters
        .into_iter()
        .map(|(name, value)| match value.parameter_choice {
            Some(ParameterChoice::BoolParam(value)) => Ok((name, Parameter::Bool(value))),
            Some(ParameterChoice::Int64Param(value)) => Ok((name, Parameter::Int(value))),
            Some(ParameterChoice::StringParam(value)) => Ok((name, Parameter::String(value))),
            Some(ParameterChoice::DoubleParam(value)) => Ok((name, Parameter::Double(value))),
            Some(ParameterChoice::Uint64Param(value)) => Ok((name, Parameter::Uint(value))),
            None => Err(invalid(format!("parameter '{name}' has no value"))),
        })
        .collect()
}

impl From<Parameter> for InferParameter {
    fn from(value: Parameter) -> InferParameter {
        InferParameter {
            parameter_choice: Some(match value {
                Parameter::Bool(value) => ParameterChoice::BoolParam(value),
                Parameter::Int(value) => ParameterChoice::Int64Param(value),
                Parameter::Uint(value) => ParameterChoice::Uint64Param(value),
                Parameter::Double(value) => ParameterChoice::DoubleParam(value),
                Parameter::String(value) => ParameterChoice::StringParam(value),
            }),
        }
    }
}

fn invalid(message: String) -> Failure {
    Failure::new(Reason::Invalid, message)
}
