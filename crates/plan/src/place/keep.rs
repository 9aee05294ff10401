//! GPUs of an older layout that can stay as they are.

use std::collections::{BTreeMap, BTreeSet};

use super::instance;
use crate::plan::GpuLayout;
use crate::problem::Problem;
use crate::solver::Allocation;

/// A GPU's instances as (kind of slice, start, service).
type Content = Vec<(usize, u8, usize)>;

/// Takes out of `rest` the GPUs of `from` that hold nothing else than what is wanted, and returns them, with their old numbers.
///
/// A GPU may stay where its instances are still wanted and the GPUs that remain to be cut have slices enough for the rest.
pub(super) fn kept(
    problem: &Problem,
    rest: &mut Allocation,
    from: &[GpuLayout],
    wanted_first: &BTreeSet<u32>,
) -> Vec<GpuLayout> {
    let wanted = rest.clone();
    let mut kept = Vec::new();
    // Those that were chosen to stay, then full ones: they leave the fewest slices unused.
    let mut old: Vec<&GpuLayout> = from.iter().collect();
    old.sort_by_key(|gpu| (!wanted_first.contains(&gpu.gpu), std::cmp::Reverse(gpu.instances.len())));
    for gpu in old {
        let Some((pool, content)) = content(problem, gpu) else { continue };
        if take(problem, rest, pool, &content) {
            let instances = content
                .iter()
                .filter_map(|&(slice, start, service)| instance(problem, &wanted, slice, start, service))
                .collect();
            kept.push(GpuLayout { instances, ..gpu.clone() });
        }
    }
    kept
}

/// What a GPU holds, in the problem's terms; `None` where it holds what the problem does not know.
fn content(problem: &Problem, gpu: &GpuLayout) -> Option<(usize, Content)> {
    let pool = problem.pools.iter().position(|pool| pool.gpu.name == gpu.gpu_type)?;
    let content: Option<Content> =
        gpu.instances
            .iter()
            .map(|instance| {
                let known = |slice: &usize| {
                    problem.slices[*slice].pool == pool && problem.slice_name(*slice) == instance.profile
                };
                let slice = (0..problem.slices.len()).find(known)?;
                let service = problem.services.iter().position(|service| {
                    service.name == instance.service && service.model == instance.model
                })?;
                Some((slice, instance.start, service))
            })
            .collect();
    content.filter(|content| !content.is_empty()).map(|content| (pool, content))
}

/// Takes a GPU with this content out of the allocation, if the rest still fits on what remains.
fn take(problem: &Problem, rest: &mut Allocation, pool: usize, content: &Content) -> bool {
    let mut counts: BTreeMap<(usize, usize), u32> = BTreeMap::new();
    let mut slices = vec![0; problem.slices.len()];
    for &(slice, _, service) in content {
        *counts.entry((service, slice)).or_default() += 1;
        slices[slice] += 1;
    }
    if counts.iter().any(|(&(service, slice), &count)| rest.instances[service][slice] < count) {
        return false;
    }
    let mut left = rest.clone();
    for (&(service, slice), count) in &counts {
        left.instances[service][slice] -= count;
    }
    let holds = |index: &usize| {
        let configuration = &problem.configurations[*index];
        configuration.pool == pool
            && rest.gpus[*index] > 0
            && configuration.slices.iter().zip(&slices).all(|(has, needs)| has >= needs)
    };
    let unused = |index: &usize| -> u32 {
        problem.configurations[*index].slices.iter().zip(&slices).map(|(has, needs)| has - needs).sum()
    };
    let mut candidates: Vec<usize> = (0..rest.gpus.len()).filter(holds).collect();
    candidates.sort_by_key(unused);
    for index in candidates {
        left.gpus[index] -= 1;
        if is_enough(problem, &left) {
            *rest = left;
            return true;
        }
        left.gpus[index] += 1;
    }
    false
}

fn is_enough(problem: &Problem, allocation: &Allocation) -> bool {
    let used = allocation.used(problem.slices.len());
    (0..used.len()).all(|slice| {
        let there: u32 = problem
            .configurations
            .iter()
            .zip(&allocation.gpus)
            .map(|(configuration, gpus)| configuration.slices[slice] * gpus)
            .sum();
        there >= used[slice]
    })
}
