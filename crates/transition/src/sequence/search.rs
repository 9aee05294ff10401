//! A search for transitions with fewer spare GPUs than making room one goal at a time needs.
//!
//! What matters of a state is what it cannot do without. Any state is reached from any part of itself that keeps the floors (create what is
//! missing), and the other way round (delete it). So it is enough to visit *bare* states, in which no service can spare an
//! instance. The first instance of a bare state that any path deletes must be paid for by instances of its own service, put
//! into room that the bare state leaves. A move is therefore: choose an instance, choose a smallest set of instances of its
//! service that pay for it, put them up, take it down, and bare the rest. From every state on the way, the quick method
//! is tried. What was bared in vain is put right afterwards ([`tidy`](super::tidy)).
//!
//! Given states enough this misses nothing. It is for NVML: with mig-parted the cuts of empty GPUs would be part of the state.

use std::collections::{BTreeSet, BinaryHeap};

use downbeat_mig::Placed;

use super::state::State;
use super::{Op, Reason, Taste};
use crate::case::{Case, GpuIndex, KindIndex, Pod, Rate};
use crate::step::Driver;

/// What runs where.
type Pods = BTreeSet<(GpuIndex, Pod)>;

/// How far a search goes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Effort {
    /// States that are looked at.
    pub(crate) visits: usize,
    /// States that are made, equal ones included.
    pub(crate) states: usize,
}

/// The quick method is tried from the first states, and from some of the others: it takes longer than to look at a state.
const QUICK_FIRST: usize = 50;
const QUICK_EVERY: usize = 16;

/// A finished state that takes `spares` spare GPUs, where one is found.
pub(super) fn search(case: &Case, spares: usize, effort: Effort) -> Option<State> {
    let mut start = State::new(case.clone(), Driver::Nvml);
    for _ in 0..spares {
        start.open_spare();
    }
    let mut search = Search { case: &start.case, left: effort.states };
    let all = (start.pods.iter().enumerate()).flat_map(|(gpu, pods)| pods.iter().map(move |&pod| (gpu, pod)));
    let first = search.bare(all.collect());
    let mut seen = BTreeSet::from([first.clone()]);
    let mut nodes = vec![(first, None)];
    let mut open = BinaryHeap::from([(0, 0usize)]);
    for visit in 0..effort.visits {
        let (_, index) = open.pop()?;
        let is_end = nodes[index].0.iter().all(|&(gpu, pod)| search.is_wanted(gpu, pod));
        if (is_end || visit < QUICK_FIRST || visit % QUICK_EVERY == 0)
            && let Some(done) = finished(&start, &nodes, index)
        {
            return Some(done);
        }
        for next in search.moves(&nodes[index].0) {
            if seen.insert(next.clone()) {
                open.push((search.alike(&next), nodes.len()));
                nodes.push((next, Some(index)));
            }
        }
    }
    None
}

/// The end, if the quick method gets there from a state without another spare GPU.
fn finished(start: &State, nodes: &[(Pods, Option<usize>)], index: usize) -> Option<State> {
    let mut path = vec![index];
    while let Some(before) = path.last().and_then(|&last| nodes[last].1) {
        path.push(before);
    }
    let mut state = start.clone();
    for &index in path.iter().rev() {
        state.go_to(&nodes[index].0);
    }
    loop {
        state.exchange();
        if state.is_done() {
            return Some(state);
        }
        if !state.make_room(Taste { lookahead: 1, salt: 0 }) {
            return None;
        }
    }
}

impl State {
    /// Creates what a state has more and deletes what it has less.
    fn go_to(&mut self, pods: &Pods) {
        let reason = Reason::MakesRoom;
        let missing: Vec<_> = pods.iter().filter(|(gpu, pod)| !self.pods[*gpu].contains(pod)).collect();
        for &(gpu, pod) in missing {
            self.apply(Op::Create { gpu, pod, reason });
        }
        for gpu in 0..self.pods.len() {
            for pod in self.pods[gpu].clone().into_iter().filter(|&pod| !pods.contains(&(gpu, pod))) {
                self.apply(Op::Delete { gpu, pod, reason });
            }
        }
    }
}

struct Search<'a> {
    case: &'a Case,
    /// States that may still be made.
    left: usize,
}

impl Search<'_> {
    fn rates(&self, pods: &Pods) -> Vec<Rate> {
        let mut rates = vec![0; self.case.services.len()];
        for (_, pod) in pods {
            rates[self.case.service(pod.kind)] += self.case.rate(pod.kind);
        }
        rates
    }

    /// How much of what runs is wanted where it is: the order of the search, not its result.
    fn alike(&self, pods: &Pods) -> i64 {
        pods.iter().map(|&(gpu, pod)| if self.is_wanted(gpu, pod) { 1 } else { -1 }).sum()
    }

    fn is_wanted(&self, gpu: GpuIndex, pod: Pod) -> bool {
        self.case.gpus[gpu].new.contains(&pod)
    }

    /// Without everything that can be spared; what is not wanted where it is goes first.
    fn bare(&self, mut pods: Pods) -> Pods {
        let mut rates = self.rates(&pods);
        let mut all: Vec<(GpuIndex, Pod)> = pods.iter().copied().collect();
        all.sort_by_key(|&(gpu, pod)| self.is_wanted(gpu, pod));
        for (gpu, pod) in all {
            let (service, rate) = (self.case.service(pod.kind), self.case.rate(pod.kind));
            if rates[service] - rate >= self.case.floors[service] {
                rates[service] -= rate;
                pods.remove(&(gpu, pod));
            }
        }
        pods
    }

    fn moves(&mut self, pods: &Pods) -> Vec<Pods> {
        let rates = self.rates(pods);
        let mut moves = Vec::new();
        for (service, rate) in rates.into_iter().enumerate() {
            let seats = self.seats(pods, service);
            let credit = rate - self.case.floors[service];
            for &gone in pods.iter().filter(|(_, pod)| self.case.service(pod.kind) == service) {
                let need = self.case.rate(gone.1.kind) - credit;
                self.pay(pods, gone, need, &seats, &mut Vec::new(), &mut moves);
            }
        }
        moves
    }

    /// Everywhere an instance of a service can go.
    fn seats(&self, pods: &Pods, service: usize) -> Vec<(GpuIndex, Pod)> {
        let kinds: Vec<KindIndex> =
            (0..self.case.kinds.len()).filter(|&kind| self.case.service(kind) == service).collect();
        let mut seats = Vec::new();
        for (gpu, there) in self.case.gpus.iter().enumerate() {
            for &kind in kinds.iter().filter(|&&kind| self.case.kinds[kind].gpu_type == there.gpu_type) {
                let starts = &self.case.model(gpu).profiles[self.case.kinds[kind].profile].starts;
                let fits = |pod: &Pod| self.fits(pods, &[], gpu, *pod);
                seats.extend(
                    starts.iter().map(|&start| Pod { start, kind }).filter(fits).map(|pod| (gpu, pod)),
                );
            }
        }
        seats
    }

    fn fits(&self, pods: &Pods, more: &[(GpuIndex, Pod)], gpu: GpuIndex, pod: Pod) -> bool {
        let first = Pod { start: 0, kind: 0 };
        let here =
            pods.range((gpu, first)..(gpu + 1, first)).chain(more.iter().filter(|(there, _)| *there == gpu));
        let all: Vec<Placed> =
            here.map(|(_, pod)| *pod).chain([pod]).map(|pod| self.case.placed(pod)).collect();
        self.case.model(gpu).allows(&all)
    }

    /// The states after `gone` has left and a smallest set of seats that serves `need` has been taken, for every such set.
    fn pay(
        &mut self,
        pods: &Pods,
        gone: (GpuIndex, Pod),
        need: Rate,
        seats: &[(GpuIndex, Pod)],
        taken: &mut Vec<(GpuIndex, Pod)>,
        moves: &mut Vec<Pods>,
    ) {
        let case = self.case;
        let rate = |seat: &(GpuIndex, Pod)| case.rate(seat.1.kind);
        let paid: Rate = taken.iter().map(rate).sum();
        if paid >= need {
            if taken.iter().all(|seat| paid - rate(seat) < need) {
                self.left -= 1;
                let mut next = pods.clone();
                next.remove(&gone);
                next.extend(taken.iter().copied());
                moves.push(self.bare(next));
            }
            return;
        }
        for (index, &(gpu, pod)) in seats.iter().enumerate() {
            if self.left == 0 {
                return;
            }
            if self.fits(pods, taken, gpu, pod) {
                taken.push((gpu, pod));
                self.pay(pods, gone, need, &seats[index + 1..], taken, moves);
                taken.pop();
            }
        }
    }
}
