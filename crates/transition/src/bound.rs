//! How few steps there can be.

mod cycles;
#[cfg(test)]
mod tests;

use crate::case::{Case, GpuIndex, Pod};
use crate::step::Driver;

/// What no transition does without.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bound {
    /// Instances that must change, and GPUs that must be cut anew.
    pub(crate) must_change: usize,
    /// That, and a step for each circle of instances that wait for one another.
    pub(crate) steps: usize,
}

impl Bound {
    /// A step makes at most one instance come and one go, and both only where they are of a kind. So of each kind at
    /// least as many steps are needed as instances must come, and as must go. With mig-parted everything on a GPU that
    /// is cut anew must go first.
    ///
    /// As few as that are enough only where instances go straight to where they are wanted. Who does so comes after
    /// everything that is in the way there has left. Instances that wait in a circle for one another cannot all do it:
    /// one must move aside, or be stopped and started again, which is a step more. Circles without a common instance
    /// count one by one.
    pub(crate) fn of(case: &Case, driver: Driver) -> Bound {
        let mut come: Vec<Vec<(GpuIndex, Pod)>> = vec![Vec::new(); case.kinds.len()];
        let mut go = come.clone();
        let is_cut: Vec<bool> =
            (0..case.gpus.len()).map(|gpu| driver == Driver::MigParted && must_be_cut(case, gpu)).collect();
        for (gpu, there) in case.gpus.iter().enumerate() {
            let only = |these: &[Pod], those: &[Pod], lists: &mut Vec<Vec<(GpuIndex, Pod)>>| {
                for &pod in these.iter().filter(|pod| is_cut[gpu] || !those.contains(pod)) {
                    lists[pod.kind].push((gpu, pod));
                }
            };
            only(&there.new, &there.old, &mut come);
            only(&there.old, &there.new, &mut go);
        }
        let cuts = is_cut.iter().filter(|&&is_cut| is_cut).count();
        let instances: usize = come.iter().zip(&go).map(|(come, go)| come.len().max(go.len())).sum();
        let must_change = cuts + instances;
        Bound { must_change, steps: must_change + cycles::disjoint(&waits(case, &is_cut, &come, &go)) }
    }
}

fn must_be_cut(case: &Case, gpu: GpuIndex) -> bool {
    let there = &case.gpus[gpu];
    let has = |pod: Pod| {
        let slice = case.placed(pod);
        there.idle.contains(&slice) || there.old.iter().any(|&old| case.placed(old) == slice)
    };
    there.new.iter().any(|&pod| !has(pod))
}

/// For each instance that can go straight to one place only, the only one of its kind that must go: those others of
/// that sort that must have left before.
fn waits(
    case: &Case,
    is_cut: &[bool],
    come: &[Vec<(GpuIndex, Pod)>],
    go: &[Vec<(GpuIndex, Pod)>],
) -> Vec<Vec<usize>> {
    let mut movers: Vec<((GpuIndex, Pod), (GpuIndex, Pod))> = Vec::new();
    for (come, go) in come.iter().zip(go) {
        if let ([to], [from]) = (&come[..], &go[..]) {
            movers.push((*from, *to));
        }
    }
    let is_in_the_way = |(gpu, pod): (GpuIndex, Pod), other: (GpuIndex, Pod)| {
        gpu == other.0 && (is_cut[gpu] || overlap(case, pod, other.1))
    };
    let before = |to| {
        let others = movers.iter().enumerate().filter(move |(_, (from, _))| is_in_the_way(to, *from));
        others.map(|(index, _)| index).collect()
    };
    movers.iter().map(|&(_, to)| before(to)).collect()
}

fn overlap(case: &Case, a: Pod, b: Pod) -> bool {
    let end = |pod: Pod| {
        let kind = &case.kinds[pod.kind];
        pod.start + case.types[kind.gpu_type].profiles[kind.profile].size
    };
    a.start < end(b) && b.start < end(a)
}
