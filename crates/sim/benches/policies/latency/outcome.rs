//! The figures that one run is judged by.

use downbeat_sim::{ModelReport, PolicySpec, RunReport, Scenario, Span, Until};
use rayon::prelude::*;

use crate::suite::can_run;

/// One policy's run.
pub(super) struct Outcome {
    /// As it was asked for.
    pub(super) policy: String,
    /// Late or given up, as a share of all requests.
    pub(super) lost: f64,
    /// Sum over the devices of the share of the time that each is busy.
    pub(super) busy_gpus: f64,
    /// By model; 0 where none of its requests ran.
    p50_ms: Vec<f64>,
    p99_ms: Vec<f64>,
}

/// Runs each policy that can run the scenario once, with the same arrivals. Outcomes are in the order of the policies.
pub(super) fn run(
    scenario: &Scenario,
    rate_rps: f64,
    requests: u64,
    policies: &[PolicySpec],
) -> Vec<Outcome> {
    let measured = Span::from_secs_f64(requests as f64 / rate_rps);
    let scenario = scenario.with_rate(rate_rps).with_measured(measured);
    policies
        .par_iter()
        .filter(|policy| can_run(policy, &scenario))
        // `nexus` has no plan for some mixes.
        .filter_map(|policy| policy.run(&scenario, scenario.seed, Until::End).ok())
        .map(|report| Outcome::of(&report))
        .collect()
}

impl Outcome {
    fn of(report: &RunReport) -> Outcome {
        let sum = |count: fn(&ModelReport) -> u64| report.models.iter().map(count).sum::<u64>() as f64;
        Outcome {
            policy: report.policy.clone(),
            lost: sum(|model| model.late + model.expired) / sum(|model| model.offered).max(1.0),
            busy_gpus: report.gpus.busy_fraction.iter().sum(),
            p50_ms: report.models.iter().map(|model| model.p50_ms).collect(),
            p99_ms: report.models.iter().map(|model| model.p99_ms).collect(),
        }
    }

    /// Mean over the models.
    pub(super) fn mean_p50_ms(&self) -> f64 {
        mean(self.p50_ms.iter().copied().filter(|&ms| ms > 0.0))
    }

    /// Mean over the models.
    pub(super) fn mean_p99_ms(&self) -> f64 {
        mean(self.p99_ms.iter().copied().filter(|&ms| ms > 0.0))
    }

    /// Over the rival's p50, model by model: the geometric mean.
    pub(super) fn p50_over(&self, rival: &Outcome) -> f64 {
        geometric_mean_ratio(&self.p50_ms, &rival.p50_ms)
    }

    /// Over the rival's p99, model by model: the geometric mean.
    pub(super) fn p99_over(&self, rival: &Outcome) -> f64 {
        geometric_mean_ratio(&self.p99_ms, &rival.p99_ms)
    }
}

/// Of models that have run under both.
fn geometric_mean_ratio(ours: &[f64], theirs: &[f64]) -> f64 {
    let both = ours.iter().zip(theirs).filter(|(ours, theirs)| **ours > 0.0 && **theirs > 0.0);
    mean(both.map(|(ours, theirs)| (ours / theirs).ln())).exp()
}

/// 0 of nothing.
pub(super) fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let (sum, count) = values.fold((0.0, 0), |(sum, count), value| (sum + value, count + 1));
    sum / f64::from(count.max(1))
}
