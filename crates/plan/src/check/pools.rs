//! No more GPUs than there are, at the cost that is claimed.
//!
//! Of several pools of one type a plan does not say which a GPU is of. It must be possible to deal them out: each to a
//! pool where it may be cut as it is, and none more than its pool has.

use super::{SLACK, placement, pools_of};
use crate::plan::Plan;
use crate::problem::{Pool, Problem};

/// Pools of one type beyond which only their sum is looked at: sets of them are enumerated.
const MOST_POOLS: usize = 12;

pub(super) fn check(problem: &Problem, plan: &Plan, wrong: &mut Vec<String>) {
    let mut types: Vec<&str> = problem.pools.iter().map(|pool| pool.gpu.name.as_str()).collect();
    types.sort_unstable();
    types.dedup();
    // What the GPUs may cost: which of several pools of a type they are of is not written down.
    let (mut least, mut most) = (0.0, 0.0);
    for name in types {
        let pools: Vec<&Pool> = pools_of(problem, name).map(|(_, pool)| pool).collect();
        let used = plan.layout.iter().filter(|gpu| gpu.gpu_type == name).count();
        check_counts(name, &pools, plan, wrong);
        let costs = pools.iter().map(|pool| pool.cost * used as f64);
        least += costs.clone().fold(f64::INFINITY, f64::min);
        most += costs.fold(0.0, f64::max);
    }
    if !(least * (1.0 - SLACK)..=most * (1.0 + SLACK)).contains(&plan.cost) {
        let is = if least < most { format!("from {least} to {most}") } else { least.to_string() };
        wrong.push(format!("a cost of {} is claimed, it is {is}", plan.cost));
    }
}

/// Hall's condition: whichever pools are looked at, the GPUs that can only be of these are no more than these have.
fn check_counts(name: &str, pools: &[&Pool], plan: &Plan, wrong: &mut Vec<String>) {
    let all = (1u64 << pools.len().min(63)) - 1;
    let gpus = plan.layout.iter().filter(|gpu| gpu.gpu_type == name);
    // By GPU: the set of pools where it may be cut as it is. One that is wrong everywhere is told of elsewhere.
    let allowed: Vec<u64> = gpus
        .map(|gpu| {
            let fits = |index: &usize| pools.len() <= MOST_POOLS && placement(pools[*index], gpu).is_empty();
            (0..pools.len()).filter(fits).fold(0, |set, index| set | 1 << index)
        })
        .map(|set| if set == 0 { all } else { set })
        .collect();
    let sets = if pools.len() <= MOST_POOLS { 1..=all } else { all..=all };
    for set in sets.rev() {
        let members = pools.iter().enumerate().filter(|(index, _)| set == all || set >> index & 1 == 1);
        let there: Option<u32> = members.map(|(_, pool)| pool.count).sum();
        let used = allowed.iter().filter(|&&allowed| allowed & !set == 0).count();
        if let Some(there) = there.filter(|&there| used > there as usize) {
            wrong.push(format!("{used} GPUs of {name} are used, {there} are there"));
            return;
        }
    }
}
