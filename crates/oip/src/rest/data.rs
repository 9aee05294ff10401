//! The `data` of a tensor in JSON: nested or flat arrays, read straight into the binary form.
//!
//! Nesting is not compared with the shape; the number of elements is. (Triton does the same.) Elements come from JSON
//! that was found well-formed before, so that finding their ends is all the parsing there is: no recursion, no value
//! built per element.

use std::borrow::Cow;
use std::str::FromStr;

use bytes::Bytes;

use super::skim::string_length;
use crate::tensor::elements;
use crate::{DataType, Failure, Reason};

/// A tensor that is about to be read.
pub(super) struct Target<'a> {
    pub(super) name: &'a str,
    pub(super) datatype: DataType,
    pub(super) shape: &'a [u64],
    /// The number of elements of that shape.
    pub(super) count: u64,
}

impl Target<'_> {
    /// The most that the content of the tensor can take: no shape makes this more than the request's own size allows.
    pub(super) fn bytes_max(&self, json: &str) -> u64 {
        // A leaf and its comma take two characters.
        let count = self.count.min(json.len() as u64 / 2 + 1);
        match self.datatype.size() {
            Some(size) => count.saturating_mul(size as u64),
            // The length of each, and what they say.
            None => count * 4 + json.len() as u64,
        }
    }

    /// The content of the tensor. `json` must be well-formed JSON.
    pub(super) fn read(&self, json: &str) -> Result<Bytes, Failure> {
        if !json.starts_with('[') {
            return Err(self.invalid("'data' must be an array"));
        }
        match self.datatype {
            DataType::Bool => self.read_each(json, |leaf, out| {
                out.push(u8::from(leaf.parse::<bool>().ok()?));
                Some(())
            }),
            DataType::Uint8 => self.read_numbers(json, u8::to_le_bytes),
            DataType::Uint16 => self.read_numbers(json, u16::to_le_bytes),
            DataType::Uint32 => self.read_numbers(json, u32::to_le_bytes),
            DataType::Uint64 => self.read_numbers(json, u64::to_le_bytes),
            DataType::Int8 => self.read_numbers(json, i8::to_le_bytes),
            DataType::Int16 => self.read_numbers(json, i16::to_le_bytes),
            DataType::Int32 => self.read_numbers(json, i32::to_le_bytes),
            DataType::Int64 => self.read_numbers(json, i64::to_le_bytes),
            DataType::Fp32 => self.read_each(json, |leaf, out| {
                let value = leaf.parse().ok().filter(|value: &f32| value.is_finite())?;
                out.extend_from_slice(&value.to_le_bytes());
                Some(())
            }),
            DataType::Fp64 => self.read_each(json, |leaf, out| {
                let value = leaf.parse().ok().filter(|value: &f64| value.is_finite())?;
                out.extend_from_slice(&value.to_le_bytes());
                Some(())
            }),
            DataType::Bytes => self.read_each(json, |leaf, out| {
                elements::push(out, unquote(leaf)?.as_bytes());
                Some(())
            }),
            DataType::Fp16 | DataType::Bf16 => Err(self.invalid(&format!(
                "{} cannot be sent as JSON: send it as binary ('binary_data_size')",
                self.datatype.name()
            ))),
        }
    }

    fn read_numbers<T: FromStr, const N: usize>(
        &self,
        json: &str,
        to_bytes: fn(T) -> [u8; N],
    ) -> Result<Bytes, Failure> {
        self.read_each(json, |leaf, out| {
            out.extend_from_slice(&to_bytes(leaf.parse().ok()?));
            Some(())
        })
    }

    /// Appends each leaf with `append`, which says `None` where the leaf is not a value of the type.
    fn read_each(
        &self,
        json: &str,
        mut append: impl FnMut(&str, &mut Vec<u8>) -> Option<()>,
    ) -> Result<Bytes, Failure> {
        let mut content = Vec::with_capacity(usize::try_from(self.bytes_max(json)).unwrap_or(usize::MAX));
        let mut leaves = Leaves { json, at: 0, depth: 0, deepest: 0 };
        let mut got = 0;
        for leaf in &mut leaves {
            if append(leaf, &mut content).is_none() {
                return Err(self.invalid(&format!(
                    "element {got} is not a value of type {}: {}",
                    self.datatype.name(),
                    shortened(leaf)
                )));
            }
            got += 1;
        }
        if leaves.deepest > self.shape.len().max(1) {
            return Err(self.invalid(&format!("'data' is nested deeper than the shape {:?}", self.shape)));
        }
        if got != self.count {
            return Err(self.invalid(&format!(
                "the shape {:?} needs {} elements, but 'data' has {got}",
                self.shape, self.count
            )));
        }
        content.shrink_to_fit();
        Ok(content.into())
    }

    fn invalid(&self, what: &str) -> Failure {
        Failure::new(Reason::Invalid, format!("input '{}': {what}", self.name))
    }
}

/// The values inside arrays inside arrays, in order, as they are written.
struct Leaves<'a> {
    json: &'a str,
    at: usize,
    depth: usize,
    deepest: usize,
}

impl<'a> Iterator for Leaves<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        let bytes = self.json.as_bytes();
        loop {
            match *bytes.get(self.at)? {
                b'[' => {
                    self.depth += 1;
                    self.deepest = self.deepest.max(self.depth);
                }
                b']' => self.depth = self.depth.saturating_sub(1),
                b',' | b' ' | b'\t' | b'\n' | b'\r' => {}
                _ => break,
            }
            self.at += 1;
        }
        let start = self.at;
        self.at += match bytes[start] {
            b'"' => string_length(&bytes[start..]),
            _ => bytes[start..]
                .iter()
                .position(|byte| matches!(byte, b',' | b']' | b' ' | b'\t' | b'\n' | b'\r'))
                .unwrap_or(bytes.len() - start),
        };
        Some(&self.json[start..self.at])
    }
}

/// What a JSON string says.
fn unquote(leaf: &str) -> Option<Cow<'_, str>> {
    let inner = leaf.strip_prefix('"')?.strip_suffix('"')?;
    if inner.contains('\\') {
        serde_json::from_str(leaf).ok().map(Cow::Owned)
    } else {
        Some(Cow::Borrowed(inner))
    }
}

/// Enough of a value to find it by.
fn shortened(leaf: &str) -> Cow<'_, str> {
    const LONGEST: usize = 40;
    match leaf.char_indices().nth(LONGEST) {
        Some((end, _)) => Cow::Owned(format!("{}…", &leaf[..end])),
        None => Cow::Borrowed(leaf),
    }
}
