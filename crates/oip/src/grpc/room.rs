//! How much memory a message takes once it is read, known before.
//!
//! On the wire a message is a list of fields, and two bytes can stand for an empty tensor of hundreds: what is read is
//! added up from the fields, without reading them.

#[cfg(test)]
mod tests;

use std::mem::size_of;

use super::invalid;
use crate::Failure;
use crate::proto::model_infer_request::{InferInputTensor, InferRequestedOutputTensor};

/// An entry of a map: twice what it takes, because maps and lists grow by doubling.
const ENTRY_BYTES: u64 = 256;

/// The most that a `ModelInferRequest` takes beside the bytes it came in, until it is a request. Tensors in
/// `raw_input_contents` stay where they are. Fails where the message is none.
pub fn infer_request_bytes(message: &[u8]) -> Result<u64, Failure> {
    let mut total = 0;
    for field in Fields(message) {
        total += match field? {
            (4, Value::Bytes(entry)) => ENTRY_BYTES + entry.len() as u64,
            (5, Value::Bytes(input)) => 2 * size_of::<InferInputTensor>() as u64 + input_bytes(input)?,
            (6, Value::Bytes(output)) => {
                let entries = Fields(output).count() as u64 * ENTRY_BYTES;
                2 * size_of::<InferRequestedOutputTensor>() as u64 + entries + output.len() as u64
            }
            (7, Value::Bytes(_)) => 2 * size_of::<bytes::Bytes>() as u64,
            (_, Value::Bytes(text)) => text.len() as u64,
            _ => 0,
        };
    }
    Ok(total)
}

/// The most that any other request takes: strings and maps.
pub fn request_bytes(message: &[u8]) -> Result<u64, Failure> {
    let mut total = message.len() as u64;
    for field in Fields(message) {
        field?;
        total += ENTRY_BYTES;
    }
    Ok(total)
}

fn input_bytes(input: &[u8]) -> Result<u64, Failure> {
    let mut total = 0;
    for field in Fields(input) {
        total += match field? {
            // Read as signed, kept as unsigned: twice.
            (3, value) => 4 * 8 * value.varints(),
            (4, Value::Bytes(entry)) => ENTRY_BYTES + entry.len() as u64,
            (5, Value::Bytes(contents)) => contents_bytes(contents)?,
            (_, Value::Bytes(text)) => text.len() as u64,
            _ => 0,
        };
    }
    Ok(total)
}

/// A list that may grow by doubling, and the tensor that is made of it.
fn contents_bytes(contents: &[u8]) -> Result<u64, Failure> {
    let mut total = 0;
    for field in Fields(contents) {
        total += match field? {
            (1, value) => 3 * value.varints(),
            (2 | 4, value) => 3 * 4 * value.varints(),
            (3 | 5, value) => 3 * 8 * value.varints(),
            (6 | 7, Value::Fixed(length)) => 3 * length as u64,
            (6 | 7, Value::Bytes(packed)) => 3 * packed.len() as u64,
            (8, Value::Bytes(element)) => 2 * size_of::<Vec<u8>>() as u64 + 32 + 2 * element.len() as u64,
            _ => 0,
        };
    }
    Ok(total)
}

/// The fields of a message, with their numbers.
struct Fields<'a>(&'a [u8]);

/// The value of a field.
enum Value<'a> {
    Varint,
    /// So many bytes.
    Fixed(usize),
    /// A string, bytes, a message, or several numbers.
    Bytes(&'a [u8]),
}

impl Value<'_> {
    /// How many integers this is: one, or as many as end in it.
    fn varints(&self) -> u64 {
        match self {
            Value::Bytes(packed) => packed.iter().filter(|&&byte| byte < 0x80).count() as u64,
            Value::Varint | Value::Fixed(_) => 1,
        }
    }
}

impl<'a> Fields<'a> {
    fn field(&mut self) -> Option<(u64, Value<'a>)> {
        let tag = self.varint()?;
        let value = match tag & 7 {
            0 => {
                self.varint()?;
                Value::Varint
            }
            1 => Value::Fixed(self.take(8)?.len()),
            2 => {
                let length = self.varint()?;
                Value::Bytes(self.take(usize::try_from(length).ok()?)?)
            }
            5 => Value::Fixed(self.take(4)?.len()),
            // Groups, which no message here has.
            _ => return None,
        };
        Some((tag >> 3, value))
    }

    fn varint(&mut self) -> Option<u64> {
        let mut value = 0;
        for shift in 0..10 {
            let byte = self.take(1)?[0];
            value |= u64::from(byte & 0x7f) << (7 * shift);
            if byte < 0x80 {
                return Some(value);
            }
        }
        None
    }

    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = Result<(u64, Value<'a>), Failure>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let field = self.field();
        if field.is_none() {
            self.0 = &[];
        }
        Some(field.ok_or_else(|| invalid("the message is not a protobuf message of this call".to_owned())))
    }
}
