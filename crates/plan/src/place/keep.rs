//! GPUs of an older layout that can stay as they are.

use std::collections::{BTreeMap, BTreeSet};

use super::instance;
use crate::plan::GpuLayout;
use crate::problem::Problem;
use crate::solver::Allocation;

/// A GPU's instances as (kind of slice, start, service).
pub(crate) type Content = Vec<(usize, u8, usize)>;

/// Takes out of `rest` the GPUs of `from` that hold nothing else than what is wanted, and returns them, with their old
/// numbers.
///
/// A GPU may stay where its instances are still wanted and the GPUs that remain to be cut have slices enough for the
/// rest.
pub(super) fn kept(
    problem: &Problem,
    rest: &mut Allocation,
    from: &[GpuLayout],
    wanted_first: &BTreeSet<u32>,
) -> Vec<GpuLayout> {
    let wanted = rest.clone();
    let mut rest = Rest::new(problem, rest);
    let mut kept = Vec::new();
    // Those that were chosen to stay, then full ones: they leave the fewest slices unused.
    let mut old: Vec<&GpuLayout> = from.iter().collect();
    old.sort_by_key(|gpu| (!wanted_first.contains(&gpu.gpu), std::cmp::Reverse(gpu.instances.len())));
    for gpu in old {
        // As one of any pool of its type: an older layout does not say of which it is.
        let mut ways = (0..problem.pools.len()).filter_map(|pool| Some((pool, content(problem, gpu, pool)?)));
        if let Some((_, content)) = ways.find(|(pool, content)| rest.take(*pool, content)) {
            let instances = content
                .iter()
                .filter_map(|&(slice, start, service)| instance(problem, &wanted, slice, start, service))
                .collect();
            kept.push(GpuLayout { instances, ..gpu.clone() });
        }
    }
    kept
}

/// What a GPU holds as one of this pool, in the problem's terms; `None` where it is of another type, or holds nothing
/// or what the problem does not know.
pub(crate) fn content(problem: &Problem, gpu: &GpuLayout, pool: usize) -> Option<Content> {
    if problem.pools[pool].gpu.name != gpu.gpu_type || gpu.instances.is_empty() {
        return None;
    }
    gpu.instances
        .iter()
        .map(|instance| {
            let known = |slice: &usize| {
                problem.slices[*slice].pool == pool && problem.slice_name(*slice) == instance.profile
            };
            let slice = (0..problem.slices.len()).find(known)?;
            let service = problem
                .services
                .iter()
                .position(|service| service.name == instance.service && service.model == instance.model)?;
            Some((slice, instance.start, service))
        })
        .collect()
}

/// What is left to be laid out, and how many slices of each kind its GPUs have beyond what is used.
struct Rest<'a> {
    problem: &'a Problem,
    allocation: &'a mut Allocation,
    spare: Vec<i64>,
}

impl<'a> Rest<'a> {
    fn new(problem: &'a Problem, allocation: &'a mut Allocation) -> Rest<'a> {
        let used = allocation.used(problem.slices.len());
        let there = |slice: usize| -> i64 {
            let configurations = problem.configurations.iter().zip(&allocation.gpus);
            configurations.map(|(cut, gpus)| i64::from(cut.slices[slice]) * i64::from(*gpus)).sum()
        };
        let spare = (0..used.len()).map(|slice| there(slice) - i64::from(used[slice])).collect();
        Rest { problem, allocation, spare }
    }

    /// Takes a GPU of a pool with this content out, if the rest still fits on what remains.
    fn take(&mut self, pool: usize, content: &Content) -> bool {
        let mut counts: BTreeMap<(usize, usize), u32> = BTreeMap::new();
        let mut slices = vec![0u32; self.problem.slices.len()];
        for &(slice, _, service) in content {
            *counts.entry((service, slice)).or_default() += 1;
            slices[slice] += 1;
        }
        if counts.iter().any(|(&(service, slice), &count)| self.allocation.instances[service][slice] < count)
        {
            return false;
        }
        let Some(index) = self.least_cut(pool, &slices) else { return false };
        self.allocation.gpus[index] -= 1;
        for (&(service, slice), count) in &counts {
            self.allocation.instances[service][slice] -= count;
        }
        let cut = &self.problem.configurations[index].slices;
        for ((spare, &has), &needs) in self.spare.iter_mut().zip(cut).zip(&slices) {
            *spare += i64::from(needs) - i64::from(has);
        }
        true
    }

    /// The configuration that has these slices and fewest others, of those without which the rest still fits.
    fn least_cut(&self, pool: usize, slices: &[u32]) -> Option<usize> {
        let others = |index: &usize| -> u32 {
            let cut = &self.problem.configurations[*index].slices;
            cut.iter().zip(slices).map(|(has, needs)| has - needs).sum()
        };
        let fits = |index: &usize| {
            let configuration = &self.problem.configurations[*index];
            let mut kinds = configuration.slices.iter().zip(slices).zip(&self.spare);
            configuration.pool == pool
                && self.allocation.gpus[*index] > 0
                && kinds.all(|((&has, &needs), &spare)| {
                    has >= needs && spare + i64::from(needs) >= i64::from(has)
                })
        };
        (0..self.problem.configurations.len()).filter(fits).min_by_key(others)
    }
}
