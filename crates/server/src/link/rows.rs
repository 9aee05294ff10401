//! Joins the tensors of a batch's requests, and parts those of its results.

use downbeat_oip::Tensor;

use super::message::Part;
use crate::dispatch::{Batch, Outputs};

/// Describes the inputs of a batch, each joined from those of its requests along the first dimension.
pub(super) fn describe_joined(batch: &Batch) -> Vec<Part> {
    let Some((_, first)) = batch.requests.first() else { return Vec::new() };
    let joined = |(index, tensor): (usize, &Tensor)| {
        let mut shape = tensor.shape.clone();
        let contents = batch.requests.iter().filter_map(|(_, inputs)| inputs.get(index));
        // A batch of one request may be of a model without a batch dimension.
        if batch.requests.len() > 1
            && let Some(rows) = shape.first_mut()
        {
            *rows = contents.clone().filter_map(|input| input.shape.first()).sum();
        }
        Part {
            name: tensor.name.clone(),
            datatype: tensor.datatype.name().to_owned(),
            shape,
            bytes: contents.map(|input| input.data.len() as u64).sum(),
        }
    };
    first.iter().enumerate().map(joined).collect()
}

/// The content of the inputs of a batch, in the order of [`describe_joined`].
pub(super) fn joined(batch: &Batch) -> impl Iterator<Item = &[u8]> + Clone {
    let inputs = batch.requests.first().map_or(0, |(_, first)| first.len());
    (0..inputs).flat_map(|index| {
        batch.requests.iter().filter_map(move |(_, inputs)| inputs.get(index)).map(|input| &*input.data)
    })
}

/// The outputs of each request of a batch; `rows` has the rows of each.
pub(crate) fn part(outputs: Vec<Tensor>, rows: &[u32]) -> Outputs {
    if rows.len() == 1 {
        return Ok(vec![outputs]);
    }
    let total: u64 = rows.iter().map(|&rows| u64::from(rows)).sum();
    let mut parts: Vec<Vec<Tensor>> = rows.iter().map(|_| Vec::with_capacity(outputs.len())).collect();
    for output in outputs {
        let found = output.shape.first().copied().unwrap_or(0);
        if found != total {
            let name = &output.name;
            return Err(format!(
                "output {name:?} has {found} rows for a batch of {total}; a model whose outputs do not have one row for \
                 each row of its inputs needs max_batch_size: 0"
            ));
        }
        let cut =
            output.split_rows(rows.iter().map(|&rows| rows.into())).map_err(|error| error.to_string())?;
        for (part, tensor) in parts.iter_mut().zip(cut) {
            part.push(tensor);
        }
    }
    Ok(parts)
}
