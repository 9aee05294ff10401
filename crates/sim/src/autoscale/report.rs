//! What a replay found out, as data.

use serde::Serialize;

use super::ledger::Tally;

/// A model-minute with fewer requests says too little about a share of 1 %.
pub(super) const COUNTED: u64 = 1_000;

/// The share of bad requests that an objective of 99 % allows.
pub(super) const BAD_MAX: f64 = 0.01;

/// One scenario, scaled by several rules.
#[derive(Clone, Debug, Serialize)]
pub struct ReplayReport {
    /// The scenario's name.
    pub scenario: String,
    /// The seed of the arrivals.
    pub seed: u64,
    /// How long a GPU takes to come.
    pub provision_s: f64,
    /// The length of the run.
    pub duration_s: f64,
    /// Times after surges and failures for which too few GPUs are excused.
    pub excuses: Vec<Excuse>,
    /// What each rule did: Downbeat's first, then fixed peak capacity, the other rules, the clairvoyant minimum.
    pub runs: Vec<ScaledRun>,
    /// What is to be known before the numbers are believed, in sentences.
    pub notes: Vec<String>,
    /// Requests simulated, all runs together.
    pub requests_simulated: u64,
    /// Seconds the replay took on this machine; 0 until whoever holds a clock fills it in.
    pub wall_s: f64,
}

/// A time for which too few GPUs are excused.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Excuse {
    /// What began it.
    pub why: String,
    /// When it began.
    pub from_s: f64,
    /// When new GPUs can have been there for half a minute.
    pub until_s: f64,
}

/// The scenario scaled by one rule.
#[derive(Clone, Debug, Serialize)]
pub struct ScaledRun {
    /// The rule.
    pub name: String,
    /// The rule, with its settings, in a sentence.
    pub about: String,
    /// GPU time paid for, from when a GPU is asked for to when it is given back.
    pub gpu_hours: f64,
    /// The share of fixed peak capacity's GPU time that was saved.
    pub saved: f64,
    /// What was saved, as a share of what the clairvoyant saves.
    pub saved_of_clairvoyant: f64,
    /// The share of all requests that were late, dropped or never answered.
    pub bad_rate: f64,
    /// Model-minutes of at least 1,000 requests.
    pub model_minutes: u64,
    /// Those of them with more than 1 % bad...
    pub missed: u64,
    /// ...and those of these that no excuse covers.
    pub missed_unexcused: u64,
    /// The fewest GPUs that took work in any minute.
    pub gpus_least: u32,
    /// The most.
    pub gpus_most: u32,
    /// How often the number of GPUs was changed.
    pub changes: u64,
    /// How often after the first ten minutes.
    pub changes_after_start: u64,
    /// Each minute.
    pub minutes: Vec<MinuteReport>,
    /// Each change, where the rule says why.
    pub log: Vec<Change>,
}

/// One minute of a run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct MinuteReport {
    /// GPUs that took work, at its end.
    pub gpus: u32,
    /// GPUs that were asked for and not there yet, at its end.
    pub coming: u32,
    /// Requests a second.
    pub rate_rps: f64,
    /// The share of requests that were bad.
    pub bad_rate: f64,
    /// The largest bad rate of any model with at least 1,000 requests.
    pub bad_rate_worst: f64,
    /// GPUs' worth of time that the traffic needs, as the scheduler reckons.
    pub needed: f64,
    /// GPUs' worth of time that was used.
    pub busy: f64,
}

/// One change of the number of GPUs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Change {
    /// When.
    pub at_s: f64,
    /// How many there were, those coming included.
    pub from: u32,
    /// How many there were to be.
    pub to: u32,
    /// What decided.
    pub reason: String,
    /// The reason in words and numbers.
    pub explanation: String,
}

/// What the model-minutes of a run add up to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Misses {
    pub(super) counted: u64,
    pub(super) missed: u64,
    pub(super) unexcused: u64,
}

impl Misses {
    pub(super) fn of(minutes: &[Vec<Tally>], excuses: &[Excuse]) -> Misses {
        let mut misses = Misses::default();
        for (minute, tallies) in minutes.iter().enumerate() {
            let (from_s, until_s) = (60.0 * minute as f64, 60.0 * (minute + 1) as f64);
            let excused = excuses.iter().any(|excuse| excuse.from_s < until_s && from_s < excuse.until_s);
            for tally in tallies.iter().filter(|tally| tally.answered >= COUNTED) {
                misses.counted += 1;
                if tally.bad_rate() > BAD_MAX {
                    misses.missed += 1;
                    misses.unexcused += u64::from(!excused);
                }
            }
        }
        misses
    }
}
