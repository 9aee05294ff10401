//! From prices to a plan: a pattern for each service and a number of GPUs for each configuration that hold them all.

use downbeat_milp::{Limits, Program, Variable};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::cover::Pattern;
use crate::problem::Problem;
use crate::solver::{Allocation, Run};

/// Chooses patterns and configurations in turn until what is used is what is there.
pub(crate) struct Rounding<'a> {
    pub(crate) problem: &'a Problem,
    /// The patterns to choose from, by service, the cheapest first; at least one each.
    pub(crate) patterns: &'a [Vec<Pattern>],
    /// What a missing slice of each kind counts.
    pub(crate) prices: &'a [f64],
    /// Whether pools have no more GPUs than they have.
    pub(crate) limited: bool,
}

/// How often the search begins again from a changed choice.
const KICKS: usize = 6;
/// The weight of what the chosen patterns are worth beside what is missing: of two choices that miss as much the
/// cheaper is better.
const WORTH_WEIGHT: f64 = 1e-3;

/// Which pattern each service has, and how many slices of each kind are missing (or left, below 0).
#[derive(Clone)]
struct Choice {
    chosen: Vec<usize>,
    gpus: Vec<u32>,
    missing: Vec<i64>,
}

impl Rounding<'_> {
    /// A plan that costs at most `budget`, if one is found.
    pub(crate) fn within(&self, budget: f64, run: &Run<'_>) -> Option<Allocation> {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(run.seed);
        let mut best = self.settle(vec![0; self.patterns.len()], budget, run)?;
        for _ in 0..KICKS {
            if self.shortage(&best) == 0.0 {
                return Some(self.allocation(&best));
            }
            if (run.stop)() {
                return None;
            }
            let mut chosen = best.chosen.clone();
            for _ in 0..(chosen.len() / 20).clamp(2, 40) {
                let service = random.random_range(0..chosen.len());
                chosen[service] = random.random_range(0..self.patterns[service].len());
            }
            let tried = self.settle(chosen, budget, run)?;
            if self.objective(&tried) < self.objective(&best) {
                best = tried;
            }
        }
        (self.shortage(&best) == 0.0).then(|| self.allocation(&best))
    }

    /// Configurations for the patterns, patterns for the configurations, and so on until nothing gets better.
    fn settle(&self, chosen: Vec<usize>, budget: f64, run: &Run<'_>) -> Option<Choice> {
        let mut choice = Choice {
            gpus: self.configurations_for(&self.used(&chosen), budget, run)?,
            missing: Vec::new(),
            chosen,
        };
        choice.missing = self.missing(&choice);
        loop {
            self.improve_patterns(&mut choice);
            if self.shortage(&choice) == 0.0 {
                return Some(choice);
            }
            let mut next = choice.clone();
            next.gpus = self.configurations_for(&self.used(&next.chosen), budget, run)?;
            next.missing = self.missing(&next);
            if self.shortage(&next) >= self.shortage(&choice) - 1e-9 {
                return Some(choice);
            }
            choice = next;
        }
    }

    /// Changes one service's pattern at a time for as long as that helps.
    fn improve_patterns(&self, choice: &mut Choice) {
        loop {
            let mut changed = false;
            for service in 0..self.patterns.len() {
                let mut best = (-1e-9, None);
                for candidate in 0..self.patterns[service].len() {
                    let gain = self.change(choice, service, candidate);
                    if gain < best.0 {
                        best = (gain, Some(candidate));
                    }
                }
                let Some(candidate) = best.1 else { continue };
                let (old, new) = (choice.chosen[service], candidate);
                let counts = |pattern: usize| self.patterns[service][pattern].counts.clone();
                for ((missing, old), new) in choice.missing.iter_mut().zip(counts(old)).zip(counts(new)) {
                    *missing += i64::from(new) - i64::from(old);
                }
                choice.chosen[service] = candidate;
                changed = true;
            }
            if !changed || self.shortage(choice) == 0.0 {
                return;
            }
        }
    }

    /// How the objective would change with another pattern for a service.
    fn change(&self, choice: &Choice, service: usize, candidate: usize) -> f64 {
        let (old, new) =
            (&self.patterns[service][choice.chosen[service]], &self.patterns[service][candidate]);
        let mut change = WORTH_WEIGHT * (new.worth - old.worth);
        for (slice, missing) in choice.missing.iter().enumerate() {
            let after = missing + i64::from(new.counts[slice]) - i64::from(old.counts[slice]);
            change += self.weight(slice) * ((after.max(0) - (*missing).max(0)) as f64);
        }
        change
    }

    fn weight(&self, slice: usize) -> f64 {
        self.prices[slice] + 1e-3
    }

    fn shortage(&self, choice: &Choice) -> f64 {
        (0..choice.missing.len())
            .map(|slice| self.weight(slice) * (choice.missing[slice].max(0) as f64))
            .sum()
    }

    fn objective(&self, choice: &Choice) -> f64 {
        let worth: f64 =
            choice.chosen.iter().zip(self.patterns).map(|(&chosen, patterns)| patterns[chosen].worth).sum();
        self.shortage(choice) + WORTH_WEIGHT * worth
    }

    fn used(&self, chosen: &[usize]) -> Vec<u32> {
        let mut used = vec![0; self.problem.slices.len()];
        for (&chosen, patterns) in chosen.iter().zip(self.patterns) {
            for (sum, count) in used.iter_mut().zip(&patterns[chosen].counts) {
                *sum += count;
            }
        }
        used
    }

    fn missing(&self, choice: &Choice) -> Vec<i64> {
        let mut missing: Vec<i64> = self.used(&choice.chosen).into_iter().map(i64::from).collect();
        for (configuration, &count) in self.problem.configurations.iter().zip(&choice.gpus) {
            for (missing, &slices) in missing.iter_mut().zip(&configuration.slices) {
                *missing -= i64::from(slices) * i64::from(count);
            }
        }
        missing
    }

    /// The GPUs within the budget that leave least missing: an integer program as small as the table of configurations.
    fn configurations_for(&self, used: &[u32], budget: f64, run: &Run<'_>) -> Option<Vec<u32>> {
        let mut program = Program::default();
        let gpus = add_configurations(self.problem, &mut program, |_| 0.0, self.limited);
        for (slice, &used) in used.iter().enumerate() {
            let missing = program.continuous(self.weight(slice), 0.0, f64::INFINITY);
            let mut terms = supply(self.problem, &gpus, slice);
            terms.push((missing, 1.0));
            program.at_least(&terms, f64::from(used));
        }
        let costs: Vec<(Variable, f64)> =
            gpus.iter().enumerate().map(|(index, &variable)| (variable, self.problem.cost(index))).collect();
        program.at_most(&costs, budget + 1e-9 * budget.abs());
        let answer =
            run.backend.solve(&program, &Limits { stop: run.stop, start: None, absolute_gap: 1e-4 }).ok()?;
        let values = answer.values?;
        Some(gpus.iter().map(|variable| values[variable.0].round() as u32).collect())
    }

    fn allocation(&self, choice: &Choice) -> Allocation {
        let counts = |(&chosen, patterns): (&usize, &Vec<Pattern>)| patterns[chosen].counts.clone();
        Allocation {
            instances: choice.chosen.iter().zip(self.patterns).map(counts).collect(),
            gpus: choice.gpus.clone(),
        }
    }
}

/// An integer variable for the number of GPUs of each configuration, no more of a pool than there are.
pub(crate) fn add_configurations(
    problem: &Problem,
    program: &mut Program,
    cost: impl Fn(usize) -> f64,
    limited: bool,
) -> Vec<Variable> {
    let gpus: Vec<Variable> =
        (0..problem.configurations.len()).map(|index| program.integer(cost(index), 0.0, 1e6)).collect();
    for (pool, found) in problem.pools.iter().enumerate() {
        let Some(count) = found.count.filter(|_| limited) else { continue };
        let own = |(&variable, configuration): (&Variable, &crate::problem::Configuration)| {
            (configuration.pool == pool).then_some((variable, 1.0))
        };
        let terms: Vec<(Variable, f64)> = gpus.iter().zip(&problem.configurations).filter_map(own).collect();
        program.at_most(&terms, f64::from(count));
    }
    gpus
}

/// How many slices of a kind the GPUs have.
pub(crate) fn supply(problem: &Problem, gpus: &[Variable], slice: usize) -> Vec<(Variable, f64)> {
    gpus.iter()
        .zip(&problem.configurations)
        .filter(|(_, configuration)| configuration.slices[slice] > 0)
        .map(|(&variable, configuration)| (variable, f64::from(configuration.slices[slice])))
        .collect()
}
