//! What an ONNX file says of its inputs and outputs.
//!
//! Only that is read: the weights, which are nearly all of the file, are skipped and never in memory.

mod seeking;

use std::collections::BTreeSet;
use std::fs::File;
use std::path::Path;

use downbeat_oip::DataType;
use prost::Message;

use crate::ModelError;
use seeking::SeekingBuf;

/// The inputs and outputs of a model, as its file declares them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) inputs: Vec<Declared>,
    pub(crate) outputs: Vec<Declared>,
}

/// An input or output of a model file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Declared {
    pub(crate) name: String,
    pub(crate) datatype: DataType,
    /// -1 where any size is allowed; `None` where even the number of dimensions is open.
    pub(crate) shape: Option<Vec<i64>>,
}

impl Header {
    /// Reads the header of a model file.
    pub(crate) fn read(path: &Path) -> Result<Header, ModelError> {
        let unreadable = |error: std::io::Error| ModelError::new(path, format!("cannot be read: {error}"));
        let mut buf = SeekingBuf::new(File::open(path).map_err(unreadable)?).map_err(unreadable)?;
        let model = ModelProto::decode(&mut buf);
        buf.into_result().map_err(unreadable)?;
        let broken = |what: &str| {
            ModelError::new(path, format!("is not an ONNX model ({what}); was it copied completely?"))
        };
        let model = model.map_err(|error| broken(&error.to_string()))?;
        let graph = model
            .graph
            .filter(|graph| !graph.output.is_empty())
            .ok_or_else(|| broken("it has no outputs"))?;

        // Up to version 3 of the format, initializers are among the inputs; later, those that may be overridden are.
        let initializers: BTreeSet<&str> =
            graph.initializer.iter().map(|initializer| initializer.name.as_str()).collect();
        let inputs = graph.input.iter().filter(|input| !initializers.contains(input.name.as_str()));
        Ok(Header {
            inputs: inputs.map(|input| declared(path, "input", input)).collect::<Result<_, _>>()?,
            outputs: graph
                .output
                .iter()
                .map(|output| declared(path, "output", output))
                .collect::<Result<_, _>>()?,
        })
    }
}

fn declared(path: &Path, role: &str, info: &ValueInfoProto) -> Result<Declared, ModelError> {
    let unsupported = |what: &str| {
        let name = &info.name;
        ModelError::new(
            path,
            format!("its {role} {name:?} {what}, which cannot be served; export the model without it"),
        )
    };
    let tensor = info.r#type.as_ref().and_then(|kind| kind.tensor_type.as_ref());
    let tensor = tensor.ok_or_else(|| unsupported("is not a tensor"))?;
    let datatype = datatype(tensor.elem_type)
        .ok_or_else(|| unsupported(&format!("has ONNX's element type {}", tensor.elem_type)))?;
    let size = |dimension: &Dimension| dimension.dim_value.filter(|&size| size >= 0).unwrap_or(-1);
    let shape = tensor.shape.as_ref().map(|shape| shape.dim.iter().map(size).collect());
    Ok(Declared { name: info.name.clone(), datatype, shape })
}

/// The protocol's type for ONNX's number of an element type.
fn datatype(element: i32) -> Option<DataType> {
    Some(match element {
        1 => DataType::Fp32,
        2 => DataType::Uint8,
        3 => DataType::Int8,
        4 => DataType::Uint16,
        5 => DataType::Int16,
        6 => DataType::Int32,
        7 => DataType::Int64,
        8 => DataType::Bytes,
        9 => DataType::Bool,
        10 => DataType::Fp16,
        11 => DataType::Fp64,
        12 => DataType::Uint32,
        13 => DataType::Uint64,
        16 => DataType::Bf16,
        _ => return None,
    })
}

/// The part of ONNX's messages that a header is made of, by ONNX's names and field numbers.
#[derive(Clone, PartialEq, Message)]
struct ModelProto {
    #[prost(message, optional, tag = "7")]
    graph: Option<GraphProto>,
}

#[derive(Clone, PartialEq, Message)]
struct GraphProto {
    #[prost(message, repeated, tag = "5")]
    initializer: Vec<TensorProto>,
    #[prost(message, repeated, tag = "11")]
    input: Vec<ValueInfoProto>,
    #[prost(message, repeated, tag = "12")]
    output: Vec<ValueInfoProto>,
}

#[derive(Clone, PartialEq, Message)]
struct TensorProto {
    #[prost(string, tag = "8")]
    name: String,
}

#[derive(Clone, PartialEq, Message)]
struct ValueInfoProto {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(message, optional, tag = "2")]
    r#type: Option<TypeProto>,
}

#[derive(Clone, PartialEq, Message)]
struct TypeProto {
    #[prost(message, optional, tag = "1")]
    tensor_type: Option<TypeTensor>,
}

#[derive(Clone, PartialEq, Message)]
struct TypeTensor {
    #[prost(int32, tag = "1")]
    elem_type: i32,
    #[prost(message, optional, tag = "2")]
    shape: Option<TensorShapeProto>,
}

#[derive(Clone, PartialEq, Message)]
struct TensorShapeProto {
    #[prost(message, repeated, tag = "1")]
    dim: Vec<Dimension>,
}

#[derive(Clone, PartialEq, Message)]
struct Dimension {
    #[prost(int64, optional, tag = "1")]
    dim_value: Option<i64>,
}

#[cfg(test)]
mod tests;
