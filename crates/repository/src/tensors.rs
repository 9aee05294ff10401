//! Inputs and outputs in a configuration, seen alike.

use downbeat_oip::proto::{self, ModelConfig};
use downbeat_oip::{DataType, Reshape, TensorSpec};

use crate::header::{Declared, Header};

/// Whether a tensor goes in or comes out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    Input,
    Output,
}

/// What an input and an output of a configuration have in common.
pub(crate) struct Slot<'a> {
    pub(crate) role: Role,
    pub(crate) name: &'a str,
    pub(crate) data_type: &'a mut i32,
    pub(crate) dims: &'a mut Vec<i64>,
    /// The shape that the model has where clients see another one, `dims`.
    pub(crate) reshape: Option<&'a [i64]>,
}

impl Role {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Role::Input => "input",
            Role::Output => "output",
        }
    }

    /// The tensors of this role in a model file.
    pub(crate) fn of(self, header: &Header) -> &[Declared] {
        match self {
            Role::Input => &header.inputs,
            Role::Output => &header.outputs,
        }
    }
}

/// All inputs and outputs of a configuration.
pub(crate) fn slots(config: &mut ModelConfig) -> impl Iterator<Item = Slot<'_>> {
    let inputs = config.input.iter_mut().map(|input| Slot {
        role: Role::Input,
        name: &input.name,
        data_type: &mut input.data_type,
        dims: &mut input.dims,
        reshape: input.reshape.as_ref().map(|reshape| reshape.shape.as_slice()),
    });
    let outputs = config.output.iter_mut().map(|output| Slot {
        role: Role::Output,
        name: &output.name,
        data_type: &mut output.data_type,
        dims: &mut output.dims,
        reshape: output.reshape.as_ref().map(|reshape| reshape.shape.as_slice()),
    });
    inputs.chain(outputs)
}

impl Slot<'_> {
    /// The shape that the model has, without the batch; empty where the configuration does not say.
    pub(crate) fn model_dims(&self) -> &[i64] {
        self.reshape.unwrap_or(self.dims)
    }

    /// What clients see of the tensor. Where the configuration leaves open what the model file fixes, the file holds: a
    /// request of another size could only fail.
    pub(crate) fn spec(&self, batching: bool, declared: Option<&Declared>) -> Option<TensorSpec> {
        let mut shape = full_shape(self.dims, batching);
        let declared =
            declared.filter(|_| self.reshape.is_none()).and_then(|declared| declared.shape.as_ref());
        for (size, &fixed) in shape.iter_mut().zip(declared.into_iter().flatten()) {
            if *size == -1 {
                *size = fixed;
            }
        }
        Some(TensorSpec { name: self.name.to_owned(), datatype: datatype(*self.data_type)?, shape })
    }

    /// How the tensor changes its shape on its way into the model, or out of it.
    pub(crate) fn reshape(&self, batching: bool) -> Option<Reshape> {
        let (client, model) = (full_shape(self.dims, batching), full_shape(self.reshape?, batching));
        let (from, to) = match self.role {
            Role::Input => (client, model),
            Role::Output => (model, client),
        };
        Some(Reshape { name: self.name.to_owned(), from, to })
    }
}

/// The dimensions of a configuration, with the batch in front where there is one.
pub(crate) fn full_shape(dims: &[i64], batching: bool) -> Vec<i64> {
    let batch = batching.then_some(-1);
    batch.into_iter().chain(dims.iter().copied()).collect()
}

/// The protocol's type for a type of a configuration.
pub(crate) fn datatype(data_type: i32) -> Option<DataType> {
    Some(match proto::DataType::try_from(data_type).ok()? {
        proto::DataType::TypeInvalid => return None,
        proto::DataType::TypeBool => DataType::Bool,
        proto::DataType::TypeUint8 => DataType::Uint8,
        proto::DataType::TypeUint16 => DataType::Uint16,
        proto::DataType::TypeUint32 => DataType::Uint32,
        proto::DataType::TypeUint64 => DataType::Uint64,
        proto::DataType::TypeInt8 => DataType::Int8,
        proto::DataType::TypeInt16 => DataType::Int16,
        proto::DataType::TypeInt32 => DataType::Int32,
        proto::DataType::TypeInt64 => DataType::Int64,
        proto::DataType::TypeFp16 => DataType::Fp16,
        proto::DataType::TypeFp32 => DataType::Fp32,
        proto::DataType::TypeFp64 => DataType::Fp64,
        proto::DataType::TypeString => DataType::Bytes,
        proto::DataType::TypeBf16 => DataType::Bf16,
    })
}

/// The type of a configuration for one of the protocol.
pub(crate) fn data_type(datatype: DataType) -> proto::DataType {
    match datatype {
        DataType::Bool => proto::DataType::TypeBool,
        DataType::Uint8 => proto::DataType::TypeUint8,
        DataType::Uint16 => proto::DataType::TypeUint16,
        DataType::Uint32 => proto::DataType::TypeUint32,
        DataType::Uint64 => proto::DataType::TypeUint64,
        DataType::Int8 => proto::DataType::TypeInt8,
        DataType::Int16 => proto::DataType::TypeInt16,
        DataType::Int32 => proto::DataType::TypeInt32,
        DataType::Int64 => proto::DataType::TypeInt64,
        DataType::Fp16 => proto::DataType::TypeFp16,
        DataType::Fp32 => proto::DataType::TypeFp32,
        DataType::Fp64 => proto::DataType::TypeFp64,
        DataType::Bytes => proto::DataType::TypeString,
        DataType::Bf16 => proto::DataType::TypeBf16,
    }
}
