//! The default: a plan at once, then the best one.

use super::deployment::Deployment;
use super::fit::fit_rest;
use super::{exact, greedy};
use crate::bound::slice_cost;
use crate::infeasible;
use crate::problem::Problem;
use crate::solver::{Allocation, Progress, Run, Solved, Solver, Unsolved};

/// Greedy looks at pairs of so few services here: what it finds is only to be had at once.
const PAIRED: usize = 4;
/// GPUs beyond which greedy is left out: it would take longer than what comes after it takes for a better plan.
const MOST_FOR_GREEDY: u32 = 2_000;

/// Greedy, then exact from there.
pub struct Auto;

impl Solver for Auto {
    fn name(&self) -> &'static str {
        "auto"
    }

    fn about(&self) -> &'static str {
        "greedy at once, then exact; the best so far whenever it is stopped (default)"
    }

    fn solve(&self, problem: &Problem, run: &Run<'_>) -> Result<Solved, Unsolved> {
        if let Some(unservable) = infeasible::unservable(problem) {
            return Err(unservable.into());
        }
        let report = |phase: &'static str, found: &Allocation| {
            (run.on_progress)(&Progress { phase, cost: found.cost(problem), bound: 0.0 });
        };
        let mut known = fitted(problem);
        if let Some(known) = &known {
            report("fit", known);
        }
        if known.as_ref().is_none_or(|known| known.gpu_count() <= MOST_FOR_GREEDY) {
            let quick = greedy::quick(problem, run, PAIRED);
            let cheaper = known.as_ref().is_none_or(|known| quick.cost(problem) < known.cost(problem));
            // Pools that greedy finds too small may yet do.
            if cheaper && greedy::over_limit(problem, &quick).is_none() {
                report("greedy", &quick);
                known = Some(quick);
            }
        }
        exact::improve(problem, run, known)
    }
}

/// A plan in milliseconds, by slices' shares of compute; `None` where pools have too few GPUs for it.
fn fitted(problem: &Problem) -> Option<Allocation> {
    let prices: Vec<f64> = (0..problem.slices.len()).map(|slice| slice_cost(problem, slice)).collect();
    let mut state = Deployment::new(problem);
    fit_rest(&mut state, &prices).map(|_| state.allocation)
}
