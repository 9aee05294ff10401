//! Completing a deployment at random but sensibly: the slow algorithm's playout, and how the genetic one refills what
//! it erased.

use std::collections::BTreeMap;

use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::deployment::{Deployment, Filled};
use super::fit::fit_rest;
use super::greedy::over_limit;
use super::taste::{Taste, Worth};
use crate::problem::Problem;
use crate::solver::Run;

/// Services that GPUs are composed of at each step.
const SERVICES: usize = 5;
/// GPUs kept of those composed.
const KEPT: usize = 10;
/// How often the best of the kept ones is taken, and not any of them.
const BEST: f64 = 0.8;
/// A remembered pool is made anew when its best GPU helps less than this share of what it once did.
const STALE: f64 = 0.7;

/// Completes deployments, and remembers which GPUs were good for which kind of situation.
pub(crate) struct Rollout<'a> {
    pub(crate) random: Xoshiro256PlusPlus,
    worth: &'a Worth,
    run: &'a Run<'a>,
    /// By coarse type: which services lack something, and whether much. Each taste has its own.
    pools: Vec<BTreeMap<Vec<u8>, Vec<Filled>>>,
    tastes: Vec<Taste>,
    /// The taste of this playout.
    taste: usize,
}

/// How often all that lacks is fitted at once.
const FITTED: f64 = 0.5;
/// How far prices are changed then, as a share.
const SPREADS: [f64; 3] = [0.02, 0.1, 0.3];
/// Remembered pools of a taste, at most.
const MOST_POOLS: usize = 5_000;
/// The tastes that playouts have beside the published one, as the powers of a demand's size and of what it lacks. The
/// published score fills GPUs with small services first and wastes slices on them in the end; the last of these counts
/// GPUs' worth served and nothing else.
const SIZED: [(f64, f64); 3] = [(0.5, 0.5), (1.0, 1.0), (1.0, 0.0)];

impl<'a> Rollout<'a> {
    pub(crate) fn new(problem: &Problem, worth: &'a Worth, run: &'a Run<'a>) -> Rollout<'a> {
        let random = Xoshiro256PlusPlus::seed_from_u64(run.seed);
        let mut tastes = vec![Taste::published(problem)];
        tastes.extend(SIZED.map(|(size, urgency)| Taste::sized(worth, size, urgency)));
        Rollout { random, worth, run, pools: vec![BTreeMap::new(); tastes.len()], tastes, taste: 0 }
    }

    /// Adds GPUs, by any of the tastes or all at once, until every demand is met; the GPUs added, or none where
    /// `most_cost` was passed or the search is to stop.
    pub(crate) fn complete(&mut self, state: &mut Deployment<'_>, most_cost: f64) -> Option<Vec<Filled>> {
        if self.random.random_bool(FITTED) {
            return self.fit(state, most_cost);
        }
        self.taste = self.random.random_range(0..self.tastes.len());
        state.set_taste(&self.tastes[self.taste]);
        let mut added = Vec::new();
        let mut cost = state.allocation.cost(state.problem);
        while state.is_lacking() {
            let gpu = self.step(state)?;
            cost += state.problem.cost(gpu.configuration);
            if cost > most_cost || (self.run.stop)() {
                return None;
            }
            state.add(&gpu);
            added.push(gpu);
        }
        over_limit(state.problem, &state.allocation).is_none().then_some(added)
    }

    /// Adds GPUs all at once: for each service the cheapest slices that serve the rest of it, at prices that are
    /// changed a little each time, packed.
    fn fit(&mut self, state: &mut Deployment<'_>, most_cost: f64) -> Option<Vec<Filled>> {
        let spread = SPREADS[self.random.random_range(0..SPREADS.len())];
        let changed = |price: &f64| price * (1.0 + self.random.random_range(-spread..spread));
        let prices: Vec<f64> = self.worth.slices.iter().map(changed).collect();
        let added = fit_rest(state, &prices)?;
        (state.allocation.cost(state.problem) <= most_cost).then_some(added)
    }

    /// A GPU to add next.
    fn step(&mut self, state: &Deployment<'_>) -> Option<Filled> {
        let kind = coarse_type(state);
        let remembered = self.pools[self.taste].get(&kind).and_then(|pool| {
            // Remembered from when there were GPUs that are all taken now.
            let open = pool.iter().filter(|gpu| state.is_open(gpu.configuration));
            let scored: Vec<Filled> =
                open.map(|gpu| Filled { score: state.score(gpu), ..gpu.clone() }).collect();
            let best = scored.iter().map(|gpu| gpu.score).fold(0.0, f64::max);
            let was = pool.iter().map(|gpu| gpu.score).fold(0.0, f64::max);
            (best > STALE * was).then_some(scored)
        });
        let pool = match remembered {
            Some(pool) => pool,
            None => {
                let pool = self.compose(state);
                if self.pools[self.taste].len() < MOST_POOLS {
                    self.pools[self.taste].insert(kind, pool.clone());
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
