//! The batches that were sent to devices and have not finished, with their requests.

use crate::{BatchId, ClassId, ModelId, Request, RequestId};

/// Batches that were sent and have not finished, by their numbers.
///
/// A table with open addressing: it allocates only when more batches run at once than ever before.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ledger {
    /// A power of two of them, at most half of them taken.
    slots: Vec<Option<Outstanding>>,
    count: usize,
    /// Emptied request lists, kept to be filled again.
    spare: Vec<Vec<Request>>,
}

/// A batch that was sent and has not finished.
#[derive(Clone, Debug)]
pub(crate) struct Outstanding {
    pub(crate) batch: BatchId,
    pub(crate) model: ModelId,
    /// The class of the device that it was sent to.
    pub(crate) class: ClassId,
    pub(crate) requests: Vec<Request>,
    /// Those of them whose clients have gone: should the device fail, nobody wants them run again. Hardly ever any.
    pub(crate) cancelled: Vec<RequestId>,
}

impl Ledger {
    /// Takes in a batch; its number is new.
    pub(crate) fn enter(&mut self, sent: Outstanding) -> &Outstanding {
        if 2 * (self.count + 1) > self.slots.len() {
            self.grow();
        }
        self.count += 1;
        let slot = self.slot_of(sent.batch);
        self.slots[slot].insert(sent)
    }

    /// Strikes off a batch; `None` where it is not here.
    pub(crate) fn strike(&mut self, batch: BatchId) -> Option<Outstanding> {
        if self.slots.is_empty() {
            return None;
        }
        let slot = self.slot_of(batch);
        let sent = self.slots[slot].take()?;
        self.count -= 1;
        self.close_gap(slot);
        Some(sent)
    }

    /// Notes that the client of a request that runs has gone. Does nothing where no batch has the request.
    ///
    /// Looks through all batches: clients that go while their request runs are too rare to keep an index for.
    pub(crate) fn cancel(&mut self, request: &Request) {
        let mut of_model = self.slots.iter_mut().flatten().filter(|sent| sent.model == request.model);
        if let Some(sent) = of_model.find(|sent| sent.requests.iter().any(|running| running.id == request.id))
            && !sent.cancelled.contains(&request.id)
        {
            sent.cancelled.push(request.id);
        }
    }

    /// An empty list for the requests of a batch.
    pub(crate) fn blank_list(&mut self) -> Vec<Request> {
        self.spare.pop().unwrap_or_default()
    }

    /// Takes back a list that is no longer needed.
    pub(crate) fn recycle(&mut self, mut requests: Vec<Request>) {
        requests.clear();
        self.spare.push(requests);
    }

    /// Where the batch is, or else the free slot where it would be. There is always a free slot.
    fn slot_of(&self, batch: BatchId) -> usize {
        let mut slot = self.home(batch);
        while self.slots[slot].as_ref().is_some_and(|sent| sent.batch != batch) {
            slot = self.after(slot);
        }
        slot
    }

    /// Moves those behind a slot that has become free forward, where they would not be found past it.
    fn close_gap(&mut self, mut gap: usize) {
        let mut slot = self.after(gap);
        while let Some(sent) = &self.slots[slot] {
            let behind = |from: usize| slot.wrapping_sub(from) & (self.slots.len() - 1);
            if behind(self.home(sent.batch)) >= behind(gap) {
                self.slots.swap(gap, slot);
                gap = slot;
            }
            slot = self.after(slot);
        }
    }

    /// Spreads numbers that are some constant apart: the high bits of a product with 2^64 over the golden ratio.
    fn home(&self, batch: BatchId) -> usize {
        let bits = self.slots.len().trailing_zeros();
        (batch.0.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - bits)) as usize
    }

    fn after(&self, slot: usize) -> usize {
        (slot + 1) & (self.slots.len() - 1)
    }

    fn grow(&mut self) {
        let size = (2 * self.slots.len()).max(16);
        let old = std::mem::take(&mut self.slots);
        self.slots.resize_with(size, || None);
        for sent in old.into_iter().flatten() {
            let slot = self.slot_of(sent.batch);
            self.slots[slot] = Some(sent);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::{Ledger, Outstanding};
    use crate::{BatchId, ClassId, ModelId};

    fn sent(batch: u64) -> Outstanding {
        Outstanding {
            batch: BatchId(batch),
            model: ModelId(0),
            class: ClassId(0),
            requests: Vec::new(),
            cancelled: Vec::new(),
        }
    }

    proptest! {
        #[test]
        fn a_ledger_has_what_was_entered_and_not_struck_off(
            steps in prop::collection::vec((any::<bool>(), 0u64..60), 0..400), apart in 1u64..9
        ) {
            let mut ledger = Ledger::default();
            let mut set = BTreeSet::new();
            for (enter, number) in steps {
                let batch = number * apart;
                if !enter {
                    let found = ledger.strike(BatchId(batch)).map(|sent| sent.batch.0);
                    prop_assert_eq!(found, set.take(&batch));
                } else if set.insert(batch) {
                    ledger.enter(sent(batch));
                }
                prop_assert_eq!(ledger.count, set.len());
            }
            for batch in set {
                prop_assert!(ledger.strike(BatchId(batch)).is_some());
            }
            prop_assert!(ledger.slots.iter().all(Option::is_none));
        }
    }
}
