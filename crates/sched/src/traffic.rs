//! What a model knows of its traffic, and the batch sizes that follow from it.

use downbeat_profile::{LatencyProfile, Span};

use crate::pool::SPARE_FACTOR;
use crate::{Delays, DropRule, Need, Room};

/// How many rows more than the mean a burst brings, by how far its dispersion is above that of Poisson arrivals. It
/// would be a half if batches took long beside bursts; but a need that is reckoned too low costs more than one too
/// high.
const BURST_ROWS: f64 = 0.25;

/// What a model knows of its traffic on one class of devices.
#[derive(Clone, Copy, Debug)]
pub struct Traffic<'a> {
    /// l(b) there.
    pub profile: &'a LatencyProfile,
    /// What a start costs before the device can begin.
    pub delays: &'a Delays,
    /// The mean time between two rows.
    pub gap: Span,
    /// The mean rows of a request, at least 1: there is no smaller batch.
    pub rows: u32,
    /// The time from arrival to deadline.
    pub allowance: Span,
    /// The squared coefficient of variation of the time between arrivals: 1 for Poisson, more for bursts and where some
    /// requests have far more rows than others.
    pub dispersion: f64,
    /// [`Pressure::room`](crate::Pressure::room) of the class.
    pub room: Room,
}

impl Traffic<'_> {
    /// The largest batch that can both be gathered and run inside the objective: l(b) + b/r <= s.
    pub fn sustainable(&self) -> u32 {
        let budget = self.allowance - self.delays.control;
        let gathered = self.profile.largest_within(budget, self.delays.data + self.gap);
        gathered.max(self.rows.min(self.profile.max_batch())).max(1)
    }

    /// The batch that comes together in time, in the mean: the sustainable one, or more where requests come in bursts;
    /// less where fewer rows cost less device time each.
    ///
    /// A head is followed by more than even spacing would bring, because it is most likely part of a burst.
    fn gathered(&self) -> u32 {
        self.profile.cheapest_up_to(self.gathered_at_most()).max(self.rows.min(self.profile.max_batch()))
    }

    fn gathered_at_most(&self) -> u32 {
        let bursts = self.dispersion - 1.0;
        if bursts <= 0.0 || self.gap == Span::MAX {
            return self.sustainable();
        }
        let ahead_ns = BURST_ROWS * bursts * self.gap.as_nanos() as f64;
        let budget = self.allowance - self.delays.control;
        let gathered = self
            .profile
            .largest_within(budget + Span::from_nanos(ahead_ns as u64), self.delays.data + self.gap);
        // However many come at once, there must be time to run them.
        let in_time = self.profile.largest_within(budget, self.delays.data);
        gathered.min(in_time).max(self.sustainable())
    }

    /// The devices that the traffic keeps busy in the batches that it gathers.
    ///
    /// It varies by what comes in while a request may wait: n arrivals on average have a variance of n times the
    /// dispersion. Only what is beyond Poisson arrivals counts: their own variation is what waiting evens out.
    pub fn need(&self) -> Need {
        if self.gap == Span::MAX {
            return Need::default();
        }
        let gap_ns = self.gap.as_nanos() as f64;
        let mean = self.cost_ns(self.gathered()) / gap_ns;
        let arrivals = self.allowance.as_nanos() as f64 / gap_ns;
        let bursts = (self.dispersion - 1.0).max(0.0);
        let patience = self.allowance - self.delays.lead(1) - self.profile.latency(1);
        Need::new(mean, mean * (bursts / arrivals.max(1.0)).sqrt()).with_patience(patience)
    }

    /// l(b)/b: the device time of one row in a batch of `batch`.
    fn cost_ns(&self, batch: u32) -> f64 {
        self.profile.latency(batch).as_nanos() as f64 / f64::from(batch)
    }

    /// The batch size, in rows, for whose sake the heads of the queue are given up, at least 1.
    pub fn target(&self) -> u32 {
        match self.room.rule.drop {
            DropRule::Timeout => 1,
            DropRule::Window => self.sustainable(),
            DropRule::SmallestStable => self.smallest_stable(),
        }
    }

    /// Returns `true` where device time is short, so that a batch is to have a size that pays.
    pub fn is_short_of_devices(&self) -> bool {
        self.room.rule.drop == DropRule::SmallestStable && self.room.headroom < SPARE_FACTOR
    }

    fn smallest_stable(&self) -> u32 {
        let gathered = self.gathered();
        let affordable_ns = self.room.headroom * self.cost_ns(gathered);
        first(1, gathered, |batch| self.cost_ns(self.profile.cheapest_up_to(batch)) <= affordable_ns)
    }
}

/// The first batch size from `low` on for which `holds`, if it does for all that are larger; `high` where it does for
/// none.
fn first(mut low: u32, mut high: u32, holds: impl Fn(u32) -> bool) -> u32 {
    while low < high {
        let middle = low + (high - low) / 2;
        if holds(middle) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    high
}

#[cfg(test)]
mod tests;
