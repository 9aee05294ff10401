//! Inputs that nobody sent, to measure a model with.

use bytes::{BufMut, Bytes};
use downbeat_oip::{DataType, Tensor, TensorSpec};
use half::{bf16, f16};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// A batch of random inputs, the same for the same seed.
///
/// The first dimension is the number of rows where it is open and leads the shape; other open dimensions get
/// `open_size`. Numbers are small: integers are 0 or 1, because they are often indices into a table, and floats lie
/// between 0 and 1. Strings are short.
pub fn synthetic_inputs(inputs: &[TensorSpec], rows: u32, open_size: u64, seed: u64) -> Vec<Tensor> {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    inputs.iter().map(|input| synthetic_input(input, rows, open_size, &mut random)).collect()
}

fn synthetic_input(input: &TensorSpec, rows: u32, open_size: u64, random: &mut Xoshiro256PlusPlus) -> Tensor {
    let size = |(axis, &size): (usize, &i64)| match u64::try_from(size) {
        Ok(size) => size,
        Err(_) if axis == 0 => u64::from(rows),
        Err(_) => open_size,
    };
    let shape: Vec<u64> = input.shape.iter().enumerate().map(size).collect();
    let elements: u64 = shape.iter().product();
    let mut data = Vec::with_capacity(elements as usize * input.datatype.size().unwrap_or(8));
    for _ in 0..elements {
        put_element(&mut data, input.datatype, random);
    }
    Tensor { name: input.name.clone(), datatype: input.datatype, shape, data: Bytes::from(data) }
}

fn put_element(data: &mut Vec<u8>, datatype: DataType, random: &mut Xoshiro256PlusPlus) {
    match datatype {
        DataType::Bool | DataType::Uint8 | DataType::Int8 => data.put_u8(random.random_range(0..=1)),
        DataType::Uint16 | DataType::Int16 => data.put_u16_le(random.random_range(0..=1)),
        DataType::Uint32 | DataType::Int32 => data.put_u32_le(random.random_range(0..=1)),
        DataType::Uint64 | DataType::Int64 => data.put_u64_le(random.random_range(0..=1)),
        DataType::Fp16 => data.put_slice(&f16::from_f32(random.random()).to_le_bytes()),
        DataType::Bf16 => data.put_slice(&bf16::from_f32(random.random()).to_le_bytes()),
        DataType::Fp32 => data.put_f32_le(random.random()),
        DataType::Fp64 => data.put_f64_le(random.random()),
        DataType::Bytes => {
            let length = random.random_range(1..=8);
            data.put_u32_le(length);
            data.extend((0..length).map(|_| random.random_range(b'a'..=b'z')));
        }
    }
}

#[cfg(test)]
mod tests;
