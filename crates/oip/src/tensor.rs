//! Tensors as they travel.

use bytes::Bytes;

use crate::DataType;

/// A tensor with its content in the protocol's binary form: little-endian, row-major; each element of
/// [`DataType::Bytes`] is preceded by its length as 32 bits. That is the form in which clients send it, workers get it
/// and engines read it, so that nothing in between needs to look inside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tensor {
    /// Its name.
    pub name: String,
    /// The type of its elements.
    pub datatype: DataType,
    /// Its dimensions. The number of elements is their product; 1 for a scalar.
    pub shape: Vec<u64>,
    /// Its content.
    pub data: Bytes,
}

/// What a model declares of an input or output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TensorSpec {
    /// Its name.
    pub name: String,
    /// The type of its elements.
    pub datatype: DataType,
    /// Its dimensions with the batch dimension, where the model has one, in front; -1 where any size is allowed.
    pub shape: Vec<i64>,
}
