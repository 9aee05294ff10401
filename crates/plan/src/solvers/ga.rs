//! MIG-serving's second phase (arXiv 2109.11067, section 5.1): a genetic algorithm over deployments.
//!
//! A chromosome is a deployment and a gene a GPU. Crossover erases random GPUs and refills what is then lacking by the
//! slow algorithm; mutation swaps services between equal slices. Originals stay in selection, so that nothing good is
//! lost; it ends after ten rounds without gain.
//!
//! Where this departs: instances that a refill made superfluous are taken out, and their slices are given to services
//! that lack something before a GPU is added. Of two deployments as dear the one with more unused slices is fitter, and
//! of two as fit the younger, so that the search does not stand still where costs are equal; a gain is a better
//! deployment in this sense. Refills are playouts of the slow algorithm, not its whole tree.

use rand::RngExt;

use super::Greedy;
use super::chromosome::{Chromosome, ROUNDING};
use super::greedy::{over_limit, sequence};
use super::rollout::Rollout;
use super::taste::Worth;
use crate::problem::Problem;
use crate::solver::{Progress, Run, Solved, Solver, Unsolved};

/// The genetic planner.
pub struct Ga;

/// Deployments that are kept.
const POPULATION: usize = 8;
/// Children of each in a round.
const CHILDREN: usize = 12;
/// Rounds without gain after which it ends.
const PATIENCE: u32 = 10;
/// The least number of GPUs that a crossover erases; the largest is all of them.
const LEAST_ERASED: f64 = 2.0;
/// Swaps of a mutation.
const SWAPS: usize = 20;
/// Refills that are tried for each child.
const REFILLS: usize = 5;
impl Solver for Ga {
    fn name(&self) -> &'static str {
        "ga"
    }

    fn about(&self) -> &'static str {
        "MIG-serving's genetic algorithm: erase some GPUs of a deployment, refill, keep the best"
    }

    fn solve(&self, problem: &Problem, run: &Run<'_>) -> Result<Solved, Unsolved> {
        let greedy = Greedy.solve(problem, run)?;
        let worth = Worth::of(problem, run);
        let mut breeding = Breeding { problem, worth: &worth, rollout: Rollout::new(problem, &worth, run) };
        let first = Chromosome { gpus: sequence(problem, run) };
        let mut best = greedy.allocation;
        let mut population: Vec<(f64, Chromosome)> = vec![(first.fitness(problem, &worth), first)];
        let mut idle = 0;
        while idle < PATIENCE && !(run.stop)() && best.cost(problem) > greedy.bound.cost * (1.0 + 1e-9) {
            let fittest = population[0].0;
            population = breeding.next_generation(population, run);
            idle = if population[0].0 < fittest - ROUNDING { 0 } else { idle + 1 };
            let found = population[0].1.allocation(problem);
            if found.cost(problem) < best.cost(problem) - 1e-9 {
                best = found;
                let cost = best.cost(problem);
                (run.on_progress)(&Progress { phase: "ga", cost, bound: greedy.bound.cost });
            }
        }
        match over_limit(problem, &best) {
            Some(infeasible) => Err(infeasible.into()),
            None => Ok(Solved { allocation: best, bound: greedy.bound, notes: Vec::new() }),
        }
    }
}

struct Breeding<'a> {
    problem: &'a Problem,
    worth: &'a Worth,
    rollout: Rollout<'a>,
}

impl Breeding<'_> {
    /// The fittest of these and their children, the fittest first.
    fn next_generation(&mut self, parents: Vec<(f64, Chromosome)>, run: &Run<'_>) -> Vec<(f64, Chromosome)> {
        let mut all: Vec<(f64, Chromosome)> = Vec::new();
        for (_, parent) in &parents {
            for _ in 0..CHILDREN {
                if (run.stop)() {
                    break;
                }
                all.extend(self.child(parent).map(|child| (child.fitness(self.problem, self.worth), child)));
            }
        }
        // Parents come last: of equals the younger stay.
        all.extend(parents);
        all.sort_by_key(|(fitness, _)| (fitness / ROUNDING).round() as i64);
        all.truncate(POPULATION);
        all
    }

    /// A mutated copy, some of its GPUs erased and refilled; none where no refill was as good as what was erased.
    fn child(&mut self, parent: &Chromosome) -> Option<Chromosome> {
        let (problem, worth) = (self.problem, self.worth);
        let random = &mut self.rollout.random;
        let mut mutated = parent.clone();
        mutated.mutate(SWAPS, random);
        // Few more often than many: what is found for few is better, and what is found for many is new.
        let most = (mutated.gpus.len() as f64).max(LEAST_ERASED);
        let erased = LEAST_ERASED * (most / LEAST_ERASED).powf(random.random_range(0.0..1.0));
        let (kept, state) = mutated.erase(problem, erased.ceil() as usize, random);
        let parent_cost = parent.cost(problem);
        let rollout = &mut self.rollout;
        let refilled = (0..REFILLS).filter_map(|_| {
            let added = rollout.complete(&mut state.clone(), parent_cost)?;
            let mut child = kept.clone();
            child.gpus.extend(added);
            Some((child.fitness(problem, worth), child))
        });
        let (_, best) = refilled.min_by(|a, b| a.0.total_cmp(&b.0))?;
        Some(best.compacted(problem, worth, &mut self.rollout.random))
    }
}
