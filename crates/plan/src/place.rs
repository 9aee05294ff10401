//! Who lies where: from counts to GPUs with slices at concrete starts.
//!
//! Slices of a kind are interchangeable, so that the counts of a plan leave open which instances share a GPU. Instances
//! of a service are dealt over GPUs, and over nodes, so that as little as can be of a service is lost with one of them;
//! and GPUs of an older layout that can stay as they are do.

mod keep;
mod spread;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use downbeat_mig::Partitions;

use crate::plan::{GpuLayout, Instance};
use crate::problem::Problem;
use crate::solver::Allocation;

pub(crate) use keep::content;

/// A GPU before it has a number: what each of its slots holds.
#[derive(Clone, Debug)]
struct Frame {
    pool: usize,
    /// (kind of slice, start, service), by start.
    slots: Vec<(usize, u8, Option<usize>)>,
}

/// Lays out an allocation; what can stay as it is in `from` stays.
#[cfg(test)]
pub(crate) fn layout(
    problem: &Problem,
    allocation: &Allocation,
    from: Option<&[GpuLayout]>,
) -> Vec<GpuLayout> {
    layout_keeping(problem, allocation, from, &BTreeSet::new())
}

/// Lays out an allocation; what can stay as it is in `from` stays, the GPUs of `wanted` before others.
pub(crate) fn layout_keeping(
    problem: &Problem,
    allocation: &Allocation,
    from: Option<&[GpuLayout]>,
    wanted: &BTreeSet<u32>,
) -> Vec<GpuLayout> {
    let mut rest = allocation.clone();
    let kept = from.map_or_else(Vec::new, |from| keep::kept(problem, &mut rest, from, wanted));
    let mut frames = apart(problem, frames(problem, &rest));
    deal(problem, &rest, &mut frames);
    spread::spread(problem, &mut frames);
    frames.retain(|frame| frame.slots.iter().any(|(_, _, service)| service.is_some()));
    let mut gpus = kept;
    number(problem, &frames, from, allocation, &mut gpus);
    gpus.sort_by_key(|gpu| gpu.gpu);
    gpus
}

/// Empty GPUs, cut as the allocation says.
fn frames(problem: &Problem, allocation: &Allocation) -> Vec<Frame> {
    let mut frames = Vec::new();
    for (configuration, &count) in problem.configurations.iter().zip(&allocation.gpus) {
        if count == 0 {
            continue;
        }
        let pool = &problem.pools[configuration.pool];
        let mut multiset = vec![0u8; pool.gpu.profiles.len()];
        for (slice, count) in problem.slices_of(configuration) {
            multiset[slice.profile] += u8::try_from(count).unwrap_or(u8::MAX);
        }
        let partitions = Partitions::of(&pool.gpu, &pool.profiles);
        let placed = partitions.place(&multiset).unwrap_or_default();
        let kind = |profile: usize| {
            problem
                .slices
                .iter()
                .position(|slice| slice.pool == configuration.pool && slice.profile == profile)
        };
        let slots =
            placed.iter().filter_map(|slice| Some((kind(slice.profile)?, slice.start, None))).collect();
        frames.extend(std::iter::repeat_n(Frame { pool: configuration.pool, slots }, count as usize));
    }
    frames
}

/// GPUs of a kind are cut one after the other; here they are put on different nodes, as far as there are any.
fn apart(problem: &Problem, frames: Vec<Frame>) -> Vec<Frame> {
    // Frames are in the order of their pools, and stay so.
    let places = across_nodes(problem, &frames);
    let mut by_pool: Vec<VecDeque<usize>> = vec![VecDeque::new(); problem.pools.len()];
    for place in places {
        by_pool[frames[place].pool].push_back(place);
    }
    let mut placed: Vec<(Option<usize>, Frame)> =
        frames.into_iter().map(|frame| (by_pool[frame.pool].pop_front(), frame)).collect();
    placed.sort_by_key(|(place, _)| *place);
    placed.into_iter().map(|(_, frame)| frame).collect()
}

/// Gives every instance a slot: those of a service go round the GPUs, one node after the other.
fn deal(problem: &Problem, allocation: &Allocation, frames: &mut [Frame]) {
    let order = across_nodes(problem, frames);
    for slice in 0..problem.slices.len() {
        let mut services: Vec<(usize, u32)> = allocation
            .instances
            .iter()
            .map(|counts| counts[slice])
            .enumerate()
            .filter(|(_, count)| *count > 0)
            .collect();
        services.sort_by_key(|&(service, count)| (std::cmp::Reverse(count), service));
        let mut instances =
            services.into_iter().flat_map(|(service, count)| std::iter::repeat_n(service, count as usize));
        // The first slot of this kind on every GPU, then the second, and so on.
        let mut turn = 0;
        let mut next = instances.next();
        while next.is_some() {
            let mut any = false;
            for &frame in &order {
                let slot = frames[frame].slots.iter_mut().filter(|(kind, _, _)| *kind == slice).nth(turn);
                if let Some(slot) = slot {
                    any = true;
                    slot.2 = next;
                    next = instances.next();
                }
                if next.is_none() {
                    break;
                }
            }
            if !any {
                break;
            }
            turn += 1;
        }
    }
}

/// The GPUs' indices: the first of every node, then the second, and so on.
fn across_nodes(problem: &Problem, frames: &[Frame]) -> Vec<usize> {
    let mut order: Vec<((u32, u32), usize)> =
        positions(problem, frames).into_iter().enumerate().map(|(index, at)| (at, index)).collect();
    order.sort_unstable();
    order.into_iter().map(|(_, index)| index).collect()
}

/// Each GPU's place on its node, and the node, counted within its pool.
fn positions(problem: &Problem, frames: &[Frame]) -> Vec<(u32, u32)> {
    let mut rank = vec![0u32; problem.pools.len()];
    let position = |frame: &Frame| {
        let position = rank[frame.pool];
        rank[frame.pool] += 1;
        let per_node = problem.pools[frame.pool].gpus_per_node;
        (position % per_node, position / per_node)
    };
    frames.iter().map(position).collect()
}

/// Gives GPUs their numbers: those that an older layout has left free first.
fn number(
    problem: &Problem,
    frames: &[Frame],
    from: Option<&[GpuLayout]>,
    allocation: &Allocation,
    gpus: &mut Vec<GpuLayout>,
) {
    let old = from.unwrap_or_default();
    let kept: BTreeSet<u32> = gpus.iter().map(|gpu| gpu.gpu).collect();
    let mut free: BTreeMap<&str, VecDeque<&GpuLayout>> = BTreeMap::new();
    for old in old.iter().filter(|old| !kept.contains(&old.gpu)) {
        free.entry(&old.gpu_type).or_default().push_back(old);
    }
    let mut next_gpu = old.iter().map(|gpu| gpu.gpu + 1).max().unwrap_or(0);
    let mut next_node = old.iter().map(|gpu| gpu.node + 1).max().unwrap_or(0);
    for (pool, found) in problem.pools.iter().enumerate() {
        let mut fresh = 0;
        for frame in frames.iter().filter(|frame| frame.pool == pool) {
            let reused = free.get_mut(found.gpu.name.as_str()).and_then(VecDeque::pop_front);
            let (gpu, node, device) = match reused {
                Some(old) => (old.gpu, old.node, old.device),
                None => {
                    let node = next_node + fresh / found.gpus_per_node;
                    let place = (next_gpu, node, Some(fresh % found.gpus_per_node));
                    next_gpu += 1;
                    fresh += 1;
                    place
                }
            };
            gpus.push(GpuLayout {
                gpu,
                node,
                device,
                gpu_type: found.gpu.name.clone(),
                instances: instances(problem, frame, allocation),
            });
        }
        next_node += fresh.div_ceil(found.gpus_per_node);
    }
}

fn instances(problem: &Problem, frame: &Frame, allocation: &Allocation) -> Vec<Instance> {
    let filled = frame.slots.iter().filter_map(|&(slice, start, service)| Some((slice, start, service?)));
    filled
        .filter_map(|(slice, start, service)| instance(problem, allocation, slice, start, service))
        .collect()
}

fn instance(
    problem: &Problem,
    allocation: &Allocation,
    slice: usize,
    start: u8,
    service: usize,
) -> Option<Instance> {
    let curve = problem.curves[service][slice].as_ref()?;
    let count = allocation.instances[service][slice];
    let wanted = &problem.services[service];
    Some(Instance {
        profile: problem.slice_name(slice).to_owned(),
        start,
        service: wanted.name.clone(),
        model: wanted.model.clone(),
        batch: curve.batch(count),
        throughput_rps: curve.capacity(count) / f64::from(count),
    })
}
