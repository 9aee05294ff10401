//! The default: a plan at once, then the best one.

use super::{exact, greedy};
use crate::infeasible;
use crate::problem::Problem;
use crate::solver::{Progress, Run, Solved, Solver, Unsolved};

/// Greedy looks at pairs of so few services here: what it finds is only to be had at once.
const PAIRED: usize = 4;

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
        let quick = greedy::quick(problem, run, PAIRED);
        // Pools that greedy finds too small may yet do.
        let known = greedy::over_limit(problem, &quick).is_none().then_some(quick);
        if let Some(known) = &known {
            (run.on_progress)(&Progress { phase: "greedy", cost: known.cost(problem), bound: 0.0 });
        }
        exact::improve(problem, run, known)
    }
}
