mod forms;
mod hostile;
mod raw;
mod round_trip;

use bytes::Bytes;

use super::*;
use crate::{DataType, Failure, InferRequest, Reason, Tensor};

fn json(body: &str) -> Result<(InferRequest, OutputForms), Failure> {
    decode("m", "", None, &Bytes::copy_from_slice(body.as_bytes()))
}

/// A request with one input whose content is in the JSON.
fn one_input(datatype: &str, shape: &str, data: &str) -> Result<Tensor, Failure> {
    let body =
        format!(r#"{{"inputs":[{{"name":"x","shape":{shape},"datatype":"{datatype}","data":{data}}}]}}"#);
    json(&body).map(|(mut request, _)| request.inputs.remove(0))
}

/// JSON with what follows it.
fn with_binary(header: &str, binary: &[u8]) -> Result<(InferRequest, OutputForms), Failure> {
    decode("m", "", Some(header.len()), &Bytes::from([header.as_bytes(), binary].concat()))
}

fn refusal<T: std::fmt::Debug>(result: Result<T, Failure>) -> String {
    let failure = result.unwrap_err();
    assert_eq!(failure.reason, Reason::Invalid, "{failure}");
    failure.message
}
