//! Steps that undo each other, or that one step could do.

use downbeat_mig::Placed;

use super::Op;
use crate::case::{Case, GpuIndex, Pod, Rate};
use crate::step::Driver;

/// Joins a creation and a later deletion of the same kind into a migration wherever the rest still goes through.
pub(super) fn tidy(case: &Case, driver: Driver, mut ops: Vec<Op>) -> Vec<Op> {
    let mut at = 0;
    while at < ops.len() {
        match joined(case, driver, &ops, at) {
            Some(shorter) => ops = shorter,
            None => at += 1,
        }
    }
    ops
}

/// The sequence with the creation at `at` and some deletion of its kind in one step.
fn joined(case: &Case, driver: Driver, ops: &[Op], at: usize) -> Option<Vec<Op>> {
    let Op::Create { gpu, pod, reason } = ops[at] else { return None };
    for later in at + 1..ops.len() {
        let Op::Delete { gpu: source, pod: old, .. } = ops[later] else { continue };
        if old.kind != pod.kind || (source, old.start) == (gpu, pod.start) {
            continue;
        }
        let migration =
            Op::Migrate { from: (source, old.start), to: (gpu, pod.start), kind: pod.kind, reason };
        // At the time of either.
        for (stays, goes) in [(at, later), (later, at)] {
            let mut shorter = ops.to_vec();
            shorter[stays] = migration.clone();
            shorter.remove(goes);
            if goes_through(case, driver, &shorter) {
                return Some(shorter);
            }
        }
    }
    None
}

/// Whether a sequence keeps the floors and has room for everything.
fn goes_through(case: &Case, driver: Driver, ops: &[Op]) -> bool {
    let mut pods: Vec<Vec<Pod>> = case.gpus.iter().map(|gpu| gpu.old.clone()).collect();
    let mut rates: Vec<Rate> = vec![0; case.services.len()];
    for pod in pods.iter().flatten() {
        rates[case.service(pod.kind)] += case.rate(pod.kind);
    }
    // The slices that mig-parted has left a GPU with, once it has.
    let mut cut: Vec<Option<&[Placed]>> = vec![None; case.gpus.len()];
    let add = |pods: &mut Vec<Vec<Pod>>, cut: &[Option<&[Placed]>], gpu: GpuIndex, pod: Pod| {
        pods[gpu].push(pod);
        let placed: Vec<Placed> = pods[gpu].iter().map(|&pod| case.placed(pod)).collect();
        let there = driver == Driver::Nvml || cut[gpu].is_none_or(|slices| slices.contains(&case.placed(pod)));
        there && case.model(gpu).allows(&placed)
    };
    let remove = |pods: &mut Vec<Vec<Pod>>, gpu: GpuIndex, pod: Pod| {
        let before = pods[gpu].len();
        pods[gpu].retain(|other| *other != pod);
        pods[gpu].len() < before
    };
    for op in ops {
        let fine = match op {
            Op::Create { gpu, pod, .. } => {
                rates[case.service(pod.kind)] += case.rate(pod.kind);
                add(&mut pods, &cut, *gpu, *pod)
            }
            Op::Delete { gpu, pod, .. } => {
                let service = case.service(pod.kind);
                rates[service] -= case.rate(pod.kind);
                remove(&mut pods, *gpu, *pod) && rates[service] >= case.floors[service]
            }
            Op::Migrate { from, to, kind, .. } => {
                add(&mut pods, &cut, to.0, Pod { start: to.1, kind: *kind })
                    && remove(&mut pods, from.0, Pod { start: from.1, kind: *kind })
            }
            Op::Repartition { gpu, slices } => {
                cut[*gpu] = Some(slices);
                driver == Driver::Nvml || pods[*gpu].is_empty()
            }
        };
        if !fine {
            return false;
        }
    }
    true
}
