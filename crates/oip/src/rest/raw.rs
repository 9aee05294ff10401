//! Requests without any JSON: the body is the one input.

use bytes::Bytes;

use super::OutputForms;
use crate::tensor::{elements, shape_from_wire};
use crate::{Failure, InferRequest, Reason, Tensor, TensorSpec};

/// Reads a body that is the content of a model's only input, which `Inference-Header-Content-Length: 0` announces.
///
/// The model says the type and the shape. With a batch dimension (`batched`) the batch is one row; one further
/// dimension may be open and then follows from the length. For BYTES the body is a single element, without its length
/// in front. The answer comes in binary form.
pub fn decode_raw(
    model: &str,
    version: &str,
    inputs: &[TensorSpec],
    batched: bool,
    body: Bytes,
) -> Result<(InferRequest, OutputForms), Failure> {
    let [spec] = inputs else {
        return Err(invalid(format!(
            "a request without JSON needs a model with one input; '{model}' has {}",
            inputs.len()
        )));
    };
    let mut shape = spec.shape.clone();
    if batched && let Some(batch) = shape.first_mut() {
        *batch = 1;
    }
    let data = match spec.datatype.size() {
        Some(size) => {
            close(&spec.name, &mut shape, body.len(), size)?;
            body
        }
        None => {
            shape.iter_mut().filter(|size| **size == -1).for_each(|size| *size = 1);
            let mut data = Vec::with_capacity(body.len() + 4);
            elements::push(&mut data, &body);
            data.into()
        }
    };
    let shape = shape_from_wire(&spec.name, &shape)?;
    let input = Tensor::new(&spec.name, spec.datatype, shape, data)?;
    let request = InferRequest {
        model: model.to_owned(),
        version: version.to_owned(),
        inputs: vec![input],
        ..InferRequest::default()
    };
    Ok((request, OutputForms { default_binary: true, ..OutputForms::default() }))
}

/// Gives the one open dimension the size that the content has.
fn close(name: &str, shape: &mut [i64], length: usize, element_size: usize) -> Result<(), Failure> {
    let mut open = shape.iter().enumerate().filter(|(_, size)| **size == -1).map(|(axis, _)| axis);
    let Some(axis) = open.next() else { return Ok(()) };
    if open.next().is_some() {
        return Err(invalid(format!(
            "input '{name}' has several dimensions of any size, {shape:?}: a request without JSON cannot say which"
        )));
    }
    let step = shape
        .iter()
        .filter(|size| **size != -1)
        .try_fold(element_size, |product, size| product.checked_mul(usize::try_from(*size).ok()?))
        .filter(|&step| step > 0 && length.is_multiple_of(step))
        .ok_or_else(|| {
            invalid(format!("{length} bytes do not fill the shape {shape:?} of input '{name}' evenly"))
        })?;
    shape[axis] = i64::try_from(length / step).unwrap_or(i64::MAX);
    Ok(())
}

fn invalid(message: String) -> Failure {
    Failure::new(Reason::Invalid, message)
}
