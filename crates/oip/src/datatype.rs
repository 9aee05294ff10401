//! The element types of tensors.

/// The element type of a tensor, under the protocol's names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DataType {
    /// One byte, 0 or 1.
    Bool,
    /// Unsigned, 8 bits.
    Uint8,
    /// Unsigned, 16 bits.
    Uint16,
    /// Unsigned, 32 bits.
    Uint32,
    /// Unsigned, 64 bits.
    Uint64,
    /// Signed, 8 bits.
    Int8,
    /// Signed, 16 bits.
    Int16,
    /// Signed, 32 bits.
    Int32,
    /// Signed, 64 bits.
    Int64,
    /// IEEE half precision.
    Fp16,
    /// IEEE single precision.
    Fp32,
    /// IEEE double precision.
    Fp64,
    /// The upper half of an IEEE single.
    Bf16,
    /// Strings of bytes, each preceded by its length (32 bits).
    Bytes,
}

impl DataType {
    /// Every type.
    pub const ALL: [DataType; 14] = [
        DataType::Bool,
        DataType::Uint8,
        DataType::Uint16,
        DataType::Uint32,
        DataType::Uint64,
        DataType::Int8,
        DataType::Int16,
        DataType::Int32,
        DataType::Int64,
        DataType::Fp16,
        DataType::Fp32,
        DataType::Fp64,
        DataType::Bf16,
        DataType::Bytes,
    ];

    /// The protocol's name: `FP32`.
    pub fn name(self) -> &'static str {
        match self {
            DataType::Bool => "BOOL",
            DataType::Uint8 => "UINT8",
            DataType::Uint16 => "UINT16",
            DataType::Uint32 => "UINT32",
            DataType::Uint64 => "UINT64",
            DataType::Int8 => "INT8",
            DataType::Int16 => "INT16",
            DataType::Int32 => "INT32",
            DataType::Int64 => "INT64",
            DataType::Fp16 => "FP16",
            DataType::Fp32 => "FP32",
            DataType::Fp64 => "FP64",
            DataType::Bf16 => "BF16",
            DataType::Bytes => "BYTES",
        }
    }

    /// The type with this name.
    pub fn from_name(name: &str) -> Option<DataType> {
        DataType::ALL.into_iter().find(|datatype| datatype.name() == name)
    }

    /// Bytes of one element; `None` for [`DataType::Bytes`], whose elements differ in length.
    pub fn size(self) -> Option<usize> {
        match self {
            DataType::Bool | DataType::Uint8 | DataType::Int8 => Some(1),
            DataType::Uint16 | DataType::Int16 | DataType::Fp16 | DataType::Bf16 => Some(2),
            DataType::Uint32 | DataType::Int32 | DataType::Fp32 => Some(4),
            DataType::Uint64 | DataType::Int64 | DataType::Fp64 => Some(8),
            DataType::Bytes => None,
        }
    }
}
