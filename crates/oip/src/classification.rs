//! The classification extension: the most likely classes instead of a tensor of scores.

#[cfg(test)]
mod tests;

use crate::{DataType, Failure, Reason, Tensor};

/// The `classes` highest scores of each row (of the whole tensor where it is not `batched`), highest first, as strings
/// `score:index` or, where the class has a label, `score:index:label`. Equal scores come in the order of their
/// classes. The result is a BYTES tensor with the same name, of as many columns as classes were asked for, or as there
/// are.
pub fn classify(scores: &Tensor, classes: u32, labels: &[String], batched: bool) -> Result<Tensor, Failure> {
    let whole = |value: &dyn std::fmt::Display| value.to_string();
    let top = Top { scores, classes, labels, batched };
    match scores.datatype {
        DataType::Uint8 => top.classify(u8::from_le_bytes, |value| whole(value)),
        DataType::Uint16 => top.classify(u16::from_le_bytes, |value| whole(value)),
        DataType::Uint32 => top.classify(u32::from_le_bytes, |value| whole(value)),
        DataType::Uint64 => top.classify(u64::from_le_bytes, |value| whole(value)),
        DataType::Int8 => top.classify(i8::from_le_bytes, |value| whole(value)),
        DataType::Int16 => top.classify(i16::from_le_bytes, |value| whole(value)),
        DataType::Int32 => top.classify(i32::from_le_bytes, |value| whole(value)),
        DataType::Int64 => top.classify(i64::from_le_bytes, |value| whole(value)),
        // Six decimals, as clients of Triton know it.
        DataType::Fp32 => top.classify(f32::from_le_bytes, |value| format!("{value:.6}")),
        DataType::Fp64 => top.classify(f64::from_le_bytes, |value| format!("{value:.6}")),
        DataType::Bool | DataType::Fp16 | DataType::Bf16 | DataType::Bytes => Err(Failure::new(
            Reason::Invalid,
            format!("output '{}' of type {} cannot be classified", scores.name, scores.datatype.name()),
        )),
    }
}

struct Top<'a> {
    scores: &'a Tensor,
    classes: u32,
    labels: &'a [String],
    batched: bool,
}

impl Top<'_> {
    fn classify<T: PartialOrd, const N: usize>(
        &self,
        from_bytes: fn([u8; N]) -> T,
        show: impl Fn(&T) -> String,
    ) -> Result<Tensor, Failure> {
        let rows = if self.batched { self.scores.rows() } else { None };
        let scores: Vec<T> = self.scores.data.as_chunks().0.iter().map(|&bytes| from_bytes(bytes)).collect();
        let row_length = scores.len().checked_div(rows.unwrap_or(1) as usize).unwrap_or(0);
        let columns = row_length.min(self.classes as usize);
        let mut strings = Vec::new();
        // A row of length 0 has no classes, however many such rows there are.
        for row in scores.chunks_exact(row_length.max(1)) {
            for index in highest(row, columns) {
                let mut string = format!("{}:{index}", show(&row[index]));
                if let Some(label) = self.labels.get(index) {
                    string.push(':');
                    string.push_str(label);
                }
                strings.push(string);
            }
        }
        let shape = rows.into_iter().chain([columns as u64]).collect();
        Ok(Tensor::from_elements(&self.scores.name, shape, strings)?)
    }
}

/// The indices of the `count` highest values, highest first; what is not a number comes last.
fn highest<T: PartialOrd>(values: &[T], count: usize) -> Vec<usize> {
    let by_rank = |&a: &usize, &b: &usize| {
        let is_nan = |value: &T| value.partial_cmp(value).is_none();
        values[b]
            .partial_cmp(&values[a])
            .unwrap_or_else(|| is_nan(&values[a]).cmp(&is_nan(&values[b])))
            .then_with(|| a.cmp(&b))
    };
    let mut indices: Vec<usize> = (0..values.len()).collect();
    if count < indices.len() {
        indices.select_nth_unstable_by(count, by_rank);
        indices.truncate(count);
    }
    indices.sort_unstable_by(by_rank);
    indices
}
