//! Responses.

use std::collections::BTreeMap;

use bytes::Bytes;
use serde::Serialize;
use serde::ser::{Error as _, SerializeSeq, Serializer};

use super::OutputForms;
use crate::{DataType, Failure, InferResponse, Parameter, Reason, Tensor};

/// A request or a response as it is sent: the JSON, then the content of the binary tensors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Encoded {
    /// The JSON object.
    pub json: Bytes,
    /// What follows it.
    pub binary: Vec<Bytes>,
    /// The value of `Inference-Header-Content-Length`; `None` where all of the body is JSON.
    pub header_length: Option<usize>,
}

#[derive(Serialize)]
struct JsonResponse<'a> {
    #[serde(skip_serializing_if = "str::is_empty")]
    id: &'a str,
    model_name: &'a str,
    model_version: &'a str,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    parameters: &'a BTreeMap<String, Parameter>,
    outputs: Vec<JsonOutput<'a>>,
}

#[derive(Serialize)]
struct JsonOutput<'a> {
    name: &'a str,
    datatype: &'static str,
    shape: &'a [u64],
    #[serde(skip_serializing_if = "Option::is_none")]
    parameters: Option<BinarySize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<Flat<'a>>,
}

#[derive(Serialize)]
pub(super) struct BinarySize {
    pub(super) binary_data_size: usize,
}

/// Writes a response with its outputs in the forms that the request asked for. Outputs in JSON are flat arrays, as
/// Triton writes them.
pub fn encode(response: &InferResponse, forms: &OutputForms) -> Result<Encoded, Failure> {
    let mut binary = Vec::new();
    let mut outputs = Vec::with_capacity(response.outputs.len());
    for tensor in &response.outputs {
        let is_binary = forms.is_binary(&tensor.name);
        if is_binary {
            binary.push(tensor.data.clone());
        }
        outputs.push(JsonOutput {
            name: &tensor.name,
            datatype: tensor.datatype.name(),
            shape: &tensor.shape,
            parameters: is_binary.then(|| BinarySize { binary_data_size: tensor.data.len() }),
            data: (!is_binary).then_some(Flat(tensor)),
        });
    }
    let json = serde_json::to_vec(&JsonResponse {
        id: &response.id,
        model_name: &response.model,
        model_version: &response.version,
        parameters: &response.parameters,
        outputs,
    })
    .map_err(|error| Failure::new(Reason::Invalid, error.to_string()))?;
    let header_length = (!binary.is_empty()).then_some(json.len());
    Ok(Encoded { json: json.into(), binary, header_length })
}

/// All elements of a tensor as one array.
pub(super) struct Flat<'a>(pub(super) &'a Tensor);

impl Serialize for Flat<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0.datatype {
            DataType::Bool => serializer.collect_seq(self.0.data.iter().map(|&byte| byte != 0)),
            DataType::Uint8 => serializer.collect_seq(self.0.data.iter()),
            DataType::Uint16 => serializer.collect_seq(self.numbers(u16::from_le_bytes)),
            DataType::Uint32 => serializer.collect_seq(self.numbers(u32::from_le_bytes)),
            DataType::Uint64 => serializer.collect_seq(self.numbers(u64::from_le_bytes)),
            DataType::Int8 => serializer.collect_seq(self.numbers(i8::from_le_bytes)),
            DataType::Int16 => serializer.collect_seq(self.numbers(i16::from_le_bytes)),
            DataType::Int32 => serializer.collect_seq(self.numbers(i32::from_le_bytes)),
            DataType::Int64 => serializer.collect_seq(self.numbers(i64::from_le_bytes)),
            DataType::Fp32 => self.finite(serializer, f32::from_le_bytes, |value| value.is_finite()),
            DataType::Fp64 => self.finite(serializer, f64::from_le_bytes, |value| value.is_finite()),
            DataType::Bytes => self.strings(serializer),
            DataType::Fp16 | DataType::Bf16 => Err(S::Error::custom(self.advice(self.0.datatype.name()))),
        }
    }
}

impl Flat<'_> {
    fn numbers<T, const N: usize>(&self, from_bytes: fn([u8; N]) -> T) -> impl ExactSizeIterator<Item = T> {
        self.0.data.as_chunks().0.iter().map(move |&bytes| from_bytes(bytes))
    }

    fn finite<S: Serializer, T: Serialize, const N: usize>(
        &self,
        serializer: S,
        from_bytes: fn([u8; N]) -> T,
        is_finite: fn(&T) -> bool,
    ) -> Result<S::Ok, S::Error> {
        let mut array = serializer.serialize_seq(Some(self.0.data.len() / N))?;
        for value in self.numbers(from_bytes) {
            if !is_finite(&value) {
                return Err(S::Error::custom(self.advice("NaN or infinity")));
            }
            array.serialize_element(&value)?;
        }
        array.end()
    }

    fn strings<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut array = serializer.serialize_seq(None)?;
        for element in self.0.elements() {
            let text = element.ok().and_then(|bytes| std::str::from_utf8(bytes).ok());
            array.serialize_element(
                text.ok_or_else(|| S::Error::custom(self.advice("bytes that are not UTF-8")))?,
            )?;
        }
        array.end()
    }

    fn advice(&self, what: &str) -> String {
        format!(
            "output '{}' has {what}, which JSON cannot say: ask for it as binary (parameter 'binary_data': true)",
            self.0.name
        )
    }
}
