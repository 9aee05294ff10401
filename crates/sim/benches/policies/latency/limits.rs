//! Limits on how much slower than its best rival `adaptive` may be.

use super::LOADS;

/// Scenarios with at most this many devices have limits of their own: there, waiting for a larger batch costs more.
pub(super) const FEW_GPUS: u32 = 4;

/// A single scenario may be this many times over the limit of the mean.
const EACH: f64 = 1.25;

/// By load, in the order of [`LOADS`], with more than [`FEW_GPUS`] devices.
const P50: [f64; LOADS.len()] = [1.1, 1.1, 1.4, 1.25, 1.1];

/// With few devices.
const P50_FEW_GPUS: [f64; LOADS.len()] = [1.2, 2.5, 2.5, 1.25, 1.1];

/// With any number of devices. At higher loads p99 follows from the objective.
const P99: [Option<f64>; LOADS.len()] = [Some(1.3), Some(1.3), None, None, None];

/// A limit for the mean of a group and for each of its members.
pub(super) struct Limit(Option<f64>);

impl Limit {
    /// By the load's place in [`LOADS`].
    pub(super) fn p50(load: usize, few_gpus: bool) -> Limit {
        Limit(Some(if few_gpus { P50_FEW_GPUS[load] } else { P50[load] }))
    }

    /// By the load's place in [`LOADS`].
    pub(super) fn p99(load: usize) -> Limit {
        Limit(P99[load])
    }

    /// A group's mean beside the limit.
    pub(super) fn of_mean(&self, mean: f64) -> String {
        Limit::compare(mean, self.0)
    }

    /// One member's ratio beside the limit.
    pub(super) fn of_each(&self, ratio: f64) -> String {
        Limit::compare(ratio, self.each())
    }

    /// One member's ratio is over its limit.
    pub(super) fn is_passed_by(&self, ratio: f64) -> bool {
        self.each().is_some_and(|limit| ratio > limit)
    }

    fn each(&self) -> Option<f64> {
        self.0.map(|limit| EACH * limit)
    }

    fn compare(ratio: f64, limit: Option<f64>) -> String {
        match limit {
            Some(limit) if ratio > limit => format!("**{ratio:.3}** > {limit:.3}"),
            Some(limit) => format!("{ratio:.3} <= {limit:.3}"),
            None => format!("{ratio:.3}"),
        }
    }
}
