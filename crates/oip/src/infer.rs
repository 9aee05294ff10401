//! Inference requests and responses, independent of how they travel.

use std::collections::BTreeMap;

use crate::Tensor;

/// The value of a parameter of a request, an input or a response.
#[derive(Clone, Debug, PartialEq)]
pub enum Parameter {
    /// A truth value.
    Bool(bool),
    /// A signed integer.
    Int(i64),
    /// An unsigned integer.
    Uint(u64),
    /// A floating-point number.
    Double(f64),
    /// A string.
    String(String),
}

/// A request to run a model.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct InferRequest {
    /// The model's name.
    pub model: String,
    /// The model's version; empty for the server's choice.
    pub version: String,
    /// The client's own name for the request; comes back in the response.
    pub id: String,
    /// Parameters of the request as a whole.
    pub parameters: BTreeMap<String, Parameter>,
    /// The tensors to run on, checked: the content fits type and shape.
    pub inputs: Vec<Tensor>,
    /// The outputs wanted; empty for all.
    pub outputs: Vec<RequestedOutput>,
}

/// An output that a request asks for.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RequestedOutput {
    /// Its name.
    pub name: String,
    /// The `classification` parameter: the k most likely classes instead of the tensor; 0 for the tensor.
    pub classes: u32,
}

/// The result of a request.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct InferResponse {
    /// The model's name.
    pub model: String,
    /// The version that ran.
    pub version: String,
    /// The request's id.
    pub id: String,
    /// What happened: `downbeat_queue_us` and the like.
    pub parameters: BTreeMap<String, Parameter>,
    /// The outputs asked for, in the order asked for.
    pub outputs: Vec<Tensor>,
}
