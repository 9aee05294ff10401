//! Rows: the entries along the first dimension. A batch holds the rows of its requests one after the other.

use std::ops::Range;

use super::{Elements, Tensor, TensorError};

impl Tensor {
    /// The size of the first dimension; `None` for a scalar.
    pub fn rows(&self) -> Option<u64> {
        self.shape.first().copied()
    }

    /// Some of the rows. Shares the content.
    pub fn slice_rows(&self, range: Range<u64>) -> Result<Tensor, TensorError> {
        let length = range.end.checked_sub(range.start).ok_or_else(|| self.no_such_rows(range.end))?;
        let mut cut = Cut::new(self);
        cut.take(range.start)?;
        cut.take(length)
    }

    /// The tensor in consecutive parts of so many rows each, for instance one per request of a batch. Shares the
    /// content, and walks over it once.
    pub fn split_rows(&self, parts: impl IntoIterator<Item = u64>) -> Result<Vec<Tensor>, TensorError> {
        let mut cut = Cut::new(self);
        parts.into_iter().map(|rows| cut.take(rows)).collect()
    }

    fn no_such_rows(&self, rows: u64) -> TensorError {
        TensorError::NoSuchRows { tensor: self.name.clone(), shape: self.shape.clone(), rows }
    }
}

/// A tensor of which parts are taken from the front.
struct Cut<'a> {
    tensor: &'a Tensor,
    /// Elements of one row; the shape without its first dimension.
    row_elements: u64,
    rows_taken: u64,
    bytes_taken: usize,
}

impl<'a> Cut<'a> {
    fn new(tensor: &'a Tensor) -> Cut<'a> {
        // Saturating: a tensor that nobody checked must not panic here.
        let row_elements =
            tensor.shape.iter().skip(1).fold(1u64, |product, &size| product.saturating_mul(size));
        Cut { tensor, row_elements, rows_taken: 0, bytes_taken: 0 }
    }

    fn take(&mut self, rows: u64) -> Result<Tensor, TensorError> {
        let Tensor { name, datatype, shape, data } = self.tensor;
        let end = self
            .rows_taken
            .checked_add(rows)
            .filter(|&end| self.tensor.rows().is_some_and(|all| end <= all))
            .ok_or_else(|| self.tensor.no_such_rows(self.rows_taken.saturating_add(rows)))?;
        let elements = rows.saturating_mul(self.row_elements);
        let from = self.bytes_taken;
        self.bytes_taken = match datatype.size() {
            Some(size) => from.saturating_add((elements as usize).saturating_mul(size)),
            None => {
                let mut walk = Elements::new(&data[from..]);
                for element in 0..elements {
                    if !matches!(walk.next(), Some(Ok(_))) {
                        return Err(TensorError::Truncated { tensor: name.clone(), element });
                    }
                }
                data.len() - walk.rest().len()
            }
        };
        if self.bytes_taken > data.len() {
            return Err(self.tensor.no_such_rows(end));
        }
        self.rows_taken = end;
        let mut part_shape = shape.clone();
        part_shape[0] = rows;
        Ok(Tensor {
            name: name.clone(),
            datatype: *datatype,
            shape: part_shape,
            data: data.slice(from..self.bytes_taken),
        })
    }
}
