//! What is in the requests: random tensors that fit the model's metadata, or values from a file.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::path::Path;
use std::str::FromStr;

use bytes::Bytes;
use downbeat_engine::synthetic::synthetic_inputs;
use downbeat_oip::{InferRequest, Tensor, TensorSpec, rest};
use serde_json::value::RawValue;

use crate::mix::ModelLoad;

/// Different requests that are made for a model, and sent in turn.
const VARIANTS: u64 = 8;
/// Bytes of a model's requests past which no further variants are made.
const VARIANTS_BYTES: usize = 16 << 20;
/// The largest request that is made up.
const LARGEST_BYTES: u64 = 1 << 31;

/// The shape of an input, as the command line says it: `NAME:1,3,224,224`, with every dimension.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShapeSpec {
    /// The input's name.
    pub input: String,
    /// Its dimensions.
    pub shape: Vec<u64>,
}

/// How the open dimensions of inputs are chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shapes {
    /// Inputs whose shape is given.
    pub given: Vec<ShapeSpec>,
    /// The size of every open dimension of other inputs, but for the first one, which is the number of rows.
    pub open_size: u64,
}

/// Why there is nothing to send.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct InputError(pub(crate) String);

impl FromStr for ShapeSpec {
    type Err = InputError;

    fn from_str(text: &str) -> Result<ShapeSpec, InputError> {
        let wrong = || {
            InputError("say NAME:SIZE,SIZE,... with every dimension, such as image:1,3,224,224".to_owned())
        };
        let (input, sizes) =
            text.rsplit_once(':').filter(|(input, _)| !input.is_empty()).ok_or_else(wrong)?;
        let shape: Option<Vec<u64>> = sizes.split(',').map(|size| size.trim().parse().ok()).collect();
        Ok(ShapeSpec { input: input.to_owned(), shape: shape.ok_or_else(wrong)? })
    }
}

/// Requests with random content. Also says which dimensions had to be guessed.
pub(crate) fn random(
    model: &ModelLoad,
    inputs: &[TensorSpec],
    shapes: &Shapes,
    seed: u64,
) -> Result<(Vec<InferRequest>, Vec<String>), InputError> {
    let has_rows = |input: &TensorSpec| input.shape.first().is_some_and(|size| *size < 0);
    if model.rows > 1 && !inputs.iter().any(has_rows) {
        return Err(InputError(format!(
            "model '{}' has no batch dimension: its requests cannot have {} rows",
            model.name, model.rows
        )));
    }
    let mut notes = Vec::new();
    let fixed: Vec<TensorSpec> = inputs
        .iter()
        .map(|input| fix(model, input, shapes, &mut notes))
        .collect::<Result<_, InputError>>()?;
    let mut requests = Vec::new();
    let mut bytes = 0;
    for variant in 0..VARIANTS {
        if bytes > VARIANTS_BYTES {
            break;
        }
        let tensors = synthetic_inputs(&fixed, model.rows, shapes.open_size, seed.wrapping_add(variant));
        bytes += tensors.iter().map(|tensor| tensor.data.len()).sum::<usize>();
        requests.push(request(model, tensors));
    }
    Ok((requests, notes))
}

/// The input with every dimension fixed.
fn fix(
    model: &ModelLoad,
    input: &TensorSpec,
    shapes: &Shapes,
    notes: &mut Vec<String>,
) -> Result<TensorSpec, InputError> {
    let wrong = |what: String| InputError(format!("model '{}', input '{}': {what}", model.name, input.name));
    let declared = &input.shape;
    let shape = match shapes.given.iter().find(|spec| spec.input == input.name) {
        Some(spec) => {
            let fits = spec.shape.len() == declared.len()
                && spec
                    .shape
                    .iter()
                    .zip(declared)
                    .all(|(&size, &allowed)| allowed < 0 || allowed as u64 == size);
            if !fits {
                return Err(wrong(format!("the shape {:?} does not fit {declared:?}", spec.shape)));
            }
            spec.shape.clone()
        }
        None => {
            if declared.iter().skip(1).any(|size| *size < 0) {
                notes.push(format!(
                    "input '{}' of model '{}' has the shape {declared:?}: its open dimensions are taken as {}; \
                     --shape or --dim says otherwise",
                    input.name, model.name, shapes.open_size
                ));
            }
            let size = |(axis, &size): (usize, &i64)| match (axis, u64::try_from(size)) {
                (_, Ok(size)) => size,
                (0, Err(_)) => u64::from(model.rows),
                (_, Err(_)) => shapes.open_size,
            };
            declared.iter().enumerate().map(size).collect()
        }
    };
    let width = input.datatype.size().unwrap_or(12) as u64;
    shape
        .iter()
        .try_fold(width, |product, size| product.checked_mul(*size))
        .filter(|bytes| *bytes <= LARGEST_BYTES)
        .ok_or_else(|| wrong(format!("a tensor of shape {shape:?} is too large to be sent")))?;
    let shape = shape.into_iter().map(|size| size as i64).collect();
    Ok(TensorSpec { shape, ..input.clone() })
}

/// The requests in a JSON file: one, or an array of them, each as the REST protocol has it.
pub(crate) fn from_file(model: &ModelLoad, file: &Path) -> Result<Vec<InferRequest>, InputError> {
    let wrong = |what: String| InputError(format!("{}: {what}", file.display()));
    let text = std::fs::read_to_string(file).map_err(|error| wrong(format!("cannot be read: {error}")))?;
    let bodies: Vec<&RawValue> = if text.trim_start().starts_with('[') {
        serde_json::from_str(&text).map_err(|error| wrong(error.to_string()))?
    } else {
        vec![serde_json::from_str(&text).map_err(|error| wrong(error.to_string()))?]
    };
    if bodies.is_empty() {
        return Err(wrong("there is no request in it".to_owned()));
    }
    let read = |(number, body): (usize, &&RawValue)| {
        let body = Bytes::copy_from_slice(body.get().as_bytes());
        let (read, _) = rest::decode(&model.name, &model.version, None, &body)
            .map_err(|failure| wrong(format!("request {}: {failure}", number + 1)))?;
        let mut request = request(model, read.inputs);
        request.outputs = read.outputs;
        let mut parameters = read.parameters;
        parameters.append(&mut request.parameters);
        Ok(InferRequest { parameters, ..request })
    };
    bodies.iter().enumerate().map(read).collect()
}

/// A request of these inputs, with what the model's requests say beside them.
fn request(model: &ModelLoad, inputs: Vec<Tensor>) -> InferRequest {
    let mut parameters = BTreeMap::new();
    let mut set = |name: &str, value: u64| {
        let value = downbeat_oip::Parameter::Int(i64::try_from(value).unwrap_or(i64::MAX));
        parameters.insert(name.to_owned(), value);
    };
    if let Some(timeout) = model.timeout {
        set("timeout", timeout.as_micros() as u64);
    }
    if let Some(priority) = model.priority {
        set("priority", priority);
    }
    InferRequest {
        model: model.name.clone(),
        version: model.version.clone(),
        parameters,
        inputs,
        ..InferRequest::default()
    }
}
