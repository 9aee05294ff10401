//! MIG-serving's second phase (arXiv 2109.11067, section 5.1): a genetic algorithm over deployments.
//!
//! A chromosome is a deployment and a gene a GPU. Crossover erases random GPUs and refills what is then lacking by the slow algorithm; mutation
//! swaps services between equal slices. Originals stay in selection, so that nothing good is lost; it ends after ten rounds
//! without gain.
//!
//! Where this departs: instances that a refill made superfluous are taken out, and their slices are given to services that lack something before
//! a GPU is added.

use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::Greedy;
use super::deployment::{Deployment, Filled};
use super::greedy::{over_limit, sequence, tidy};
use super::rollout::Rollout;
use crate::problem::Problem;
use crate::solver::{Allocation, Progress, Run, Solved, Solver, Unsolved};

/// The genetic planner.
pub struct Ga;

/// Deployments that are kept.
const POPULATION: usize = 8;
/// Children of each in a round.
const CHILDREN: usize = 6;
/// Rounds without gain after which it ends.
const PATIENCE: u32 = 10;
/// The largest share of GPUs that a crossover erases.
const ERASED: f64 = 0.3;
/// Swaps of a mutation.
const SWAPS: usize = 20;
/// Refills that are tried for each child.
const REFILLS: usize = 3;

type Chromosome = Vec<Filled>;

impl Solver for Ga {
    fn name(&self) -> &'static str {
        "ga"
    }

    fn about(&self) -> &'static str {
        "MIG-serving's genetic algorithm: erase some GPUs of a deployment, refill, keep the best"
    }

    fn solve(&self, problem: &Problem, run: &Run<'_>) -> Result<Solved, Unsolved> {
        let greedy = Greedy.solve(problem, run)?;
        let mut breeding =
            Breeding { problem, rollout: Rollout::new(Xoshiro256PlusPlus::seed_from_u64(run.seed)) };
        let first = sequence(problem);
        let mut best = greedy.allocation;
        let mut population: Vec<(f64, Chromosome)> = vec![(cost(problem, &first), first)];
        let mut idle = 0;
        while idle < PATIENCE && !(run.stop)() && best.cost(problem) > greedy.bound.cost * (1.0 + 1e-9) {
            let mut children: Vec<(f64, Chromosome)> = Vec::new();
            for (_, parent) in &population {
                for _ in 0..CHILDREN {
                    let child = breeding.child(parent);
                    children.push((cost(problem, &child), child));
                }
            }
            population.extend(children);
            population.sort_by(|a, b| a.0.total_cmp(&b.0));
            population.truncate(POPULATION);
            let found = allocation(problem, &population[0].1);
            if found.cost(problem) < best.cost(problem) - 1e-9 {
                best = found;
                idle = 0;
                (run.on_progress)(&Progress {
                    phase: "ga",
                    cost: best.cost(problem),
                    bound: greedy.bound.cost,
                });
            } else {
                idle += 1;
            }
        }
        match over_limit(problem, &best) {
            Some(infeasible) => Err(infeasible.into()),
            None => Ok(Solved { allocation: best, bound: greedy.bound, notes: Vec::new() }),
        }
    }
}

/// What a deployment costs, and by how little it misses costing less: of two as dear the one with more unused slices is nearer to a better one.
fn cost(problem: &Problem, chromosome: &Chromosome) -> f64 {
    let gpus: f64 = chromosome.iter().map(|gpu| problem.cost(gpu.configuration)).sum();
    let compute = |slice: usize| {
        let kind = problem.slices[slice];
        let gpu = &problem.pools[kind.pool].gpu;
        f64::from(gpu.profiles[kind.profile].compute) / f64::from(gpu.compute)
    };
    let used: f64 = chromosome
        .iter()
        .flat_map(|gpu| &gpu.instances)
        .map(|&(slice, _, count)| compute(slice) * f64::from(count))
        .sum();
    gpus + 1e-4 * used
}

fn allocation(problem: &Problem, chromosome: &Chromosome) -> Allocation {
    let mut allocation = Allocation::empty(problem);
    for gpu in chromosome {
        gpu.add_to(&mut allocation);
    }
    tidy(problem, &mut allocation);
    allocation
}

struct Breeding<'a> {
    problem: &'a Problem,
    rollout: Rollout,
}

impl Breeding<'_> {
    /// A mutated, crossed and refilled copy.
    fn child(&mut self, parent: &Chromosome) -> Chromosome {
        let mut kept = parent.clone();
        self.mutate(&mut kept);
        let erased =
            (kept.len() as f64 * self.rollout.random.random_range(0.0..ERASED)).ceil().max(2.0) as usize;
        for _ in 0..erased.min(kept.len()) {
            let index = self.rollout.random.random_range(0..kept.len());
            kept.swap_remove(index);
        }
        let mut state = Deployment::new(self.problem);
        for gpu in &kept {
            state.add(gpu);
        }
        self.free_superfluous(&mut state, &mut kept);
        for gpu in &mut kept {
            let filled = state.fill_up(gpu.clone(), &state.unsatisfied());
            state.replace(gpu, &filled);
            *gpu = filled;
        }
        let mut best: Option<Chromosome> = None;
        let parent_cost: f64 = parent.iter().map(|gpu| self.problem.cost(gpu.configuration)).sum();
        for _ in 0..REFILLS {
            let added = self.rollout.complete(&mut state.clone(), parent_cost);
            if let Some(added) =
                added.filter(|added| best.as_ref().is_none_or(|best| added.len() < best.len()))
            {
                best = Some(added);
            }
        }
        match best {
            Some(added) => {
                kept.extend(added);
                kept
            }
            // No refill was as good as what was erased.
            None => parent.clone(),
        }
    }

    /// Swaps services between equal slices of two GPUs: the same deployment, in which other things are erased together.
    fn mutate(&mut self, chromosome: &mut Chromosome) {
        for _ in 0..SWAPS {
            let random = &mut self.rollout.random;
            let (a, b) = (random.random_range(0..chromosome.len()), random.random_range(0..chromosome.len()));
            if a == b || chromosome[a].instances.is_empty() || chromosome[b].instances.is_empty() {
                continue;
            }
            let i = random.random_range(0..chromosome[a].instances.len());
            let (slice, first, count) = chromosome[a].instances[i];
            let j =
                chromosome[b].instances.iter().position(|&(kind, _, other)| kind == slice && other == count);
            if let Some(j) = j {
                let second = chromosome[b].instances[j].1;
                chromosome[a].instances[i].1 = second;
                chromosome[b].instances[j].1 = first;
                merge(&mut chromosome[a]);
                merge(&mut chromosome[b]);
            }
        }
    }

    /// Takes out instances that are not needed, in random order.
    fn free_superfluous(&mut self, state: &mut Deployment<'_>, chromosome: &mut Chromosome) {
        let start = self.rollout.random.random_range(0..chromosome.len().max(1));
        let length = chromosome.len();
        for offset in 0..length {
            let gpu = &mut chromosome[(start + offset) % length];
            let before = gpu.clone();
            for index in 0..gpu.instances.len() {
                let (slice, service, count) = gpu.instances[index];
                let mut counts = state.allocation.instances[service].clone();
                let mut freed = 0;
                while freed < count {
                    counts[slice] -= 1;
                    if !self.problem.is_served(service, &counts) {
                        break;
                    }
                    freed += 1;
                }
                if freed > 0 {
                    gpu.instances[index].2 -= freed;
                    state.allocation.instances[service][slice] -= freed;
                }
            }
            if *gpu != before {
                gpu.instances.retain(|(_, _, count)| *count > 0);
            }
        }
    }
}

/// One entry for each kind of slice and service.
fn merge(gpu: &mut Filled) {
    gpu.instances.sort_unstable();
    gpu.instances.dedup_by(|b, a| {
        let same = a.0 == b.0 && a.1 == b.1;
        if same {
            a.2 += b.2;
        }
        same
    });
}
