//! From a problem to a plan that has been checked.

use std::collections::BTreeSet;

use crate::check::check;
use crate::keep::keeping;
use crate::older;
use crate::place;
use crate::plan::{GpuLayout, Plan};
use crate::problem::Problem;
use crate::solver::{Allocation, Run, Solver, Unsolved};

/// Solves a problem, lays the solution out and has it checked: a plan that breaks a rule is never returned.
///
/// `from` is the layout there is: what can stay as it is stays. The plan's `seconds` are left to whoever has a clock.
pub fn plan(
    problem: &Problem,
    solver: &dyn Solver,
    run: &Run<'_>,
    from: Option<&[GpuLayout]>,
) -> Result<Plan, Unsolved> {
    let mut solved = solver.solve(problem, run)?;
    let older = from.map(|from| older::believed(problem, from));
    let (from, doubts) = older.map_or((None, Vec::new()), |(from, doubts)| (Some(from), doubts));
    let from = from.as_deref();
    solved.notes.extend(doubts);
    let kept = from.and_then(|from| keeping(problem, run, &solved.allocation, from));
    let (mut allocation, wanted) = match kept {
        Some(kept) => (kept.allocation, kept.gpus),
        None => (solved.allocation, BTreeSet::new()),
    };
    drop_idle(problem, &mut allocation);
    let layout = place::layout_keeping(problem, &allocation, from, &wanted);
    // GPUs on which nothing runs are not part of a plan.
    drop_unused(problem, &mut allocation, &layout);
    let plan = Plan::new(problem, &allocation, solved.bound, solver.name(), layout, solved.notes);
    match check(problem, &plan) {
        Ok(()) => Ok(plan),
        Err(violations) => Err(Unsolved::Refused { solver: solver.name(), why: violations.to_string() }),
    }
}

/// Leaves out instances on kinds of slices of which so few serve nothing.
fn drop_idle(problem: &Problem, allocation: &mut Allocation) {
    for (counts, curves) in allocation.instances.iter_mut().zip(&problem.curves) {
        for (count, curve) in counts.iter_mut().zip(curves) {
            *count = curve.as_ref().map_or(0, |curve| curve.replicas(*count));
        }
    }
}

/// Lowers the number of GPUs of each type to those that were laid out, the dearest first.
fn drop_unused(problem: &Problem, allocation: &mut Allocation, layout: &[GpuLayout]) {
    let type_of = |index: usize| &problem.pools[problem.configurations[index].pool].gpu.name;
    let mut order: Vec<usize> = (0..allocation.gpus.len()).collect();
    order.sort_by(|a, b| problem.cost(*b).total_cmp(&problem.cost(*a)));
    for pool in &problem.pools {
        let own = |index: &usize| *type_of(*index) == pool.gpu.name;
        let there: u32 = order.iter().copied().filter(own).map(|index| allocation.gpus[index]).sum();
        let laid_out = layout.iter().filter(|gpu| gpu.gpu_type == pool.gpu.name).count() as u32;
        let mut surplus = there.saturating_sub(laid_out);
        for index in order.iter().copied().filter(own) {
            let dropped = surplus.min(allocation.gpus[index]);
            allocation.gpus[index] -= dropped;
            surplus -= dropped;
        }
    }
}
