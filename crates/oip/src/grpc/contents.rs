//! Typed contents: a list of numbers per wire type, of which each tensor type uses one.

use bytes::Bytes;

use super::invalid;
use crate::proto::InferTensorContents;
use crate::tensor::{element_count, elements};
use crate::{DataType, Failure};

/// The binary form of typed contents.
pub(super) fn to_binary(
    name: &str,
    datatype: DataType,
    shape: &[u64],
    contents: &InferTensorContents,
) -> Result<Bytes, Failure> {
    let list = List { name, datatype, expected: element_count(name, shape)? };
    match datatype {
        DataType::Bool => {
            list.pack("bool_contents", &contents.bool_contents, |&value| Some([u8::from(value)]))
        }
        DataType::Int8 => list.pack("int_contents", &contents.int_contents, |&value| {
            i8::try_from(value).ok().map(i8::to_le_bytes)
        }),
        DataType::Int16 => list.pack("int_contents", &contents.int_contents, |&value| {
            i16::try_from(value).ok().map(i16::to_le_bytes)
        }),
        DataType::Int32 => {
            list.pack("int_contents", &contents.int_contents, |value| Some(value.to_le_bytes()))
        }
        DataType::Int64 => {
            list.pack("int64_contents", &contents.int64_contents, |value| Some(value.to_le_bytes()))
        }
        DataType::Uint8 => list.pack("uint_contents", &contents.uint_contents, |&value| {
            u8::try_from(value).ok().map(u8::to_le_bytes)
        }),
        DataType::Uint16 => list.pack("uint_contents", &contents.uint_contents, |&value| {
            u16::try_from(value).ok().map(u16::to_le_bytes)
        }),
        DataType::Uint32 => {
            list.pack("uint_contents", &contents.uint_contents, |value| Some(value.to_le_bytes()))
        }
        DataType::Uint64 => {
            list.pack("uint64_contents", &contents.uint64_contents, |value| Some(value.to_le_bytes()))
        }
        DataType::Fp32 => {
            list.pack("fp32_contents", &contents.fp32_contents, |value| Some(value.to_le_bytes()))
        }
        DataType::Fp64 => {
            list.pack("fp64_contents", &contents.fp64_contents, |value| Some(value.to_le_bytes()))
        }
        DataType::Bytes => {
            list.check_count("bytes_contents", contents.bytes_contents.len())?;
            let mut data = Vec::new();
            for element in &contents.bytes_contents {
                elements::push(&mut data, element);
            }
            Ok(data.into())
        }
        DataType::Fp16 | DataType::Bf16 => Err(invalid(format!(
            "input '{name}' has the type {}, for which there are no typed contents: send raw_input_contents",
            datatype.name()
        ))),
    }
}

struct List<'a> {
    name: &'a str,
    datatype: DataType,
    expected: u64,
}

impl List<'_> {
    /// The values one after the other; `to_bytes` says `None` for one that the type does not have.
    fn pack<T: std::fmt::Display, const N: usize>(
        &self,
        field: &str,
        values: &[T],
        to_bytes: impl Fn(&T) -> Option<[u8; N]>,
    ) -> Result<Bytes, Failure> {
        self.check_count(field, values.len())?;
        let mut data = Vec::with_capacity(values.len() * N);
        for value in values {
            let bytes = to_bytes(value).ok_or_else(|| {
                invalid(format!(
                    "input '{}': {value} is not a value of type {}",
                    self.name,
                    self.datatype.name()
                ))
            })?;
            data.extend_from_slice(&bytes);
        }
        Ok(data.into())
    }

    fn check_count(&self, field: &str, got: usize) -> Result<(), Failure> {
        if got as u64 == self.expected {
            return Ok(());
        }
        Err(invalid(format!(
            "input '{}' of type {} needs {} elements in {field}, but has {got}",
            self.name,
            self.datatype.name(),
            self.expected
        )))
    }
}
