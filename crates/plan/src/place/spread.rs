//! Instances of a service that share a GPU or crowd a node trade places with others on slices of the same kind.
//!
//! Dealing ([`deal`](super)) spreads the instances on each kind of slice; those of a service on different kinds may
//! still meet.

use std::collections::{BTreeMap, BTreeSet};

use super::{Frame, positions};
use crate::problem::Problem;

/// How many slots are looked at for each instance that is to move: thousands of GPUs must not take thousands of times
/// as long.
const LOOKED_AT: usize = 256;

/// Rounds through all instances; hardly anything moves after the second.
const ROUNDS: usize = 3;

/// What an instance that shares its GPU counts, against one that shares its node.
const SAME_GPU: i64 = 1 << 20;

/// A slot: its GPU, and its index there.
type Slot = (usize, usize);

/// Lets instances trade places as long as fewer of a service are together on a GPU, and then on a node.
pub(super) fn spread(problem: &Problem, frames: &mut [Frame]) {
    let mut crowd = Crowd::new(problem, frames);
    let mut slots: Vec<Vec<Slot>> = vec![Vec::new(); problem.slices.len()];
    for (gpu, frame) in frames.iter().enumerate() {
        for (index, (kind, _, _)) in frame.slots.iter().enumerate() {
            slots[*kind].push((gpu, index));
        }
    }
    for _ in 0..ROUNDS {
        let mut any = false;
        for of_kind in &slots {
            for (at, &slot) in of_kind.iter().enumerate() {
                // Slots all over the cluster, others for each instance.
                let stride = of_kind.len().div_ceil(LOOKED_AT).max(1);
                let others = (0..of_kind.len()).skip((at + 1) % stride).step_by(stride);
                any |= crowd.improve(frames, slot, others.map(|other| of_kind[other]));
            }
        }
        if !any {
            break;
        }
    }
}

/// How many instances of each service are where.
struct Crowd {
    /// By GPU, the number of its node: nodes of different pools have different ones.
    node: Vec<(usize, u32)>,
    on_gpu: BTreeMap<(usize, usize), i64>,
    on_node: BTreeMap<(usize, (usize, u32)), i64>,
    /// By service.
    total: BTreeMap<usize, i64>,
    nodes: i64,
}

impl Crowd {
    fn new(problem: &Problem, frames: &[Frame]) -> Crowd {
        let nodes = positions(problem, frames).into_iter();
        let node: Vec<_> = frames.iter().zip(nodes).map(|(frame, (_, node))| (frame.pool, node)).collect();
        let nodes = node.iter().collect::<BTreeSet<_>>().len() as i64;
        let (on_gpu, on_node, total) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        let mut crowd = Crowd { node, on_gpu, on_node, total, nodes };
        for (gpu, frame) in frames.iter().enumerate() {
            for service in frame.slots.iter().filter_map(|(_, _, service)| *service) {
                crowd.add(service, gpu, 1);
                *crowd.total.entry(service).or_default() += 1;
            }
        }
        crowd
    }

    fn add(&mut self, service: usize, gpu: usize, count: i64) {
        *self.on_gpu.entry((service, gpu)).or_default() += count;
        *self.on_node.entry((service, self.node[gpu])).or_default() += count;
    }

    /// Whether there are more of a service on a GPU, or on its node, than if they were everywhere alike.
    fn is_crowded(&self, service: usize, gpu: usize) -> bool {
        let total = self.total.get(&service).copied().unwrap_or(0);
        let count = |counts: Option<&i64>| counts.copied().unwrap_or(0);
        let alike = |places: i64| (total + places - 1) / places.max(1);
        count(self.on_gpu.get(&(service, gpu))) > alike(self.node.len() as i64)
            || count(self.on_node.get(&(service, self.node[gpu]))) > alike(self.nodes)
    }

    /// How much company an instance of a service has on a GPU, itself not counted there.
    fn company(&self, service: Option<usize>, gpu: usize, itself: i64) -> i64 {
        let Some(service) = service else { return 0 };
        let on_gpu = self.on_gpu.get(&(service, gpu)).copied().unwrap_or(0) - itself;
        let on_node = self.on_node.get(&(service, self.node[gpu])).copied().unwrap_or(0) - itself;
        on_gpu * SAME_GPU + on_node
    }

    /// Lets what is in a slot trade places with the best of others, if that is better for both together; returns
    /// whether it did.
    fn improve(&mut self, frames: &mut [Frame], slot: Slot, others: impl Iterator<Item = Slot>) -> bool {
        let held = |frames: &[Frame], (gpu, index): Slot| frames[gpu].slots[index].2;
        let service = held(frames, slot);
        if !service.is_some_and(|service| self.is_crowded(service, slot.0)) {
            return false;
        }
        let here = self.company(service, slot.0, 1);
        let gain = |other: &Slot| {
            let theirs = held(frames, *other);
            if theirs == service || other.0 == slot.0 {
                return 0;
            }
            // On one node nothing changes for it.
            let same_node = i64::from(self.node[slot.0] == self.node[other.0]);
            let before = here + self.company(theirs, other.0, 1);
            let after = self.company(service, other.0, 0) - same_node + self.company(theirs, slot.0, 0)
                - if theirs.is_some() { same_node } else { 0 };
            before - after
        };
        let best = others.map(|other| (gain(&other), other)).max_by_key(|(gain, _)| *gain);
        let Some((_, other)) = best.filter(|(gain, _)| *gain > 0) else { return false };
        let theirs = held(frames, other);
        for (moved, from, to) in [(service, slot.0, other.0), (theirs, other.0, slot.0)] {
            if let Some(moved) = moved {
                self.add(moved, from, -1);
                self.add(moved, to, 1);
            }
        }
        frames[slot.0].slots[slot.1].2 = theirs;
        frames[other.0].slots[other.1].2 = service;
        true
    }
}
