//! Which requests are given up so that those behind them can run in a larger batch.

use std::fmt::Debug;

use downbeat_profile::{LatencyProfile, Span};

use super::{Need, Room, Stance};
use crate::Delays;

/// How many rows more than the mean a burst brings, by how far its dispersion is above that of Poisson arrivals. It
/// would be a half if batches took long beside bursts; but a need that is reckoned too low costs more than one too
/// high.
const BURST_ROWS: f64 = 0.25;

/// How many heads are given up for a row that would else not run, where devices are short: two of three would be lost
/// anyway.
const HEADS_FOR_A_ROW: f64 = 3.0;

/// Which requests are given up so that those behind them can run in a larger batch.
pub trait DropRule: Clone + Debug {
    /// The batch size, in rows, for whose sake the heads of the queue are given up, at least 1.
    fn target(traffic: &Traffic<'_>) -> u32;

    /// The batch size, in rows, past which a batch does not wait for more, where it gives up heads for `target`; as
    /// many as can be, unless the rule says otherwise.
    fn enough(_: &Traffic<'_>, _target: u32) -> u32 {
        u32::MAX
    }
}

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
    /// [`Pressure::room`](super::Pressure::room) of the class.
    pub room: Room,
    /// [`Pressure::longest`](super::Pressure::longest) of the class.
    pub longest: Span,
}

impl Traffic<'_> {
    /// The largest batch that can both be gathered and run inside the objective: l(b) + b/r <= s.
    pub fn sustainable(&self) -> u32 {
        let budget = self.allowance - self.delays.control;
        let gathered = self.profile.largest_within(budget, self.delays.data + self.gap);
        gathered.max(self.rows.min(self.profile.max_batch())).max(1)
    }

    /// The batch that comes together in time, in the mean: the sustainable one, or more where requests come in bursts.
    ///
    /// A head is followed by more than even spacing would bring, because it is most likely part of a burst.
    fn gathered(&self) -> u32 {
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
        Need::new(mean, mean * (bursts / arrivals.max(1.0)).sqrt())
            .with_patience(patience)
            .with_alone(self.profile.latency(1))
    }

    /// l(b)/b: the device time of one row in a batch of `batch`.
    fn cost_ns(&self, batch: u32) -> f64 {
        self.profile.latency(batch).as_nanos() as f64 / f64::from(batch)
    }

    /// Whether a batch of `batch` is to grow by a row at the price of the heads that then cannot be in time.
    ///
    /// Deadlines are as far apart as arrivals, so a batch that takes longer by `more` costs `more / gap` heads. What it
    /// gains is device time: as much as the other rows' parts in it get smaller, which is enough for `1 - batch * more
    /// / l(batch)` rows.
    fn is_worth_growing(&self, batch: u32) -> bool {
        let latency_ns = self.profile.latency(batch).as_nanos() as f64;
        let more_ns = self.profile.latency(batch + 1).as_nanos() as f64 - latency_ns;
        let heads = more_ns / self.gap.as_nanos() as f64;
        let rows = 1.0 - f64::from(batch) * more_ns / latency_ns;
        heads < HEADS_FOR_A_ROW * self.room.want * rows
    }
}

/// Only requests that could not finish even alone are given up.
#[derive(Clone, Copy, Debug, Default)]
pub struct TimeoutDrop;

impl DropRule for TimeoutDrop {
    fn target(_: &Traffic<'_>) -> u32 {
        1
    }
}

/// Heads that stand in the way of the largest batch that the traffic can sustain are given up.
///
/// Holds the throughput when there is more load than devices, where [`TimeoutDrop`] spends every batch on requests that
/// are nearly dead; gives up too much when there is less.
#[derive(Clone, Copy, Debug, Default)]
pub struct WindowDrop;

impl DropRule for WindowDrop {
    fn target(traffic: &Traffic<'_>) -> u32 {
        traffic.sustainable()
    }
}

/// Heads are given up only for the smallest batch that still keeps up with the traffic.
///
/// A batch smaller than the one that is gathered costs more device time per row. With headroom h that is affordable up
/// to h times the cost of the gathered batch: the queue gets shorter all the same, and no request is given up for
/// nothing. Below that size the queue would grow, every batch would be spent on requests that are nearly dead, and it
/// would not recover. Without headroom this is [`WindowDrop`], with plenty [`TimeoutDrop`].
///
/// Where requests are lost and the model has the devices to itself, what it does not need is of use to nobody but
/// itself: then heads are given up for a larger batch as long as it gains more rows than it costs heads. With a single
/// device that is so unless the profile is steep.
///
/// And a batch waits for no more than others can wait for its end.
///
/// All this where `adaptive`'s own rule is followed; under another [`Stance`] it is that one's drop rule.
#[derive(Clone, Copy, Debug, Default)]
pub struct HeadroomDrop;

impl DropRule for HeadroomDrop {
    fn target(traffic: &Traffic<'_>) -> u32 {
        match traffic.room.stance {
            Stance::Own => {}
            Stance::Lenient => return TimeoutDrop::target(traffic),
            Stance::Deferred | Stance::Guarded1 | Stance::Guarded2 | Stance::Guarded4 | Stance::Eager => {
                return WindowDrop::target(traffic);
            }
        }
        let gathered = traffic.gathered();
        let affordable_ns = traffic.room.headroom * traffic.cost_ns(gathered);
        let keeps_up = first(1, gathered, |batch| traffic.cost_ns(batch) <= affordable_ns);
        if traffic.room.want > 0.0 {
            first(keeps_up, gathered, |batch| !traffic.is_worth_growing(batch))
        } else {
            keeps_up
        }
    }

    /// So that others can wait for its end, but no smaller than keeps up with the traffic. Where even a request alone
    /// is longer than others can wait, smaller batches would only make more of them wait.
    fn enough(traffic: &Traffic<'_>, target: u32) -> u32 {
        let Traffic { profile, longest, .. } = traffic;
        let own = traffic.room.stance == Stance::Own;
        if !own || *longest == Span::MAX || profile.latency(1) > *longest * 2 {
            return u32::MAX;
        }
        profile.largest_within(*longest, Span::ZERO).max(target)
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
