//! Models that run batches of a few sizes only.

use bytes::{Bytes, BytesMut};
use downbeat_oip::{Tensor, TensorError};

use crate::measure::Measured;
use crate::{EngineError, Model};

/// A model that has a copy for each of a few sizes of batches; a batch of any other size is filled up to the next one.
///
/// For models of which a change of size costs more than the batch. On a GPU, ONNX Runtime plans convolutions for the
/// shape that it sees, and plans all of them anew when another one comes, even if it has seen that before: on an H200
/// that takes 145 ms for a ResNet-50 whose batches take 2.
pub struct Padded<M> {
    /// By size, the smallest first.
    copies: Vec<(u32, M)>,
}

impl<M: Model> Padded<M> {
    /// Loads a copy for each of these sizes.
    pub fn load(
        sizes: &[u32],
        mut load: impl FnMut() -> Result<M, EngineError>,
    ) -> Result<Padded<M>, EngineError> {
        let mut copies =
            sizes.iter().map(|&size| Ok((size, load()?))).collect::<Result<Vec<_>, EngineError>>()?;
        copies.sort_by_key(|(size, _)| *size);
        Ok(Padded { copies })
    }
}

impl<M: Model> Model for Padded<M> {
    fn run(&mut self, inputs: &[Tensor], rows: u32) -> Result<Vec<Tensor>, EngineError> {
        let Some((size, model)) = self.copies.iter_mut().find(|(size, _)| *size >= rows) else {
            return Err(EngineError(format!("{rows} rows are more than the model takes in one batch")));
        };
        if *size == rows {
            return model.run(inputs, rows);
        }
        let odd = |error: TensorError| EngineError(error.to_string());
        let filled = inputs.iter().map(|input| filled_up(input, rows, *size));
        let inputs = filled.collect::<Result<Vec<_>, _>>().map_err(odd)?;
        let outputs = model.run(&inputs, *size)?;
        outputs.iter().map(|output| output.slice_rows(0..rows.into()).map_err(odd)).collect()
    }

    fn goes_in_steps(&self) -> bool {
        true
    }
}

/// A tensor with copies of its first row behind its last one: whatever the model takes in one place, it takes in
/// another.
fn filled_up(tensor: &Tensor, rows: u32, size: u32) -> Result<Tensor, TensorError> {
    let row = tensor.slice_rows(0..1)?.data;
    let more = (size - rows) as usize;
    let mut data = BytesMut::with_capacity(tensor.data.len() + more * row.len());
    data.extend_from_slice(&tensor.data);
    (0..more).for_each(|_| data.extend_from_slice(&row));
    let mut shape = tensor.shape.clone();
    if let Some(rows) = shape.first_mut() {
        *rows = size.into();
    }
    Ok(Tensor { shape, data: Bytes::from(data), ..tensor.clone() })
}

/// What batches of all sizes take where they are filled up to the ones that were measured, smallest first: a size in
/// between takes as long as the next one. Said by a point right behind each measured one.
pub fn in_steps(measured: Vec<Measured>) -> Vec<Measured> {
    let mut steps: Vec<Measured> = Vec::with_capacity(2 * measured.len());
    for size in measured {
        if let Some(before) = steps.last()
            && before.batch + 1 < size.batch
        {
            steps.push(Measured { batch: before.batch + 1, ..size.clone() });
        }
        steps.push(size);
    }
    steps
}

#[cfg(test)]
mod tests;
