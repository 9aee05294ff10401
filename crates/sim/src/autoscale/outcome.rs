//! What running one rule gave.

use downbeat_sched::Span;

use super::report::{Change, MinuteReport, Misses, ScaledRun};

/// The first minutes, in which a rule finds its level.
const START: Span = Span::from_millis(600_000);

/// What running one rule gave, before it is compared.
pub(super) struct Outcome {
    pub(super) name: String,
    pub(super) about: String,
    pub(super) gpu_seconds: f64,
    pub(super) minutes: Vec<MinuteReport>,
    pub(super) misses: Misses,
    pub(super) answered: u64,
    pub(super) bad: u64,
    pub(super) changes: Vec<Change>,
    pub(super) requests: u64,
}

impl Outcome {
    /// Compares it, by GPU time, with fixed peak capacity and the clairvoyant minimum.
    pub(super) fn compared(self, fixed_s: f64, least_s: f64) -> ScaledRun {
        let per = |part: f64, whole: f64| if whole > 0.0 { part / whole } else { 0.0 };
        let start_s = START.as_secs_f64();
        let gpus = || self.minutes.iter().map(|minute| minute.gpus);
        ScaledRun {
            gpu_hours: self.gpu_seconds / 3600.0,
            saved: per(fixed_s - self.gpu_seconds, fixed_s),
            saved_of_clairvoyant: per(fixed_s - self.gpu_seconds, fixed_s - least_s),
            bad_rate: per(self.bad as f64, self.answered as f64),
            model_minutes: self.misses.counted,
            missed: self.misses.missed,
            missed_unexcused: self.misses.unexcused,
            gpus_least: gpus().min().unwrap_or(0),
            gpus_most: gpus().max().unwrap_or(0),
            changes: self.changes.len() as u64,
            changes_after_start: self.changes.iter().filter(|change| change.at_s > start_s).count() as u64,
            name: self.name,
            about: self.about,
            minutes: self.minutes,
            log: self.changes,
        }
    }
}
