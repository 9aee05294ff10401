//! One run of one sub-cluster in the simulator.

use downbeat_sched::{Delays, Priority, Rule};
use downbeat_sim::{
    Arrival, GpuClass, Jitter, Model, ModelReport, PolicyError, PolicySpec, RunReport, Scenario, Span, Until,
};
use downbeat_subclusters::{Problem, Subcluster};

/// Requests that the rarest model should have in a run: with fewer, whether 1 % of them are bad is chance.
pub(super) const RAREST: f64 = 2_000.0;

/// How long a run is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Length {
    /// Requests of the rarest model...
    pub(super) rarest: f64,
    /// ...unless that makes more than these in all.
    pub(super) most: f64,
}

/// Runs the real scheduler on `count` devices with the models of a sub-cluster, at their rates.
pub(super) fn run(
    problem: &Problem,
    subcluster: &Subcluster,
    count: u32,
    length: Length,
    seed: u64,
    until: Until,
) -> Result<RunReport, String> {
    let policy: PolicySpec = "adaptive".parse().map_err(|error: PolicyError| error.to_string())?;
    policy
        .run(&scenario(problem, subcluster, count, length, seed), seed, until)
        .map_err(|error| error.to_string())
}

fn scenario(problem: &Problem, subcluster: &Subcluster, count: u32, length: Length, seed: u64) -> Scenario {
    let models = || subcluster.models.iter().map(|&model| &problem.models[model]);
    let total_rps: f64 = models().map(|model| model.rate_rps).sum();
    let rarest_rps = models().map(|model| model.rate_rps).fold(f64::INFINITY, f64::min);
    let longest_ms = models().map(|model| model.slo_ms).fold(0.0, f64::max);
    let requests = (length.rarest / rarest_rps * total_rps).min(length.most);
    // The scheduler learns rates over a second; what is measured spans several of the longest requests' lives.
    let warmup = Span::from_millis_f64((longest_ms * 5.0).max(1_500.0));
    let measured = Span::from_secs_f64(requests / total_rps).max(Span::from_millis_f64(longest_ms * 10.0));
    Scenario {
        name: subcluster.name.clone(),
        classes: vec![GpuClass { name: problem.devices[subcluster.device].name.clone(), count }],
        duration: warmup + measured,
        warmup,
        seed,
        delays: Delays::default(),
        rule: Rule::ADAPTIVE,
        response_reserve: Span::ZERO,
        response: None,
        jitter: Jitter::None,
        total_rps,
        models: models()
            .map(|model| Model {
                name: model.name.clone(),
                slo: Span::from_millis_f64(model.slo_ms),
                share: model.rate_rps / total_rps,
                profiles: vec![model.profiles[subcluster.device].clone()],
                priority: Priority::default(),
                arrival: Arrival::Poisson,
            })
            .collect(),
        faults: Vec::new(),
        autoscale: None,
        subclusters: Vec::new(),
    }
}

/// Whether a run keeps bad requests to a share of `most` of each model. A model with few requests may have more of
/// them, by what chance alone gives in 98 of 100 cases; all such models together may not.
pub(super) fn keeps(models: &[ModelReport], most: f64) -> bool {
    let bad = |model: &ModelReport| (model.late + model.expired) as f64;
    let rare = |model: &&ModelReport| (model.offered as f64) < RAREST;
    let each = models.iter().all(|model| is_kept(bad(model), model.offered as f64, most));
    let rare_bad: f64 = models.iter().filter(rare).map(bad).sum();
    let rare_offered: f64 = models.iter().filter(rare).map(|model| model.offered as f64).sum();
    each && (rare_bad <= most * rare_offered || is_kept(rare_bad, rare_offered, most))
}

/// Whether so many bad requests of so many are within a share of `most`, with allowance for chance where there are few.
pub(super) fn is_kept(bad: f64, offered: f64, most: f64) -> bool {
    let chance = if offered < RAREST { 2.05 * (most * offered).sqrt() } else { 0.0 };
    bad <= most * offered + chance
}
