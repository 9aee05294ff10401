//! The idle devices of one class.

use crate::heap::KeyedHeap;
use crate::id_set::IdSet;
use crate::{GpuId, GpuOrder, Time};

/// The idle devices of one class, in the order in which they are taken.
#[derive(Clone, Debug)]
pub(crate) enum IdleGpus {
    /// [`GpuOrder::SmallestId`].
    ById(IdSet),
    /// [`GpuOrder::EarliestFree`].
    ByTime(KeyedHeap<Time>),
}

impl IdleGpus {
    pub(crate) fn new(order: GpuOrder) -> IdleGpus {
        match order {
            GpuOrder::SmallestId => IdleGpus::ById(IdSet::default()),
            GpuOrder::EarliestFree => IdleGpus::ByTime(KeyedHeap::default()),
        }
    }

    /// Takes in a device that became idle at `free_at`.
    pub(crate) fn insert(&mut self, gpu: GpuId, free_at: Time) {
        match self {
            IdleGpus::ById(gpus) => gpus.insert(gpu.0),
            IdleGpus::ByTime(gpus) => gpus.set(gpu.0, free_at),
        }
    }

    /// Takes a device out; does nothing where it is not in.
    pub(crate) fn remove(&mut self, gpu: GpuId) {
        match self {
            IdleGpus::ById(gpus) => gpus.remove(gpu.0),
            IdleGpus::ByTime(gpus) => gpus.remove(gpu.0),
        };
    }

    /// The device to be taken first.
    #[inline]
    pub(crate) fn first(&self) -> Option<GpuId> {
        match self {
            IdleGpus::ById(gpus) => gpus.first().map(GpuId),
            IdleGpus::ByTime(gpus) => gpus.peek().map(|(_, gpu)| GpuId(gpu)),
        }
    }

    /// The number of idle devices.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        match self {
            IdleGpus::ById(gpus) => gpus.len(),
            IdleGpus::ByTime(gpus) => gpus.len(),
        }
    }
}
