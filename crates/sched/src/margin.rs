//! How much longer than its profile a batch may take.

use downbeat_profile::Span;

/// The share of batches that may be late: half of the 1 % of requests that may be bad.
const LATE_SHARE: f64 = 0.005;
/// How much the margin grows with a batch that is late; it shrinks by `LATE_SHARE` of that with one that is not.
const STEP: f64 = 0.05;

/// With more batches running at once than this, each counts for less.
const FULL_WEIGHT: u32 = 16;
/// However late batches are, no more is kept than for one that takes so many times as long.
const MOST: f64 = 2.0;

/// A factor on latencies with which all but a few batches are in time, learned from those that were late.
///
/// One step per batch: at rest, the few steps up and the many small steps down cancel. What keeps to its profile needs
/// no margin, and neither does what starts early for another reason. After a disturbance the margin is forgotten within
/// some hundred batches.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Margin(f64);

impl Default for Margin {
    fn default() -> Self {
        Margin(1.0)
    }
}

impl Margin {
    /// Learns whether a batch finished after the earliest deadline in it, one of `running` that were sent by then.
    pub(crate) fn observe(&mut self, late: bool, running: u32) {
        // Those that run at once were all sent with the same margin, and one disturbance makes many of them late.
        let weight = f64::from(FULL_WEIGHT) / f64::from(running.max(FULL_WEIGHT));
        let step = if late { STEP * (1.0 - LATE_SHARE) } else { -STEP * LATE_SHARE };
        self.0 = (self.0 + weight * step).clamp(1.0, MOST);
    }

    /// The latency with the margin.
    #[inline]
    pub(crate) fn stretch(self, latency: Span) -> Span {
        if self.0 == 1.0 { latency } else { self.stretched(latency) }
    }

    // Out of line: it is several times as long as all that surrounds it, and mostly there is no margin.
    #[cold]
    fn stretched(self, latency: Span) -> Span {
        Span::from_nanos((latency.as_nanos() as f64 * self.0) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::Margin;
    use crate::Span;

    const PREDICTED: Span = Span::from_millis(10);

    #[test]
    fn batches_that_are_in_time_need_no_margin() {
        let mut margin = Margin::default();
        (0..1_000).for_each(|_| margin.observe(false, 1));
        assert_eq!(margin.stretch(PREDICTED), PREDICTED);
    }

    /// A stall of the whole machine: a thousand batches run at once, and two hundred are late by it.
    #[test]
    fn one_disturbance_that_makes_many_batches_late_does_not_ruin_the_margin() {
        let mut margin = Margin::default();
        (0..200).for_each(|_| margin.observe(true, 1_000));
        assert!(margin.stretch(PREDICTED) < Span::from_micros(11_700), "{margin:?}");
        (0..100_000).for_each(|_| margin.observe(true, 1));
        assert_eq!(margin.stretch(PREDICTED), PREDICTED * 2);
    }

    /// Batches sent at the last moment take up to 3 ms longer than predicted.
    #[test]
    fn a_margin_leaves_about_one_batch_in_two_hundred_late_and_is_forgotten_again() {
        let mut margin = Margin::default();
        let taken = |turn: u64| PREDICTED + Span::from_micros(turn * 7_919 % 3_000);
        let late = (0..20_000)
            .filter(|&turn| {
                let late = taken(turn) > margin.stretch(PREDICTED);
                margin.observe(late, 1);
                late
            })
            .count();
        assert!((80..130).contains(&late), "{late} of 20,000 late, in the end with {margin:?}");
        (0..2_000).for_each(|_| margin.observe(false, 1));
        assert_eq!(margin.stretch(PREDICTED), PREDICTED);
    }
}
