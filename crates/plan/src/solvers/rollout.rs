//! Completing a deployment at random but sensibly: the slow algorithm's playout, and how the genetic one refills what it erased.

use std::collections::BTreeMap;

use rand::RngExt;
use rand_xoshiro::Xoshiro256PlusPlus;

use super::deployment::{Deployment, Filled};

/// Services that GPUs are composed of at each step.
const SERVICES: usize = 5;
/// GPUs kept of those composed.
const KEPT: usize = 10;
/// How often the best of the kept ones is taken, and not any of them.
const BEST: f64 = 0.8;
/// A remembered pool is made anew when its best GPU helps less than this share of what it once did.
const STALE: f64 = 0.7;

/// Completes deployments, and remembers which GPUs were good for which kind of situation.
pub(crate) struct Rollout {
    pub(crate) random: Xoshiro256PlusPlus,
    /// By coarse type: which services lack something, and whether much.
    pools: BTreeMap<Vec<u8>, Vec<Filled>>,
}

/// Remembered pools, at most.
const MOST_POOLS: usize = 20_000;

impl Rollout {
    pub(crate) fn new(random: Xoshiro256PlusPlus) -> Rollout {
        Rollout { random, pools: BTreeMap::new() }
    }

    /// Adds GPUs until every demand is met or `most_cost` is passed; the GPUs added, or none where it was passed.
    pub(crate) fn complete(&mut self, state: &mut Deployment<'_>, most_cost: f64) -> Option<Vec<Filled>> {
        let mut added = Vec::new();
        let mut cost = state.allocation.cost(state.problem);
        while state.is_lacking() {
            let gpu = self.step(state)?;
            cost += state.problem.cost(gpu.configuration);
            if cost > most_cost {
                return None;
            }
            state.add(&gpu);
            added.push(gpu);
        }
        Some(added)
    }

    /// A GPU to add next.
    fn step(&mut self, state: &Deployment<'_>) -> Option<Filled> {
        let kind = coarse_type(state);
        let remembered = self.pools.get(&kind).and_then(|pool| {
            let scored: Vec<Filled> =
                pool.iter().map(|gpu| Filled { score: state.score(gpu), ..gpu.clone() }).collect();
            let best = scored.iter().map(|gpu| gpu.score).fold(0.0, f64::max);
            let was = pool.iter().map(|gpu| gpu.score).fold(0.0, f64::max);
            (best > STALE * was).then_some(scored)
        });
        let pool = match remembered {
            Some(pool) => pool,
            None => {
                let pool = self.compose(state);
                if self.pools.len() < MOST_POOLS {
                    self.pools.insert(kind, pool.clone());
                }
                pool
            }
        };
        let worth = |gpu: &&Filled| gpu.score / state.problem.cost(gpu.configuration);
        let useful: Vec<&Filled> = pool.iter().filter(|gpu| gpu.score > 0.0).collect();
        let chosen = if self.random.random_bool(BEST) {
            useful.iter().copied().max_by(|a, b| worth(a).total_cmp(&worth(b)))
        } else {
            useful.get(self.random.random_range(0..useful.len().max(1))).copied()
        }?;
        Some(state.fill_up(chosen.clone(), &state.unsatisfied()))
    }

    /// The best GPUs of a few services that lack something.
    pub(crate) fn compose(&mut self, state: &Deployment<'_>) -> Vec<Filled> {
        let mut services = state.unsatisfied();
        while services.len() > SERVICES {
            services.swap_remove(self.random.random_range(0..services.len()));
        }
        let mut found: Vec<Filled> = Vec::new();
        for configuration in state.open_configurations() {
            for (index, &first) in services.iter().enumerate() {
                for &second in &services[index..] {
                    let pair = [first, second];
                    found.push(state.fill(configuration, if first == second { &pair[..1] } else { &pair }));
                }
            }
        }
        let worth = |gpu: &Filled| gpu.score / state.problem.cost(gpu.configuration);
        found.sort_by(|a, b| worth(b).total_cmp(&worth(a)));
        found.dedup();
        found.truncate(KEPT);
        found
    }
}

/// Which services lack nothing, little or much.
fn coarse_type(state: &Deployment<'_>) -> Vec<u8> {
    state
        .lacking
        .iter()
        .map(|&lacking| {
            if lacking <= 0.0 {
                0
            } else if lacking < 0.2 {
                1
            } else {
                2
            }
        })
        .collect()
}
