//! Inputs and outputs in a configuration, seen alike.

use downbeat_oip::proto::{self, ModelConfig};
use downbeat_oip::{DataType, TensorSpec};

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
    });
    let outputs = config.output.iter_mut().map(|output| Slot {
        role: Role::Output,
        name: &output.name,
        data_type: &mut output.data_type,
        dims: &mut output.dims,
    });
    inputs.chain(outputs)
}

/// The specification of a tensor that a configuration gives these dimensions, without the batch. Where the configuration
/// leaves open what the model file fixes, the file holds: a request of another size could only fail.
pub(crate) fn spec(
    name: &str,
    datatype: DataType,
    dims: &[i64],
    batching: bool,
    declared: Option<&Declared>,
) -> TensorSpec {
    let mut shape = full_shape(dims, batching);
    let fixed = declared.and_then(|declared| declared.shape.as_ref());
    for (size, &fixed) in shape.iter_mut().zip(fixed.into_iter().flatten()) {
        if *size == -1 {
            *size = fixed;
        }
    }
    TensorSpec { name: name.to_owned(), datatype, shape }
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
