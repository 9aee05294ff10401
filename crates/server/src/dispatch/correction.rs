//! What a device really takes, against what its profile says.

#[cfg(test)]
mod tests;

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
    /// Of the last two batches: with the next one, they have a median.
    last: [f64; 2],
}

impl Default for Correction {
    fn default() -> Correction {
        Correction::known(1.0, 0)
    }
}

/// Batches by which a shape that was never measured is known.
const TRIALS: usize = 3;

/// The first batches of a shape that was never measured. The first one of all may take far longer than those after it,
/// as engines make ready what they need for a shape, so that no single one is trusted.
#[derive(Clone, Debug, Default)]
pub(super) struct Trial {
    ratios: Vec<f64>,
}

impl Trial {
    /// Learns from a batch; what is known when there were enough.
    pub(super) fn observe(&mut self, profiled: Span, taken: Span) -> Option<Correction> {
        self.ratios.push(ratio(profiled, taken));
        self.ratios.sort_by(f64::total_cmp);
        let median = *self.ratios.get(TRIALS / 2)?;
        let samples = self.ratios.len();
        (samples >= TRIALS).then(|| Correction::known(median, samples as u32))
    }
}

fn ratio(profiled: Span, taken: Span) -> f64 {
    taken.as_nanos().max(1) as f64 / profiled.as_nanos().max(1) as f64
}

impl Correction {
    fn known(ratio: f64, samples: u32) -> Correction {
        Correction { ratio, applied: ratio, samples, last: [ratio; 2] }
    }

    /// The factor that the profile was last corrected by.
    pub(super) fn applied(&self) -> f64 {
        self.applied
    }

    /// Learns from a batch; the factor for the whole profile where it should change.
    pub(super) fn observe(&mut self, profiled: Span, taken: Span) -> Option<f64> {
        let ratio = self.typical(ratio(profiled, taken));
        self.samples = self.samples.saturating_add(1);
        // The first ones weigh alike, or a single outlier would stand for all.
        let weight = WEIGHT.max(1.0 / f64::from(self.samples));
        // Several that were held up for a second must not shut a model out.
        self.ratio += weight * (ratio.min(4.0 * self.ratio) - self.ratio);
        let changed = (self.ratio / self.applied - 1.0).abs() > CHANGE_MIN;
        (changed && self.samples >= SAMPLES_MIN).then(|| {
            self.applied = self.ratio;
            self.ratio
        })
    }

    /// The median of the last three batches: one that was held up, by a host that stood still for a moment, says
    /// nothing about the device.
    fn typical(&mut self, ratio: f64) -> f64 {
        let [older, newer] = self.last;
        self.last = [newer, ratio];
        ratio.clamp(older.min(newer), older.max(newer))
    }
}
