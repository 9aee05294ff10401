//! MIG-serving's fast algorithm (arXiv 2109.11067, section 5.2): GPU by GPU, the configuration that helps most.
//!
//! A service's *completion rate* c_j is the share of its demand that is served. A GPU cut and filled in some way adds
//! u_j to it; its score is sum_j (1 - c_j) min(u_j, 1 - c_j): services that lack much count more, and what is more than
//! enough counts nothing. GPUs mix at most two services, or more when one of them is nearly satisfied; the best is
//! taken until every demand is met.
//!
//! Where this departs: the paper scores all pairs of services; with more than some dozens only those that gain most
//! alone are paired. Of GPUs that score the same the one that uses least is taken: small services are served whole on
//! any slice. And slices that the pair does not need are filled with other services by the same score, which is the
//! paper's "more when nearly satisfied" at every step.

use super::deployment::{Deployment, Filled};
use super::fit::fit_rest;
use crate::bound::slice_cost;
use crate::infeasible::{self, Infeasible, Shortage};
use crate::problem::Problem;
use crate::solver::{Allocation, Progress, Run, Solved, Solver, Unsolved};

/// The fast planner.
pub struct Greedy;

/// Pairs are formed among so many services; fewer where there are many, for time.
fn paired(services: usize) -> usize {
    match services {
        0..=60 => 24,
        61..=250 => 12,
        _ => 4,
    }
}

impl Solver for Greedy {
    fn name(&self) -> &'static str {
        "greedy"
    }

    fn about(&self) -> &'static str {
        "MIG-serving's fast algorithm: GPU by GPU the configuration with the best score"
    }

    fn solve(&self, problem: &Problem, run: &Run<'_>) -> Result<Solved, Unsolved> {
        if let Some(unservable) = infeasible::unservable(problem) {
            return Err(unservable.into());
        }
        let allocation = quick(problem, run, paired(problem.services.len()));
        let bound = crate::bound::rule_free_or_nothing(problem);
        (run.on_progress)(&Progress { phase: "greedy", cost: allocation.cost(problem), bound: bound.cost });
        match over_limit(problem, &allocation) {
            Some(infeasible) => Err(infeasible.into()),
            None => Ok(Solved { allocation, bound, notes: Vec::new() }),
        }
    }
}

/// The plan with pairs among so many services; it may take more GPUs of a pool than there are.
pub(crate) fn quick(problem: &Problem, run: &Run<'_>, paired: usize) -> Allocation {
    let mut allocation = Allocation::empty(problem);
    for gpu in sequence_of(problem, run, paired) {
        gpu.add_to(&mut allocation);
    }
    tidy(problem, &mut allocation);
    allocation
}

/// The GPUs in the order in which they are taken.
pub(crate) fn sequence(problem: &Problem, run: &Run<'_>) -> Vec<Filled> {
    sequence_of(problem, run, paired(problem.services.len()))
}

fn sequence_of(problem: &Problem, run: &Run<'_>, paired: usize) -> Vec<Filled> {
    let mut state = Deployment::ranked(problem);
    let mut taken = Vec::new();
    let mut hurried = false;
    while state.is_lacking() {
        if !hurried && (run.stop)() {
            // No time: the rest at once, where the pools have room for it so.
            hurried = true;
            let prices: Vec<f64> =
                (0..problem.slices.len()).map(|slice| slice_cost(problem, slice)).collect();
            if let Some(rest) = fit_rest(&mut state.clone(), &prices) {
                taken.extend(rest);
                break;
            }
        }
        let Some(gpu) = state.best_gpu(paired) else { break };
        for _ in 0..state.repeats(&gpu) {
            state.add(&gpu);
            taken.push(gpu.clone());
        }
    }
    taken
}

/// The pools that a plan takes more GPUs of than there are.
pub(crate) fn over_limit(problem: &Problem, allocation: &Allocation) -> Option<Infeasible> {
    let short: Vec<Shortage> = (problem.pools.iter().zip(allocation.by_pool(problem)))
        .filter_map(|(pool, needed)| {
            let count = pool.count.filter(|&count| needed > count)?;
            Some(Shortage { gpu: pool.gpu.name.clone(), count, needed })
        })
        .collect();
    (!short.is_empty()).then_some(Infeasible::Pools { short, proved: false })
}

/// Leaves out instances that are not needed, the largest first.
pub(crate) fn tidy(problem: &Problem, allocation: &mut Allocation) {
    for (service, counts) in allocation.instances.iter_mut().enumerate() {
        for slice in (0..counts.len()).rev() {
            while counts[slice] > 0 {
                counts[slice] -= 1;
                if !problem.is_served(service, counts) {
                    counts[slice] += 1;
                    break;
                }
            }
        }
    }
}
