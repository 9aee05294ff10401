//! Tensors in frames.

use bytes::Bytes;
use downbeat_oip::{DataType, Reshape, Tensor, TensorSpec};

use super::message::{self, Part, Spec};

/// Describes a tensor whose content goes into the payload.
pub(crate) fn describe(tensor: &Tensor) -> Part {
    Part {
        name: tensor.name.clone(),
        datatype: tensor.datatype.name().to_owned(),
        shape: tensor.shape.clone(),
        bytes: tensor.data.len() as u64,
    }
}

/// The tensors of a payload; `None` where the descriptions do not fit it.
pub(crate) fn tensors(parts: Vec<Part>, mut payload: Bytes) -> Option<Vec<Tensor>> {
    let tensors: Option<Vec<Tensor>> = parts
        .into_iter()
        .map(|part| {
            let bytes = usize::try_from(part.bytes).ok().filter(|&bytes| bytes <= payload.len())?;
            Some(Tensor {
                name: part.name,
                datatype: DataType::from_name(&part.datatype)?,
                shape: part.shape,
                data: payload.split_to(bytes),
            })
        })
        .collect();
    tensors.filter(|_| payload.is_empty())
}

/// Puts declared tensors into a message.
pub(crate) fn declare(specs: &[TensorSpec]) -> Vec<Spec> {
    let declare = |spec: &TensorSpec| Spec {
        name: spec.name.clone(),
        datatype: spec.datatype.name().to_owned(),
        shape: spec.shape.clone(),
    };
    specs.iter().map(declare).collect()
}

/// Takes declared tensors out of a message; `None` where a type is not known.
pub(crate) fn declared(specs: Vec<Spec>) -> Option<Vec<TensorSpec>> {
    let declared = |spec: Spec| {
        Some(TensorSpec {
            name: spec.name,
            datatype: DataType::from_name(&spec.datatype)?,
            shape: spec.shape,
        })
    };
    specs.into_iter().map(declared).collect()
}

/// Puts reshapes into a message.
pub(crate) fn declare_reshapes(reshapes: &[Reshape]) -> Vec<message::Reshape> {
    let declare = |reshape: &Reshape| message::Reshape {
        name: reshape.name.clone(),
        from: reshape.from.clone(),
        to: reshape.to.clone(),
    };
    reshapes.iter().map(declare).collect()
}

/// Takes reshapes out of a message.
pub(crate) fn declared_reshapes(reshapes: &[message::Reshape]) -> Vec<Reshape> {
    let declared = |reshape: &message::Reshape| Reshape {
        name: reshape.name.clone(),
        from: reshape.from.clone(),
        to: reshape.to.clone(),
    };
    reshapes.iter().map(declared).collect()
}
