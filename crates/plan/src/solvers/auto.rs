//! The default: a plan at once, then the best one.

use super::{Greedy, exact};
use crate::problem::Problem;
use crate::solver::{Run, Solved, Solver, Unsolved};

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
        // Pools that greedy finds too small may yet do.
        let known = match Greedy.solve(problem, run) {
            Ok(solved) => Some(solved.allocation),
            Err(Unsolved::Infeasible(crate::Infeasible::Pools { .. })) => None,
            Err(error) => return Err(error),
        };
        exact::improve(problem, run, known)
    }
}
