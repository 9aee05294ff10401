//! Counts by model.

use crate::ModelId;

/// A count for each model.
#[derive(Clone, Debug, Default)]
pub(super) struct PerModelCounts(Vec<u32>);

impl PerModelCounts {
    pub(super) fn count(&mut self, model: ModelId) {
        let index = model.0 as usize;
        if self.0.len() <= index {
            self.0.resize(index + 1, 0);
        }
        self.0[index] += 1;
    }

    pub(super) fn forget(&mut self, model: ModelId) {
        if let Some(count) = self.0.get_mut(model.0 as usize) {
            *count = 0;
        }
    }

    pub(super) fn clear(&mut self) {
        self.0.fill(0);
    }

    /// Models below this may have a count.
    pub(super) fn models_end(&self) -> u32 {
        self.0.len() as u32
    }

    pub(super) fn of(&self, model: ModelId) -> u32 {
        self.0.get(model.0 as usize).copied().unwrap_or(0)
    }
}
