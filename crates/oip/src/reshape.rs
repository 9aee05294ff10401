//! Tensors whose shape differs between clients and the model.

/// Another shape for a tensor with the same elements in the same order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reshape {
    /// The tensor's name.
    pub name: String,
    /// The shape it has; -1 where any size is allowed.
    pub from: Vec<i64>,
    /// The shape it gets. Its open sizes are those of `from`, in order.
    pub to: Vec<i64>,
}

impl Reshape {
    /// Whether every tensor of the one shape has as many elements in the other.
    pub fn is_sound(&self) -> bool {
        let open = |shape: &[i64]| shape.iter().filter(|&&size| size == -1).count();
        let fixed = |shape: &[i64]| {
            shape
                .iter()
                .filter(|&&size| size != -1)
                .try_fold(1i64, |product, &size| product.checked_mul(size))
        };
        open(&self.from) == open(&self.to) && fixed(&self.from) == fixed(&self.to)
    }

    /// The new shape of a tensor; `None` where the tensor does not have the shape this is for.
    pub fn apply(&self, shape: &[u64]) -> Option<Vec<u64>> {
        if shape.len() != self.from.len() {
            return None;
        }
        let mut open = Vec::new();
        for (&size, &expected) in shape.iter().zip(&self.from) {
            match u64::try_from(expected) {
                Ok(expected) if expected == size => {}
                Ok(_) => return None,
                Err(_) => open.push(size),
            }
        }
        let mut open = open.into_iter();
        self.to.iter().map(|&size| u64::try_from(size).ok().or_else(|| open.next())).collect()
    }
}

#[cfg(test)]
mod tests;
