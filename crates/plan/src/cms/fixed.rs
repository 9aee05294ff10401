//! Exact where the number of jobs and of block types is constant.
//!
//! With J jobs, K types and every configuration up to a size there are J K + C whole numbers to find, a constant:
//! integer programs in fixed dimension are solved in polynomial time (Lenstra), and the compact model is one. It is
//! solved by branch and bound, which is exact as well and quick at these sizes.

use downbeat_milp::Status;

use super::applies;
use crate::problem::Problem;
use crate::solver::{Bound, Run, Solved, Solver, Unsolved};
use crate::solvers::compact::Compact;

/// The exact algorithm for few jobs and blocks. Guarantee: the optimum.
pub struct CmsFixed;

/// More whole numbers than this are not called constant.
pub(super) const MOST_NUMBERS: usize = 60;

impl Solver for CmsFixed {
    fn name(&self) -> &'static str {
        "cms-fixed"
    }

    fn about(&self) -> &'static str {
        "CMS: few jobs and block types; the optimum, by an integer program of constant size"
    }

    fn solve(&self, problem: &Problem, run: &Run<'_>) -> Result<Solved, Unsolved> {
        applies(problem, self.name())?;
        let numbers = problem.services.len() * problem.slices.len() + problem.configurations.len();
        let not = |why: String| Unsolved::NotApplicable { solver: "cms-fixed", why };
        if numbers > MOST_NUMBERS {
            return Err(not(format!(
                "{numbers} numbers are to be found, more than the {MOST_NUMBERS} that are few"
            )));
        }
        let compact = Compact::new(problem);
        let answer = compact.solve(run, 0.999 * problem.cost_step().unwrap_or(0.0))?;
        let values = answer.values.ok_or_else(|| not("it was stopped before it had a plan".to_owned()))?;
        let allocation = compact.allocation(&values);
        let cost = match answer.status {
            Status::Optimal => allocation.cost(problem),
            _ => answer.bound.max(0.0),
        };
        Ok(Solved { allocation, bound: Bound { cost, name: "compact model" }, notes: Vec::new() })
    }
}
