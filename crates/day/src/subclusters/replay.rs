//! A plan replayed: every sub-cluster at its size, with other arrivals than it was sized with, and for longer.

use downbeat_sim::Until;
use downbeat_subclusters::{Plan, Problem, Subcluster};
use rayon::prelude::*;
use serde::Serialize;

use super::trial::{self, Length};
use crate::IN_SLO_LEAST;

/// A run that a plan is judged by.
const JUDGING: Length = Length { rarest: 2.0 * trial::RAREST, most: 600_000.0 };

/// Arrivals that no size was chosen with.
const OTHER_SEED: u64 = 0x5eed;

/// What became of one sub-cluster.
#[derive(Clone, Debug, Serialize)]
pub struct SubclusterReplay {
    /// Its name.
    pub subcluster: String,
    /// How busy its devices were.
    pub busy: f64,
    /// Its models.
    pub models: Vec<ModelReplay>,
    /// Whether all passed.
    pub passed: bool,
}

/// What became of one model.
#[derive(Clone, Debug, Serialize)]
pub struct ModelReplay {
    /// Its name.
    pub model: String,
    /// Requests that arrived.
    pub requests: u64,
    /// The share of them that finished in time.
    pub in_slo: f64,
    /// Its 99th percentile latency.
    pub p99_ms: f64,
    /// Whether that is enough. With fewer than 2,000 requests, 1 % of bad ones is allowed to be passed by what chance
    /// alone gives.
    pub passed: bool,
}

/// Replays every sub-cluster of a plan in the simulator.
pub fn replay(problem: &Problem, plan: &Plan, seed: u64) -> Result<Vec<SubclusterReplay>, String> {
    let index = |name: &String| problem.models.iter().position(|model| model.name == *name);
    let subclusters: Vec<(Subcluster, u32)> = plan
        .subclusters
        .iter()
        .map(|planned| {
            let device = problem.devices.iter().position(|device| device.name == planned.device);
            let models = planned.models.iter().filter_map(index).collect();
            let subcluster = Subcluster {
                name: planned.name.clone(),
                device: device.unwrap_or(0),
                count: planned.estimated,
                models,
            };
            (subcluster, planned.count)
        })
        .collect();
    replay_sized(problem, &subclusters, seed)
}

/// Replays sub-clusters at these sizes.
pub(super) fn replay_sized(
    problem: &Problem,
    subclusters: &[(Subcluster, u32)],
    seed: u64,
) -> Result<Vec<SubclusterReplay>, String> {
    let one = |(subcluster, count): &(Subcluster, u32)| {
        let run = trial::run(problem, subcluster, *count, JUDGING, seed ^ OTHER_SEED, Until::End)?;
        let models: Vec<ModelReplay> = (run.models.iter())
            .map(|model| ModelReplay {
                model: model.name.clone(),
                requests: model.offered,
                in_slo: 1.0 - model.bad_rate,
                p99_ms: model.p99_ms,
                passed: trial::is_kept(
                    (model.late + model.expired) as f64,
                    model.offered as f64,
                    1.0 - IN_SLO_LEAST,
                ),
            })
            .collect();
        Ok(SubclusterReplay {
            subcluster: subcluster.name.clone(),
            busy: run.gpus.busy_fraction.iter().sum::<f64>() / f64::from(*count),
            passed: models.iter().all(|model| model.passed),
            models,
        })
    };
    subclusters.par_iter().map(one).collect()
}
