//! Policies: when a window opens, which requests are given up, which idle device is taken.
//!
//! A policy is a type, so that the choices are compiled into the scheduler instead of being looked up per event.

mod adaptive;
mod deferred;
mod drop;
mod eager;
mod guarded;
mod order;

use std::fmt::Debug;

use downbeat_profile::Span;

pub use adaptive::Adaptive;
pub use deferred::Deferred;
pub use drop::{DropRule, HeadroomDrop, TimeoutDrop, Traffic, WindowDrop};
pub use eager::Eager;
pub use guarded::Guarded;
pub use order::{EarliestFree, GpuOrder, SmallestId};

use crate::Release;

/// A scheduling policy: a rule for opening windows, with a [`DropRule`] and a [`GpuOrder`].
pub trait Policy: Clone + Debug {
    /// Which requests are given up for others.
    type Drop: DropRule;
    /// Which idle device is taken first.
    type Order: GpuOrder;
    /// The reason given for a batch that starts before its own window opened.
    const EARLY: Release;
    /// Whether deadlines are kept with a margin for batches that take longer than their profile, learned from those
    /// that did.
    const LEARNS_MARGIN: bool = false;

    /// How long before its frontrun a candidate of `latency` may start.
    fn head_start(&self, pressure: &Pressure, latency: Span) -> Span;
}

/// How hard one class of devices is pressed.
#[derive(Clone, Copy, Debug, Default)]
pub struct Pressure {
    /// Devices that take work.
    pub gpus: u32,
    /// The time that one device would need for the candidates of all models.
    pub backlog: Span,
    /// The devices that the traffic keeps busy if every model runs the largest batches it can sustain.
    pub need: Need,
}

/// A number of devices, in millionths: sums of it are exact in any order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Need(u64);

impl Need {
    /// So many devices. Negative numbers and NaN give none.
    pub fn from_gpus(gpus: f64) -> Need {
        Need((gpus * 1e6) as u64)
    }

    /// The number of devices.
    pub fn as_gpus(self) -> f64 {
        self.0 as f64 / 1e6
    }

    /// `self` with `old` replaced by `new` in the sum.
    pub(crate) fn replace(self, old: Need, new: Need) -> Need {
        Need(self.0.saturating_sub(old.0).saturating_add(new.0))
    }
}

impl Pressure {
    /// The devices that would have nothing to do; below 0 where there are too few.
    pub fn spare_gpus(&self) -> f64 {
        f64::from(self.gpus) - self.need.as_gpus()
    }

    /// How many times the traffic there could be; infinite where there is none.
    pub fn headroom(&self) -> f64 {
        f64::from(self.gpus) / self.need.as_gpus()
    }
}
