//! Which of several idle devices is taken.

use std::fmt::Debug;

use crate::heap::KeyedHeap;
use crate::id_set::IdSet;
use crate::{GpuId, Time};

/// Which of several idle devices is taken.
pub trait GpuOrder: Clone + Debug {
    /// The idle devices, in this order.
    type Idle: IdleGpus;
}

/// The idle devices of one class.
pub trait IdleGpus: Clone + Debug + Default {
    /// Takes in a device that became idle at `free_at`.
    fn insert(&mut self, gpu: GpuId, free_at: Time);

    /// Takes a device out; does nothing where it is not in.
    fn remove(&mut self, gpu: GpuId);

    /// The device to be taken first.
    fn first(&self) -> Option<GpuId>;

    /// How many there are.
    fn len(&self) -> usize;

    /// Whether there is none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// The device with the smallest id: load gathers on few devices, and what is too much is whole idle ones.
#[derive(Clone, Copy, Debug, Default)]
pub struct SmallestId;

impl GpuOrder for SmallestId {
    type Idle = IdSet;
}

impl IdleGpus for IdSet {
    fn insert(&mut self, gpu: GpuId, _free_at: Time) {
        IdSet::insert(self, gpu.0);
    }

    fn remove(&mut self, gpu: GpuId) {
        IdSet::remove(self, gpu.0);
    }

    fn first(&self) -> Option<GpuId> {
        IdSet::first(self).map(GpuId)
    }

    fn len(&self) -> usize {
        IdSet::len(self)
    }
}

/// The device that has been idle for longest: load goes round, as in the public code of Symphony's authors.
#[derive(Clone, Copy, Debug, Default)]
pub struct EarliestFree;

impl GpuOrder for EarliestFree {
    type Idle = KeyedHeap<Time>;
}

impl IdleGpus for KeyedHeap<Time> {
    fn insert(&mut self, gpu: GpuId, free_at: Time) {
        self.set(gpu.0, free_at);
    }

    fn remove(&mut self, gpu: GpuId) {
        KeyedHeap::remove(self, gpu.0);
    }

    fn first(&self) -> Option<GpuId> {
        self.peek().map(|(_, gpu)| GpuId(gpu))
    }

    fn len(&self) -> usize {
        KeyedHeap::len(self)
    }
}
