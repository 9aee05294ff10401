//! Steps that undo each other, or that one step could do.

use downbeat_mig::Placed;

use super::Op;
use crate::case::{Case, GpuIndex, KindIndex, Pod, Rate};
use crate::step::Driver;

/// Makes one step of two, or none, wherever the rest still goes through.
pub(super) fn tidy(case: &Case, driver: Driver, mut ops: Vec<Op>) -> Vec<Op> {
    let mut at = 0;
    while at < ops.len() {
        match shortened(case, driver, &ops, at) {
            Some(shorter) => ops = shorter,
            None => at += 1,
        }
    }
    ops
}

/// The sequence without the step at `at`, or with that step and a later one in one.
fn shortened(case: &Case, driver: Driver, ops: &[Op], at: usize) -> Option<Vec<Op>> {
    if driver == Driver::MigParted && matches!(ops[at], Op::Repartition { .. }) {
        let mut shorter = ops.to_vec();
        shorter.remove(at);
        return goes_through(case, driver, &shorter).then_some(shorter);
    }
    for later in at + 1..ops.len() {
        let Some(one) = in_one(&ops[at], &ops[later]) else { continue };
        // At the time of either.
        for (stays, goes) in [(at, later), (later, at)] {
            let mut shorter = ops.to_vec();
            match &one {
                Some(one) => {
                    shorter[stays] = one.clone();
                    shorter.remove(goes);
                }
                None => {
                    shorter.remove(at.max(later));
                    shorter.remove(at.min(later));
                }
            }
            if goes_through(case, driver, &shorter) {
                return Some(shorter);
            }
        }
    }
    None
}

/// What two steps come to: one step, or nothing.
fn in_one(first: &Op, then: &Op) -> Option<Option<Op>> {
    let (kind, reason) = match *then {
        Op::Create { pod, reason, .. } | Op::Delete { pod, reason, .. } => (pod.kind, reason),
        Op::Migrate { kind, reason, .. } => (kind, reason),
        Op::Repartition { .. } => return None,
    };
    let (come, go) = (comes_and_goes(first, kind)?, comes_and_goes(then, kind)?);
    let (from, to) = match (come, go) {
        // A creation and a deletion, in either order, are a migration.
        ((None, Some(to)), (Some(from), None)) | ((Some(from), None), (None, Some(to))) => {
            (Some(from), Some(to))
        }
        // What goes on from where it came to went there at once.
        ((from, Some(stop)), (Some(again), to)) if stop == again => (from, to),
        _ => return None,
    };
    let pod = |start: u8| Pod { start, kind };
    Some(match (from, to) {
        (Some(from), Some(to)) if from == to => None,
        (Some(from), Some(to)) => Some(Op::Migrate { from, to, kind, reason }),
        (None, Some((gpu, start))) => Some(Op::Create { gpu, pod: pod(start), reason }),
        (Some((gpu, start)), None) => Some(Op::Delete { gpu, pod: pod(start), reason }),
        (None, None) => None,
    })
}

/// A seat: GPU and start.
type Seat = (GpuIndex, u8);

/// Where a step takes an instance of a kind from, and where to.
fn comes_and_goes(op: &Op, kind: KindIndex) -> Option<(Option<Seat>, Option<Seat>)> {
    match *op {
        Op::Create { gpu, pod, .. } if pod.kind == kind => Some((None, Some((gpu, pod.start)))),
        Op::Delete { gpu, pod, .. } if pod.kind == kind => Some((Some((gpu, pod.start)), None)),
        Op::Migrate { from, to, kind: moved, .. } if moved == kind => Some((Some(from), Some(to))),
        _ => None,
    }
}

/// A cluster on which a sequence is tried.
struct Trial<'a> {
    case: &'a Case,
    driver: Driver,
    pods: Vec<Vec<Pod>>,
    /// The slices that mig-parted has left each GPU with.
    slices: Vec<Vec<Placed>>,
    rates: Vec<Rate>,
}

/// Whether a sequence keeps the floors and has room for everything.
fn goes_through(case: &Case, driver: Driver, ops: &[Op]) -> bool {
    let slices = |gpu: &crate::case::CaseGpu| {
        gpu.old.iter().map(|&pod| case.placed(pod)).chain(gpu.idle.iter().copied()).collect()
    };
    let mut trial = Trial {
        case,
        driver,
        pods: case.gpus.iter().map(|gpu| gpu.old.clone()).collect(),
        slices: case.gpus.iter().map(slices).collect(),
        rates: vec![0; case.services.len()],
    };
    for pod in case.gpus.iter().flat_map(|gpu| &gpu.old) {
        trial.rates[case.service(pod.kind)] += case.rate(pod.kind);
    }
    ops.iter().all(|op| trial.takes(op))
}

impl Trial<'_> {
    fn takes(&mut self, op: &Op) -> bool {
        match op {
            Op::Create { gpu, pod, .. } => self.add(*gpu, *pod),
            Op::Delete { gpu, pod, .. } => {
                let service = self.case.service(pod.kind);
                self.remove(*gpu, *pod) && self.rates[service] >= self.case.floors[service]
            }
            Op::Migrate { from, to, kind, .. } => {
                self.add(to.0, Pod { start: to.1, kind: *kind })
                    && self.remove(from.0, Pod { start: from.1, kind: *kind })
            }
            Op::Repartition { gpu, slices } => {
                self.slices[*gpu].clone_from(slices);
                self.driver == Driver::Nvml || self.pods[*gpu].is_empty()
            }
        }
    }

    fn add(&mut self, gpu: GpuIndex, pod: Pod) -> bool {
        let placed = self.case.placed(pod);
        self.pods[gpu].push(pod);
        self.rates[self.case.service(pod.kind)] += self.case.rate(pod.kind);
        let all: Vec<Placed> = self.pods[gpu].iter().map(|&pod| self.case.placed(pod)).collect();
        (self.driver == Driver::Nvml || self.slices[gpu].contains(&placed))
            && self.case.model(gpu).allows(&all)
    }

    fn remove(&mut self, gpu: GpuIndex, pod: Pod) -> bool {
        let Some(at) = self.pods[gpu].iter().position(|other| *other == pod) else { return false };
        self.pods[gpu].swap_remove(at);
        self.rates[self.case.service(pod.kind)] -= self.case.rate(pod.kind);
        true
    }
}
