//! A plan beside what others would do, all of them sized and replayed by the same simulator.

use downbeat_milp::Backend;
use downbeat_subclusters::{Problem, Solution, Subcluster, rivals};
use serde::Serialize;

use super::SubclusterError;
use super::confirm::confirm;
use super::replay::replay_sized;

/// How divisions compare.
#[derive(Clone, Debug, Serialize)]
pub struct Comparison {
    /// The problem's name.
    pub problem: String,
    /// Downbeat's first.
    pub contenders: Vec<Contender>,
}

/// One way to divide the models.
#[derive(Clone, Debug, Serialize)]
pub struct Contender {
    /// What it is called.
    pub name: &'static str,
    /// How many sub-clusters it has.
    pub subclusters: usize,
    /// The GPUs it needs in simulation.
    pub gpus: u32,
    /// What the estimate asked for.
    pub estimated_gpus: u32,
    /// The models whose requests are in time for 99 %, in a replay with other arrivals.
    pub models_in_slo: usize,
    /// All models.
    pub models: usize,
    /// The GPUs more than Downbeat's, as a share of Downbeat's.
    pub more: f64,
}

/// Compares a solution with one cluster per model, a random division and one that balances rates. `on_done` is told of
/// each sub-cluster that was sized.
pub fn compare(
    problem: &Problem,
    solution: &Solution,
    seed: u64,
    backend: &Backend,
    on_done: &(dyn Fn() + Sync),
) -> Result<Comparison, SubclusterError> {
    let count = solution.subclusters.len();
    let divisions: [(&'static str, Option<Vec<Subcluster>>); 4] = [
        ("downbeat", Some(solution.subclusters.clone())),
        ("one cluster per model", rivals::one_per_model(problem)),
        ("random", rivals::at_random(problem, count, seed)),
        ("balanced by rate", rivals::by_rate(problem, count)),
    ];
    let mut contenders: Vec<Contender> = Vec::new();
    for (name, subclusters) in divisions {
        let Some(subclusters) = subclusters else { continue };
        let counts = confirm(problem, &subclusters, seed, on_done).map_err(SubclusterError::Simulation)?;
        let gpus = gpus(problem, &subclusters, &counts, backend)?;
        let estimates: Vec<u32> = subclusters.iter().map(|subcluster| subcluster.count).collect();
        let estimated_gpus = self::gpus(problem, &subclusters, &estimates, backend)?;
        let sized: Vec<(Subcluster, u32)> = subclusters.into_iter().zip(counts).collect();
        let replays = replay_sized(problem, &sized, seed).map_err(SubclusterError::Simulation)?;
        let passed = replays.iter().flat_map(|replay| &replay.models).filter(|model| model.passed).count();
        let own = contenders.first().map_or(gpus, |own| own.gpus);
        contenders.push(Contender {
            name,
            subclusters: sized.len(),
            gpus,
            estimated_gpus,
            models_in_slo: passed,
            models: problem.models.len(),
            more: f64::from(gpus) / f64::from(own.max(1)) - 1.0,
        });
    }
    Ok(Comparison { problem: problem.name.clone(), contenders })
}

/// The GPUs that devices are, or are cut from.
fn gpus(
    problem: &Problem,
    subclusters: &[Subcluster],
    counts: &[u32],
    backend: &Backend,
) -> Result<u32, SubclusterError> {
    let devices: Vec<(usize, u32)> =
        subclusters.iter().map(|subcluster| subcluster.device).zip(counts.iter().copied()).collect();
    Ok(problem.gpus_of(&devices, backend)?)
}
