//! What a device really takes, against what its profile says.

use downbeat_profile::Span;

/// How much one batch counts.
const WEIGHT: f64 = 1.0 / 16.0;

/// Fewer batches say nothing.
const SAMPLES_MIN: u32 = 8;

/// A change smaller than this is not worth planning anew.
const CHANGE_MIN: f64 = 0.05;

/// Follows how long batches take compared to the measured profile. The scheduler's margin takes care of variation from
/// batch to batch; this takes care of a device that is slower or faster than it was when it was measured.
#[derive(Clone, Copy, Debug)]
pub(super) struct Correction {
    ratio: f64,
    applied: f64,
    samples: u32,
}

impl Default for Correction {
    fn default() -> Correction {
        Correction { ratio: 1.0, applied: 1.0, samples: 0 }
    }
}

impl Correction {
    /// Learns from a batch; the factor for the whole profile where it should change.
    pub(super) fn observe(&mut self, profiled: Span, taken: Span) -> Option<f64> {
        let ratio = taken.as_nanos() as f64 / profiled.as_nanos().max(1) as f64;
        self.samples = self.samples.saturating_add(1);
        // The first ones weigh alike, or a single outlier would stand for all.
        let weight = WEIGHT.max(1.0 / f64::from(self.samples));
        // One batch that was held up for a second must not shut a model out.
        self.ratio += weight * (ratio.min(4.0 * self.ratio) - self.ratio);
        let changed = (self.ratio / self.applied - 1.0).abs() > CHANGE_MIN;
        (changed && self.samples >= SAMPLES_MIN).then(|| {
            self.applied = self.ratio;
            self.ratio
        })
    }
}
