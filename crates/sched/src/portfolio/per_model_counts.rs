//! Counts by model.

use crate::ModelId;

/// A count for each model.
#[derive(Clone, Debug, Default)]
pub(crate) struct PerModelCounts(Vec<u32>);

impl PerModelCounts {
    pub(crate) fn count(&mut self, model: ModelId) {
        let index = model.0 as usize;
        if self.0.len() <= index {
            self.0.resize(index + 1, 0);
        }
        self.0[index] += 1;
    }

    /// Adds another one's counts.
    pub(crate) fn add(&mut self, other: &PerModelCounts) {
        if self.0.len() < other.0.len() {
            self.0.resize(other.0.len(), 0);
        }
        self.0.iter_mut().zip(&other.0).for_each(|(count, other)| *count += other);
    }

    /// Forgets a model.
    pub(crate) fn strike(&mut self, model: ModelId) {
        if let Some(count) = self.0.get_mut(model.0 as usize) {
            *count = 0;
        }
    }

    pub(crate) fn clear(&mut self) {
        self.0.fill(0);
    }

    /// Models below this may have a count.
    pub(crate) fn models_end(&self) -> u32 {
        self.0.len() as u32
    }

    pub(crate) fn of(&self, model: ModelId) -> u32 {
        self.0.get(model.0 as usize).copied().unwrap_or(0)
    }
}
