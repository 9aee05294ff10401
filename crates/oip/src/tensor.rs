//! Tensors as they travel.

pub(crate) mod elements;
mod rows;
#[cfg(test)]
mod tests;

use bytes::Bytes;

pub use elements::{Elements, Truncated};

use crate::{DataType, Failure, Reason};

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

/// Why a tensor makes no sense.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TensorError {
    /// A dimension below zero.
    #[error("tensor '{tensor}' has a negative dimension in its shape {shape:?}")]
    NegativeDimension {
        /// The tensor's name.
        tensor: String,
        /// The shape as it was sent.
        shape: Vec<i64>,
    },
    /// More elements than can be counted.
    #[error("tensor '{tensor}' has a shape that no memory can hold: {shape:?}")]
    Overflow {
        /// The tensor's name.
        tensor: String,
        /// Its shape.
        shape: Vec<u64>,
    },
    /// The content is too short or too long.
    #[error("tensor '{tensor}' of type {} and shape {shape:?} needs {expected} bytes, but has {got}", datatype.name())]
    WrongLength {
        /// The tensor's name.
        tensor: String,
        /// Its type.
        datatype: DataType,
        /// Its shape.
        shape: Vec<u64>,
        /// The bytes that type and shape ask for.
        expected: u64,
        /// The bytes there are.
        got: usize,
    },
    /// The content has another number of elements than the shape.
    #[error("tensor '{tensor}' of shape {shape:?} needs {expected} elements, but has {got}")]
    WrongCount {
        /// The tensor's name.
        tensor: String,
        /// Its shape.
        shape: Vec<u64>,
        /// The elements that the shape asks for.
        expected: u64,
        /// The elements there are.
        got: u64,
    },
    /// The content of a BYTES tensor ends inside an element.
    #[error(
        "tensor '{tensor}' of type BYTES ends inside element {element}: each needs its length (4 bytes) and its bytes"
    )]
    Truncated {
        /// The tensor's name.
        tensor: String,
        /// The index of the element that is cut off.
        element: u64,
    },
    /// An element of a BOOL tensor is no truth value.
    #[error("tensor '{tensor}' of type BOOL has a byte {byte} at {element}: 0 and 1 are all there is")]
    NotBool {
        /// The tensor's name.
        tensor: String,
        /// The index of the element.
        element: usize,
        /// What is there.
        byte: u8,
    },
    /// Rows were asked for that the tensor does not have.
    #[error("tensor '{tensor}' of shape {shape:?} does not have {rows} rows")]
    NoSuchRows {
        /// The tensor's name.
        tensor: String,
        /// Its shape.
        shape: Vec<u64>,
        /// The rows that it would need.
        rows: u64,
    },
}

impl From<TensorError> for Failure {
    fn from(error: TensorError) -> Failure {
        Failure::new(Reason::Invalid, error.to_string())
    }
}

impl Tensor {
    /// A tensor whose content fits its type and shape.
    pub fn new(
        name: impl Into<String>,
        datatype: DataType,
        shape: Vec<u64>,
        data: Bytes,
    ) -> Result<Tensor, TensorError> {
        let tensor = Tensor { name: name.into(), datatype, shape, data };
        tensor.check()?;
        Ok(tensor)
    }

    /// A BYTES tensor of these elements.
    pub fn from_elements<E: AsRef<[u8]>>(
        name: impl Into<String>,
        shape: Vec<u64>,
        elements: impl IntoIterator<Item = E>,
    ) -> Result<Tensor, TensorError> {
        let mut data = Vec::new();
        for element in elements {
            elements::push(&mut data, element.as_ref());
        }
        Tensor::new(name, DataType::Bytes, shape, data.into())
    }

    /// Whether the content fits type and shape.
    pub fn check(&self) -> Result<(), TensorError> {
        let expected = element_count(&self.name, &self.shape)?;
        let Some(size) = self.datatype.size() else { return self.check_elements(expected) };
        let expected = expected.checked_mul(size as u64).ok_or_else(|| self.overflow())?;
        if expected == self.data.len() as u64 {
            return self.check_bools();
        }
        Err(TensorError::WrongLength {
            tensor: self.name.clone(),
            datatype: self.datatype,
            shape: self.shape.clone(),
            expected,
            got: self.data.len(),
        })
    }

    /// The elements of a BYTES tensor.
    pub fn elements(&self) -> Elements<'_> {
        Elements::new(&self.data)
    }

    /// Engines take the bytes for truth values as they are, and for most languages another byte is none.
    fn check_bools(&self) -> Result<(), TensorError> {
        if self.datatype == DataType::Bool
            && let Some(element) = self.data.iter().position(|&byte| byte > 1)
        {
            return Err(TensorError::NotBool {
                tensor: self.name.clone(),
                element,
                byte: self.data[element],
            });
        }
        Ok(())
    }

    fn check_elements(&self, expected: u64) -> Result<(), TensorError> {
        let mut got = 0;
        for element in self.elements() {
            if element.is_err() {
                return Err(TensorError::Truncated { tensor: self.name.clone(), element: got });
            }
            got += 1;
        }
        if got == expected {
            return Ok(());
        }
        Err(TensorError::WrongCount { tensor: self.name.clone(), shape: self.shape.clone(), expected, got })
    }

    fn overflow(&self) -> TensorError {
        TensorError::Overflow { tensor: self.name.clone(), shape: self.shape.clone() }
    }
}

/// The number of elements of a shape. A zero does not excuse the other dimensions: whoever leaves it out of a product
/// must not overflow either.
pub(crate) fn element_count(tensor: &str, shape: &[u64]) -> Result<u64, TensorError> {
    let product = shape
        .iter()
        .filter(|&&dimension| dimension != 0)
        .try_fold(1u64, |product, &dimension| product.checked_mul(dimension))
        .filter(|&product| i64::try_from(product).is_ok())
        .ok_or_else(|| TensorError::Overflow { tensor: tensor.to_owned(), shape: shape.to_vec() })?;
    Ok(if shape.contains(&0) { 0 } else { product })
}

/// A shape as the wire has it, with signed dimensions.
pub(crate) fn shape_from_wire(tensor: &str, shape: &[i64]) -> Result<Vec<u64>, TensorError> {
    shape
        .iter()
        .map(|&dimension| u64::try_from(dimension).ok())
        .collect::<Option<_>>()
        .ok_or_else(|| TensorError::NegativeDimension { tensor: tensor.to_owned(), shape: shape.to_vec() })
}
