//! The numbers by which the scheduler knows streams.

use std::collections::VecDeque;
use std::sync::{Arc, PoisonError, RwLock};

use downbeat_sched::ModelId;

use super::instance::Instance;

/// Streams that there may be at once: the scheduler has room for so many models.
pub(super) const STREAMS_MAX: u32 = 16_384;

/// So many numbers lie idle before one is used again, so that nobody takes word of the old stream for word of the new.
const REST: usize = 256;

/// Whose each stream is.
#[derive(Debug, Default)]
pub(super) struct Numbers(RwLock<Table>);

#[derive(Debug, Default)]
struct Table {
    owners: Vec<Option<Arc<Instance>>>,
    /// The one that was free longest comes first.
    free: VecDeque<ModelId>,
}

impl Numbers {
    /// A number for another stream of an instance; `None` where there are too many streams. `vacant` says whether the
    /// scheduler has forgotten the one that had it.
    pub(super) fn take(&self, owner: &Arc<Instance>, vacant: impl Fn(ModelId) -> bool) -> Option<ModelId> {
        let mut table = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let new = (table.owners.len() < STREAMS_MAX as usize).then_some(ModelId(table.owners.len() as u32));
        let rested = table.free.len() > REST || new.is_none();
        let used = table.free.front().copied().filter(|&model| rested && vacant(model));
        let model = used.or(new)?;
        if used.is_some() {
            table.free.pop_front();
            table.owners[model.0 as usize] = Some(Arc::clone(owner));
        } else {
            table.owners.push(Some(Arc::clone(owner)));
        }
        Some(model)
    }

    pub(super) fn free(&self, model: ModelId) {
        let mut table = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if table.owners.get_mut(model.0 as usize).and_then(Option::take).is_some() {
            table.free.push_back(model);
        }
    }

    pub(super) fn owner(&self, model: ModelId) -> Option<Arc<Instance>> {
        let table = self.0.read().unwrap_or_else(PoisonError::into_inner);
        table.owners.get(model.0 as usize)?.clone()
    }

    /// How many are taken.
    #[cfg(test)]
    pub(super) fn taken(&self) -> usize {
        let table = self.0.read().unwrap();
        table.owners.iter().flatten().count()
    }
}
