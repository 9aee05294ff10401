//! The best prices: a concave function of few variables, maximised by cutting planes.

use downbeat_milp::{Limits, MilpError, Program, Variable};
use rayon::prelude::*;

use super::cover::{self, Pattern};
use crate::problem::Problem;
use crate::solver::Run;

/// Prices and what they prove.
#[derive(Clone, Debug)]
pub(crate) struct Prices {
    /// By kind of slice.
    pub(crate) slices: Vec<f64>,
    /// What a GPU of a limited pool is worth beyond its cost; 0 for others.
    pub(crate) pools: Vec<f64>,
    /// What no plan can cost less than.
    pub(crate) bound: f64,
    /// Each service's cheapest pattern at these prices.
    pub(crate) patterns: Vec<Pattern>,
    /// Whether no prices prove more, within a millionth.
    pub(crate) settled: bool,
}

/// Services are cut together in so many groups: more make each round wiser and slower.
const GROUPS: usize = 24;
const MOST_ROUNDS: usize = 300;
/// The prices are good enough when no others prove this share more.
const CLOSE: f64 = 1e-6;
/// How far from the best prices so far towards the model's each round looks; all the way is unstable in the beginning.
const STRIDE: f64 = 0.5;

/// More than any plan within the pools' counts costs: all GPUs that are counted, and each instance of the others on its
/// own.
pub(crate) fn beyond_any_plan(problem: &Problem) -> f64 {
    let counted: f64 = problem.pools.iter().map(|pool| f64::from(pool.count.unwrap_or(0)) * pool.cost).sum();
    let dearest = problem.pools.iter().map(|pool| pool.cost).fold(0.0, f64::max);
    let instances = (problem.services.iter().zip(&problem.curves)).map(|(service, curves)| {
        let alone =
            curves.iter().flatten().map(|curve| curve.needed(service.planned_rps())).max().unwrap_or(0);
        f64::from(alone.max(service.min_replicas))
    });
    counted + dearest * (1.0 + instances.sum::<f64>())
}

/// Finds the best prices. `None` where a service cannot be served. `report` is told each better bound.
pub(crate) fn best_prices(
    problem: &Problem,
    run: &Run<'_>,
    report: &dyn Fn(f64),
) -> Result<Option<Prices>, MilpError> {
    let mut model = Model::new(problem);
    let Some(mut best) = evaluate(problem, model.first_prices(), vec![0.0; problem.pools.len()]) else {
        return Ok(None);
    };
    model.cut(&best.patterns);
    report(best.bound);
    for _ in 0..MOST_ROUNDS {
        let (ideal, slices, pools) = model.solve(run)?;
        if ideal - best.bound <= CLOSE * ideal.abs().max(1.0) {
            best.settled = true;
            break;
        }
        if (run.stop)() {
            break;
        }
        let between =
            |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a + STRIDE * (b - a)).collect::<Vec<f64>>();
        let Some(tried) = evaluate(problem, between(&best.slices, &slices), between(&best.pools, &pools))
        else {
            return Ok(None);
        };
        model.cut(&tried.patterns);
        let cuts_off = model.value_at(&tried.patterns, &slices, &pools) < ideal - CLOSE * ideal.abs();
        if tried.bound > best.bound {
            best = tried;
            report(best.bound);
        }
        if !cuts_off {
            // Half-way taught nothing about where the model wants to go: ask there.
            let Some(tried) = evaluate(problem, slices, pools) else { return Ok(None) };
            model.cut(&tried.patterns);
            if tried.bound > best.bound {
                best = tried;
                report(best.bound);
            }
        }
    }
    Ok(Some(best))
}

/// What these prices prove. They are scaled down where a GPU would be worth more than it costs.
fn evaluate(problem: &Problem, mut slices: Vec<f64>, pools: Vec<f64>) -> Option<Prices> {
    let mut factor = 1.0f64;
    for configuration in &problem.configurations {
        let worth: f64 =
            configuration.slices.iter().zip(&slices).map(|(&count, price)| f64::from(count) * price).sum();
        let cost = problem.pools[configuration.pool].cost + pools[configuration.pool];
        if worth > cost {
            factor = factor.min(cost / worth);
        }
    }
    for price in &mut slices {
        *price = price.max(0.0) * factor;
    }
    let found: Vec<(Pattern, f64)> = (0..problem.services.len())
        .into_par_iter()
        .map(|service| cover::cheapest(problem, service, &slices))
        .collect::<Option<Vec<_>>>()?;
    let worth: f64 = found.iter().map(|(_, bound)| bound).sum();
    let limited: f64 = problem
        .pools
        .iter()
        .zip(&pools)
        .map(|(pool, price)| price * f64::from(pool.count.unwrap_or(0)))
        .sum();
    // Rounding, of as many numbers as were summed.
    let bound = (worth - limited) - 1e-9 * worth.abs();
    Some(Prices {
        slices,
        pools,
        bound,
        patterns: found.into_iter().map(|(pattern, _)| pattern).collect(),
        settled: false,
    })
}

/// What is known so far: for each group of services, planes that its worth lies below.
struct Model<'a> {
    problem: &'a Problem,
    program: Program,
    slices: Vec<Variable>,
    pools: Vec<Option<Variable>>,
    groups: Vec<Variable>,
}

impl<'a> Model<'a> {
    fn new(problem: &'a Problem) -> Model<'a> {
        let mut program = Program::default();
        let slices: Vec<Variable> =
            problem.slices.iter().map(|_| program.continuous(0.0, 0.0, f64::INFINITY)).collect();
        // Past this price of a GPU it is certain that there are too few.
        let limit = 2.0 * beyond_any_plan(problem);
        let pools: Vec<Option<Variable>> = problem
            .pools
            .iter()
            .map(|pool| pool.count.map(|count| program.continuous(f64::from(count), 0.0, limit)))
            .collect();
        let groups = (0..GROUPS.min(problem.services.len()))
            .map(|_| program.continuous(-1.0, 0.0, f64::INFINITY))
            .collect();
        for configuration in &problem.configurations {
            let mut terms: Vec<(Variable, f64)> = slices
                .iter()
                .zip(&configuration.slices)
                .filter(|(_, count)| **count > 0)
                .map(|(&variable, &count)| (variable, f64::from(count)))
                .collect();
            terms.extend(pools[configuration.pool].map(|variable| (variable, -1.0)));
            program.at_most(&terms, problem.pools[configuration.pool].cost);
        }
        Model { problem, program, slices, pools, groups }
    }

    /// Prices by compute: a fair beginning.
    fn first_prices(&self) -> Vec<f64> {
        let price = |slice: &crate::problem::Slice| {
            let pool = &self.problem.pools[slice.pool];
            pool.cost * f64::from(pool.gpu.profiles[slice.profile].compute) / f64::from(pool.gpu.compute)
        };
        self.problem.slices.iter().map(price).collect()
    }

    /// No prices make these services worth more than these patterns.
    fn cut(&mut self, patterns: &[Pattern]) {
        for (group, &variable) in self.groups.iter().enumerate() {
            let mut terms = vec![(variable, 1.0)];
            for (slice, &price) in self.slices.iter().enumerate() {
                let sum: u32 = patterns
                    .iter()
                    .skip(group)
                    .step_by(self.groups.len())
                    .map(|pattern| pattern.counts[slice])
                    .sum();
                if sum > 0 {
                    terms.push((price, -f64::from(sum)));
                }
            }
            self.program.at_most(&terms, 0.0);
        }
    }

    /// What these patterns are worth at these prices.
    fn value_at(&self, patterns: &[Pattern], slices: &[f64], pools: &[f64]) -> f64 {
        let worth: f64 = patterns
            .iter()
            .map(|pattern| {
                pattern.counts.iter().zip(slices).map(|(&count, price)| f64::from(count) * price).sum::<f64>()
            })
            .sum();
        let limited: f64 = self
            .problem
            .pools
            .iter()
            .zip(pools)
            .map(|(pool, price)| price * f64::from(pool.count.unwrap_or(0)))
            .sum();
        worth - limited
    }

    /// The best prices as far as is known, and what they would prove.
    fn solve(&self, run: &Run<'_>) -> Result<(f64, Vec<f64>, Vec<f64>), MilpError> {
        let answer = run.backend.solve(&self.program, &Limits::none())?;
        let values = answer.values.ok_or(MilpError::Failed {
            backend: run.backend.name(),
            why: "no prices were found".to_owned(),
        })?;
        let slices = self.slices.iter().map(|variable| values[variable.0]).collect();
        let pools =
            self.pools.iter().map(|variable| variable.map_or(0.0, |variable| values[variable.0])).collect();
        Ok((-answer.objective, slices, pools))
    }
}
