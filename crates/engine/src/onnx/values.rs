//! Tensors of the protocol as values of ONNX Runtime, and back.
//!
//! In: numbers that are aligned in memory are lent to the runtime as they are, others are copied once. Out: one copy.

use std::fmt::Debug;

use bytemuck::{NoUninit, Pod};
use bytes::{BufMut, Bytes};
use downbeat_oip::{DataType, Tensor};
use half::{bf16, f16};
use ort::session::SessionInputValue;
use ort::value::{DynValue, PrimitiveTensorElementType, TensorElementType, TensorRef, Value};

use crate::EngineError;

#[cfg(target_endian = "big")]
compile_error!("tensors travel little-endian and are lent to the runtime as they are");

/// The protocol's type for a type of the runtime; `None` where the protocol has none.
pub(super) fn datatype_of(element: TensorElementType) -> Option<DataType> {
    Some(match element {
        TensorElementType::Bool => DataType::Bool,
        TensorElementType::Uint8 => DataType::Uint8,
        TensorElementType::Uint16 => DataType::Uint16,
        TensorElementType::Uint32 => DataType::Uint32,
        TensorElementType::Uint64 => DataType::Uint64,
        TensorElementType::Int8 => DataType::Int8,
        TensorElementType::Int16 => DataType::Int16,
        TensorElementType::Int32 => DataType::Int32,
        TensorElementType::Int64 => DataType::Int64,
        TensorElementType::Float16 => DataType::Fp16,
        TensorElementType::Float32 => DataType::Fp32,
        TensorElementType::Float64 => DataType::Fp64,
        TensorElementType::Bfloat16 => DataType::Bf16,
        TensorElementType::String => DataType::Bytes,
        _ => return None,
    })
}

/// A tensor as an input of the runtime.
pub(super) fn to_runtime(tensor: &Tensor) -> Result<SessionInputValue<'_>, EngineError> {
    let shape = runtime_shape(tensor)?;
    match tensor.datatype {
        DataType::Bool => bools(tensor, shape),
        DataType::Uint8 => numbers::<u8>(tensor, shape),
        DataType::Uint16 => numbers::<u16>(tensor, shape),
        DataType::Uint32 => numbers::<u32>(tensor, shape),
        DataType::Uint64 => numbers::<u64>(tensor, shape),
        DataType::Int8 => numbers::<i8>(tensor, shape),
        DataType::Int16 => numbers::<i16>(tensor, shape),
        DataType::Int32 => numbers::<i32>(tensor, shape),
        DataType::Int64 => numbers::<i64>(tensor, shape),
        DataType::Fp16 => numbers::<f16>(tensor, shape),
        DataType::Fp32 => numbers::<f32>(tensor, shape),
        DataType::Fp64 => numbers::<f64>(tensor, shape),
        DataType::Bf16 => numbers::<bf16>(tensor, shape),
        DataType::Bytes => text(tensor, shape),
    }
}

/// An output of the runtime as a tensor.
pub(super) fn from_runtime(name: &str, value: &DynValue) -> Result<Tensor, EngineError> {
    let unreadable = |error: ort::Error| EngineError(format!("the output {name:?} cannot be read: {error}"));
    let datatype = value.dtype().tensor_type().and_then(datatype_of).ok_or_else(|| {
        EngineError(format!("the output {name:?} is a {}, which cannot be sent", value.dtype()))
    })?;
    let data = match datatype {
        DataType::Bool => copy_of::<bool>(value),
        DataType::Uint8 => copy_of::<u8>(value),
        DataType::Uint16 => copy_of::<u16>(value),
        DataType::Uint32 => copy_of::<u32>(value),
        DataType::Uint64 => copy_of::<u64>(value),
        DataType::Int8 => copy_of::<i8>(value),
        DataType::Int16 => copy_of::<i16>(value),
        DataType::Int32 => copy_of::<i32>(value),
        DataType::Int64 => copy_of::<i64>(value),
        DataType::Fp16 => copy_of::<f16>(value),
        DataType::Fp32 => copy_of::<f32>(value),
        DataType::Fp64 => copy_of::<f64>(value),
        DataType::Bf16 => copy_of::<bf16>(value),
        DataType::Bytes => strings_of(value),
    };
    let shape = value.dtype().tensor_shape().into_iter().flat_map(|shape| shape.iter());
    let shape = shape.map(|&size| u64::try_from(size).unwrap_or(0)).collect();
    Ok(Tensor { name: name.to_owned(), datatype, shape, data: data.map_err(unreadable)? })
}

/// Whether every string of a tensor can be given to the runtime, whose strings are text without NUL: for frontends to
/// ask before a request joins a batch, because a batch fails as a whole. Tensors of numbers always pass.
pub fn check_strings(tensor: &Tensor) -> Result<(), EngineError> {
    if tensor.datatype == DataType::Bytes { strings(tensor).map(|_| ()) } else { Ok(()) }
}

fn numbers<T>(tensor: &Tensor, shape: Vec<i64>) -> Result<SessionInputValue<'_>, EngineError>
where
    T: Pod + PrimitiveTensorElementType + Debug,
{
    match bytemuck::try_cast_slice::<u8, T>(&tensor.data) {
        Ok(aligned) => TensorRef::from_array_view((shape, aligned)).map(Into::into),
        Err(_) => {
            let copy: Vec<T> = bytemuck::allocation::pod_collect_to_vec(&tensor.data);
            Value::from_array((shape, copy)).map(Into::into)
        }
    }
    .map_err(|error| refused(tensor, &error))
}

/// Any byte but 0 is true, where Rust and the runtime know only 1.
fn bools(tensor: &Tensor, shape: Vec<i64>) -> Result<SessionInputValue<'_>, EngineError> {
    let bools: Vec<bool> = tensor.data.iter().map(|&byte| byte != 0).collect();
    Value::from_array((shape, bools)).map(Into::into).map_err(|error| refused(tensor, &error))
}

fn text(tensor: &Tensor, shape: Vec<i64>) -> Result<SessionInputValue<'_>, EngineError> {
    let strings: Vec<String> = strings(tensor)?.into_iter().map(str::to_owned).collect();
    Value::from_string_array((shape, strings.as_slice()))
        .map(Into::into)
        .map_err(|error| refused(tensor, &error))
}

fn refused(tensor: &Tensor, error: &ort::Error) -> EngineError {
    EngineError(format!("the input {:?} cannot be given to the model: {error}", tensor.name))
}

/// The elements of a tensor of strings.
fn strings(tensor: &Tensor) -> Result<Vec<&str>, EngineError> {
    let wrong = |index: usize, what: &str| {
        EngineError(format!("element {index} of the input {:?} {what}", tensor.name))
    };
    let mut strings = Vec::new();
    let mut rest = &tensor.data[..];
    while !rest.is_empty() {
        let index = strings.len();
        let element = rest
            .split_first_chunk()
            .and_then(|(length, rest)| rest.split_at_checked(u32::from_le_bytes(*length) as usize));
        let (element, after) = element.ok_or_else(|| wrong(index, "is cut off"))?;
        let string = str::from_utf8(element)
            .map_err(|_| wrong(index, "is not valid UTF-8, and the strings of ONNX models are text"))?;
        if string.contains('\0') {
            return Err(wrong(index, "has a NUL in it, which ONNX Runtime cannot take"));
        }
        strings.push(string);
        rest = after;
    }
    Ok(strings)
}

/// The shape as the runtime wants it. The content must fit: the runtime reads memory by the shape alone.
fn runtime_shape(tensor: &Tensor) -> Result<Vec<i64>, EngineError> {
    let elements = tensor
        .shape
        .iter()
        .try_fold(1usize, |product, &size| product.checked_mul(usize::try_from(size).ok()?));
    let expected = match tensor.datatype.size() {
        Some(size) => elements.and_then(|elements| elements.checked_mul(size)),
        None => Some(tensor.data.len()),
    };
    if elements.is_none() || expected != Some(tensor.data.len()) {
        return Err(EngineError(format!(
            "the input {:?} has {} bytes, which is not what {} of shape {:?} takes",
            tensor.name,
            tensor.data.len(),
            tensor.datatype.name(),
            tensor.shape
        )));
    }
    Ok(tensor.shape.iter().map(|&size| size as i64).collect())
}

fn copy_of<T: NoUninit + PrimitiveTensorElementType>(value: &DynValue) -> ort::Result<Bytes> {
    let (_, elements) = value.try_extract_tensor::<T>()?;
    Ok(Bytes::copy_from_slice(bytemuck::cast_slice(elements)))
}

fn strings_of(value: &DynValue) -> ort::Result<Bytes> {
    let (_, strings) = value.try_extract_strings()?;
    let mut data = Vec::with_capacity(strings.iter().map(|string| 4 + string.len()).sum());
    for string in &strings {
        let length = u32::try_from(string.len()).map_err(ort::Error::wrap)?;
        data.put_u32_le(length);
        data.put_slice(string.as_bytes());
    }
    Ok(data.into())
}
