//! Which of several idle devices is taken.

use std::fmt::Debug;

use crate::Time;

/// Which of several idle devices is taken.
pub trait GpuOrder: Clone + Debug {
    /// What idle devices are ordered by, before their ids.
    type Key: Ord + Copy + Debug;

    /// The key of a device that became idle at `free_at`.
    fn key(free_at: Time) -> Self::Key;
}

/// The device with the smallest id: load gathers on few devices, and what is too much is whole idle ones.
#[derive(Clone, Copy, Debug, Default)]
pub struct SmallestId;

impl GpuOrder for SmallestId {
    type Key = ();

    fn key(_free_at: Time) {}
}

/// The device that has been idle for longest: load goes round, as in the public code of Symphony's authors.
#[derive(Clone, Copy, Debug, Default)]
pub struct EarliestFree;

impl GpuOrder for EarliestFree {
    type Key = Time;

    fn key(free_at: Time) -> Time {
        free_at
    }
}
