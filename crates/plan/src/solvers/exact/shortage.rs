//! Pools with too few GPUs.

use super::improve;
use crate::infeasible::{Infeasible, Shortage};
use crate::problem::Problem;
use crate::solver::{Run, Unsolved};

/// The pools have too few GPUs: for each, how many would do if only it were larger.
pub(super) fn too_small(problem: &Problem, run: &Run<'_>, proved: bool) -> Result<Infeasible, Unsolved> {
    let mut short = Vec::new();
    for (index, pool) in problem.pools.iter().enumerate() {
        let Some(count) = pool.count else { continue };
        let mut larger = problem.clone();
        larger.pools[index].count = None;
        for (other, pool) in larger.pools.iter_mut().enumerate() {
            // Only this pool's GPUs are to be few.
            pool.cost = if other == index { 1.0 } else { 1e-3 };
        }
        if let Ok(solved) = improve(&larger, run, None) {
            let needed = solved.allocation.by_pool(&larger)[index];
            short.push(Shortage { gpu: pool.gpu.name.clone(), count, needed });
        }
    }
    Ok(Infeasible::Pools { short, proved })
}
