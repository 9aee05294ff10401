//! Exact: a bound by prices, a plan near it, and what is left in between by integer programming.

mod nearly;
mod settle;
mod shortage;

use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use rayon::prelude::*;

use super::deployment::Deployment;
use super::fit::fit_rest;
use crate::infeasible;
use crate::prices::cover::{self, Pattern};
use crate::prices::dual::{self, Prices};
use crate::prices::round::Rounding;
use crate::problem::Problem;
use crate::solver::{Allocation, Bound, Progress, Run, Solved, Solver, Unsolved};

pub(crate) use nearly::within;
use shortage::too_small;

/// The exact planner.
pub struct Exact;

/// Patterns per service that a plan is looked for in, in turn.
const PATTERNS: [usize; 3] = [16, 48, 160];
/// How much dearer than the cheapest, in steps of cost, patterns are at first looked for.
const FIRST_MARGIN: f64 = 0.003;
/// Patterns in all that are given to an integer program.
const MOST_PATTERNS: usize = 60_000;
/// Budgets that a plan is looked for in, each step twice the one before.
const MOST_BUDGETS: u32 = 24;
/// Where costs have no step: the share that a better plan is at first asked to save.
const COARSE: f64 = 1e-4;
/// The least share that is asked for. Integer programs are solved to about a millionth, so that finer differences prove
/// nothing.
const FINEST: f64 = 2e-6;
/// Numbers of GPUs that are ruled out one by one where costs are closer than that.
const MOST_COUNTS: usize = 200;
/// How far prices are moved, as a share, to find other patterns.
const SPREADS: [f64; 4] = [0.01, 0.05, 0.15, 0.4];

impl Solver for Exact {
    fn name(&self) -> &'static str {
        "exact"
    }

    fn about(&self) -> &'static str {
        "bound by prices of slices, then integer programming; optimal when it ends, anytime with the gap"
    }

    fn solve(&self, problem: &Problem, run: &Run<'_>) -> Result<Solved, Unsolved> {
        improve(problem, run, None)
    }
}

/// The best plan, beginning from one that is known or from nothing.
pub(super) fn improve(
    problem: &Problem,
    run: &Run<'_>,
    known: Option<Allocation>,
) -> Result<Solved, Unsolved> {
    if let Some(unservable) = infeasible::unservable(problem) {
        return Err(unservable.into());
    }
    let mut search = Search::new(problem, run, known);
    let report = |bound: f64| search.report("prices", raised(problem, bound));
    let Some(prices) = dual::best_prices(problem, run, &report)? else {
        return Err(Unsolved::NotApplicable {
            solver: "exact",
            why: "a service cannot be served".to_owned(),
        });
    };
    search.prove(prices.bound, "prices of slices");
    search.offer_cheapest(&prices);
    let counted = problem.pools.iter().any(|pool| pool.count.is_some());
    if counted && prices.bound > dual::beyond_any_plan(problem) {
        return Err(too_small(problem, run, true)?.into());
    }
    let ended = search.is_proved() || search.choose(&prices)? || search.finish(&prices)?;
    let Some(allocation) = search.best else {
        return Err(too_small(problem, run, ended)?.into());
    };
    let mut notes = Vec::new();
    if !ended && !run.backend.is_strong() {
        notes.push(format!(
            "planned with {}: run `make setup-solver`, or name libhighs in {}, for better plans and proofs",
            run.backend.name(),
            downbeat_milp::LIBRARY_VARIABLE
        ));
    }
    Ok(Solved { allocation, bound: search.bound, notes })
}

/// The best prices, and for each service patterns that are nearly the cheapest there; `None` where a service cannot be
/// served.
pub(crate) fn near_best_prices(
    problem: &Problem,
    run: &Run<'_>,
    most: usize,
) -> Option<(Vec<f64>, Vec<Vec<Pattern>>)> {
    let prices = dual::best_prices(problem, run, &|_| {}).ok()??;
    let search = Search::new(problem, run, None);
    let patterns = search.supported_patterns(&prices, most);
    Some((prices.slices, patterns))
}

/// A bound at the next cost that a plan can have.
pub(crate) fn raised(problem: &Problem, bound: f64) -> f64 {
    problem.next_cost(bound)
}

struct Search<'a> {
    problem: &'a Problem,
    run: &'a Run<'a>,
    best: Option<Allocation>,
    bound: Bound,
    /// What a better plan is asked to save, as a share, where costs have no step.
    grain: f64,
}

impl<'a> Search<'a> {
    fn new(problem: &'a Problem, run: &'a Run<'a>, best: Option<Allocation>) -> Search<'a> {
        Search { problem, run, best, bound: Bound { cost: 0.0, name: "none" }, grain: COARSE }
    }

    fn cost(&self) -> f64 {
        self.best.as_ref().map_or(f64::INFINITY, |best| best.cost(self.problem))
    }

    fn report(&self, phase: &'static str, bound: f64) {
        (self.run.on_progress)(&Progress { phase, cost: self.cost(), bound: bound.max(self.bound.cost) });
    }

    fn prove(&mut self, bound: f64, name: &'static str) {
        let bound = raised(self.problem, bound);
        if bound > self.bound.cost {
            self.bound = Bound { cost: bound, name };
            self.report(name, bound);
        }
    }

    /// Takes a plan if it is better. Whether it is the best.
    fn offer(&mut self, allocation: Allocation) -> bool {
        if allocation.cost(self.problem) < self.cost() - 1e-9 {
            self.best = Some(allocation);
            self.report("plan", self.bound.cost);
        }
        self.is_proved()
    }

    fn is_proved(&self) -> bool {
        self.cost() <= self.bound.cost * (1.0 + 1e-9)
    }

    /// The difference that a better plan must make; `None` where costs have no step that an integer program can tell
    /// apart.
    fn whole_step(&self) -> Option<f64> {
        self.problem.cost_step().filter(|&step| step >= self.bound.cost * FINEST)
    }

    /// The difference that a better plan is asked to make.
    fn step(&self) -> f64 {
        self.whole_step().unwrap_or(self.bound.cost * self.grain)
    }

    /// Plans of a few patterns per service, then of more: mostly there is one at the bound. Whether the best is proved.
    fn choose(&mut self, prices: &Prices) -> Result<bool, Unsolved> {
        let services = self.problem.services.len();
        let begun_with = self.cost();
        for (round, &count) in PATTERNS.iter().enumerate() {
            let mut patterns = self.supported_patterns(prices, PATTERNS[0]);
            if round > 0 {
                self.add_cheapest(prices, &mut patterns, count);
            }
            // A weak backend is given a good plan first: it may not find one in time.
            let hard = !self.run.backend.is_strong() || services * count > MOST_PATTERNS;
            if hard && round == 0 {
                self.round(prices, &patterns);
            }
            if round > 0 && services * count > MOST_PATTERNS || (self.run.stop)() && self.best.is_some() {
                break;
            }
            if self.is_proved() || self.search_patterns(&patterns, false)? {
                return Ok(true);
            }
            if !hard && round == 0 && self.cost() >= begun_with {
                self.round(prices, &patterns);
            }
        }
        Ok(self.is_proved())
    }

    /// The plan of every service's cheapest pattern, packed: not the best, but there at once.
    fn offer_cheapest(&mut self, prices: &Prices) {
        let mut packed = Deployment::new(self.problem);
        if fit_rest(&mut packed, &prices.slices).is_some() {
            self.offer(packed.allocation);
        }
    }

    /// A plan as near to the bound as patterns can be chosen one by one.
    fn round(&mut self, prices: &Prices, patterns: &[Vec<Pattern>]) {
        let limited = self.problem.pools.iter().any(|pool| pool.count.is_some());
        let rounding = Rounding { problem: self.problem, patterns, prices: &prices.slices, limited };
        let mut budget = self.bound.cost;
        let mut stride = self.step();
        // Where pools are so small that there is no plan yet, one is wanted at any price, also when it is time to stop.
        let patient = Run { stop: if self.best.is_some() { self.run.stop } else { &|| false }, ..*self.run };
        for _ in 0..MOST_BUDGETS {
            if budget >= self.cost() || (patient.stop)() {
                return;
            }
            if let Some(allocation) = rounding.within(budget, &patient) {
                self.offer(allocation);
                return;
            }
            budget += stride;
            stride *= 2.0;
        }
    }

    /// Patterns that are the cheapest at prices like these: alike in worth and different in slices, so that what one
    /// service leaves another can use. At most `most` per service.
    fn supported_patterns(&self, prices: &Prices, most: usize) -> Vec<Vec<Pattern>> {
        let worth = |counts: &[u32]| {
            counts.iter().zip(&prices.slices).map(|(&count, price)| f64::from(count) * price).sum()
        };
        (0..self.problem.services.len())
            .into_par_iter()
            .map(|service| {
                let mut random =
                    Xoshiro256PlusPlus::seed_from_u64(self.run.seed.wrapping_add(service as u64));
                let mut found = vec![prices.patterns[service].clone()];
                for attempt in 0..2 * most {
                    if (self.run.stop)() {
                        break;
                    }
                    let spread = SPREADS[attempt % SPREADS.len()];
                    let nearby: Vec<f64> = prices
                        .slices
                        .iter()
                        .map(|price| price * (1.0 + random.random_range(-spread..spread)))
                        .collect();
                    let Some((mut pattern, _)) = cover::cheapest(self.problem, service, &nearby) else {
                        continue;
                    };
                    if found.iter().all(|known| known.counts != pattern.counts) {
                        pattern.worth = worth(&pattern.counts);
                        found.push(pattern);
                    }
                }
                found.sort_by(|a, b| a.worth.total_cmp(&b.worth));
                found.truncate(most);
                found
            })
            .collect()
    }

    /// Adds the cheapest patterns, up to `most` per service: those that are the cheapest at no prices, too.
    fn add_cheapest(&self, prices: &Prices, patterns: &mut [Vec<Pattern>], most: usize) {
        patterns.par_iter_mut().enumerate().for_each(|(service, patterns)| {
            let cheapest = prices.patterns[service].worth;
            let mut margin = self.step() * FIRST_MARGIN;
            while !(self.run.stop)() {
                // Asked for with room to spare: where there are more, those found first are not the cheapest.
                let (found, all) =
                    cover::all_within(self.problem, service, &prices.slices, cheapest + margin, 16 * most);
                let enough = found.len() >= most || margin > self.step();
                if all || enough {
                    let new = |pattern: &Pattern| patterns.iter().all(|known| known.counts != pattern.counts);
                    let added: Vec<Pattern> = found.into_iter().take(most).filter(new).collect();
                    patterns.extend(added);
                }
                if enough {
                    break;
                }
                margin *= 3.0;
            }
        });
    }

    /// Each service's patterns worth at most `limit` more than its cheapest; at most `most`. Whether these are all.
    fn patterns_within(&self, prices: &Prices, limit: f64, most: usize) -> (Vec<Vec<Pattern>>, bool) {
        let complete = AtomicBool::new(true);
        let patterns = (prices.patterns.par_iter().enumerate())
            .map(|(service, cheapest)| {
                if (self.run.stop)() {
                    complete.store(false, Relaxed);
                    return vec![cheapest.clone()];
                }
                let worth = cheapest.worth + limit;
                let (mut found, all) = cover::all_within(self.problem, service, &prices.slices, worth, most);
                if !all {
                    complete.store(false, Relaxed);
                }
                if !found.iter().any(|pattern| pattern.counts == cheapest.counts) {
                    found.insert(0, cheapest.clone());
                    found.truncate(most.max(1));
                }
                found
            })
            .collect();
        (patterns, complete.into_inner())
    }
}
