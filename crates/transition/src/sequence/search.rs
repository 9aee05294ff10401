//! A search for transitions with fewer spare GPUs than making room one goal at a time needs.
//!
//! What matters of a state is what it cannot do without. Any state is reached from any part of itself that keeps the
//! floors (create what is missing), and the other way round (delete it). So it is enough to visit *bare* states, in
//! which no service can spare an instance. The first instance of a bare state that any path deletes must be paid for by
//! instances of its own service, put into room that the bare state leaves. A move is therefore: choose an instance,
//! choose a smallest set of instances of its service that pay for it, put them up, take it down, and bare the rest. Of
//! every state that can be reached, some part is visited; the second layout is reached exactly if a part of it is.
//!
//! With mig-parted an instance's seat includes the cut of its GPU ([`seats`]): a GPU on which nothing runs can be cut
//! in any way, and a cut with more slices is never worse.
//!
//! Whatever can be done can be undone, so the search goes from both ends at once: from the second layout backwards,
//! which reaches the first exactly if a part of that is visited. Where either end has nothing left to visit, there is
//! no way, and that is a proof.

mod bare;
mod seats;
#[cfg(test)]
mod tests;

use std::collections::{BTreeSet, BinaryHeap};

use super::state::State;
use super::{Op, Reason, Sequence, Taste};
use crate::case::{Case, GpuIndex, Pod};
use crate::step::Driver;
use bare::{Bare, Moves};
use seats::{SeatIndex, Seats};

/// How far a search goes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Effort {
    /// States that are looked at.
    pub(crate) visits: usize,
    /// States that are made, equal ones included.
    pub(crate) states: usize,
    /// From so many of the first states the quick method is tried: it takes longer than to look at a state.
    pub(crate) quick: usize,
}

/// What a search found.
pub(crate) enum Searched {
    Way(Box<Sequence>),
    /// There is no way, whatever the effort.
    Proof,
    /// The effort was not enough to tell.
    Unknown,
}

/// How many sets of seats are looked at for each state that may be made.
const TRIES_PER_STATE: usize = 50;

/// From so many points of a path the quick method goes on: paths may be hundreds of moves long.
const PREFIXES: usize = 8;

/// Second layouts may fit into several cuts; beyond so many, nothing is searched backwards.
const ENDS_MAX: usize = 64;

/// A sequence with exactly `spares` spare GPUs, where one is found.
pub(crate) fn search(case: &Case, driver: Driver, spares: usize, effort: Effort) -> Searched {
    let mut start = State::new(case.clone(), driver);
    for _ in 0..spares {
        start.open_spare();
    }
    let Some(seats) = Seats::new(&start.case, driver) else { return Searched::Unknown };
    let mut moves = Moves {
        seats: &seats,
        case: &start.case,
        left: effort.states,
        tries: TRIES_PER_STATE * effort.states,
    };
    let first = start_of(&start.case, &seats);
    let is_first = (0..seats.all.len()).map(|seat| first.contains(&(seat as SeatIndex))).collect();
    let is_last = seats.all.iter().map(|seat| seat.is_wanted).collect();
    let ends: Vec<Bare> = ends_of(&start.case, &seats).into_iter().map(|end| moves.bare(end)).collect();
    let mut ahead = Side::new([moves.bare(first)], is_last);
    let mut back = Side::new(ends, is_first);
    for visit in 0..effort.visits {
        if moves.left == 0 {
            return Searched::Unknown;
        }
        let Some(index) = ahead.next() else { return Searched::Proof };
        if (ahead.is_there(index) || visit < effort.quick)
            && let path = ahead.path(index).into_iter().rev().collect::<Vec<_>>()
            && let Some(found) = shortest(&start, &seats, &path)
        {
            return Searched::Way(Box::new(found));
        }
        ahead.visit(index, &mut moves);
        if back.nodes.is_empty() {
            continue;
        }
        let Some(index) = back.next() else { return Searched::Proof };
        if back.is_there(index)
            && let Some(found) = shortest(&start, &seats, &back.path(index))
        {
            return Searched::Way(Box::new(found));
        }
        back.visit(index, &mut moves);
    }
    Searched::Unknown
}

/// What runs at the start.
fn start_of(case: &Case, seats: &Seats) -> Bare {
    let on = |gpu: GpuIndex| case.gpus[gpu].old.iter().filter_map(move |&pod| seats.find(gpu, 0, pod));
    let mut start: Bare = (0..case.gpus.len()).flat_map(on).collect();
    start.sort_unstable();
    start
}

/// The second layout, in every cut of the GPUs that it fits into; nothing where those are too many.
fn ends_of(case: &Case, seats: &Seats) -> Vec<Bare> {
    let mut ends = vec![Bare::new()];
    for (gpu, there) in case.gpus.iter().enumerate().filter(|(_, there)| !there.new.is_empty()) {
        let within = |cut: usize| -> Option<Bare> {
            let found: Option<Bare> = there.new.iter().map(|&pod| seats.find(gpu, cut, pod)).collect();
            found.filter(|found| found.iter().all(|&seat| seats.all[usize::from(seat)].is_wanted))
        };
        let here: Vec<Bare> = (0..seats.cuts[gpu].len()).filter_map(within).collect();
        if ends.len() * here.len() > ENDS_MAX {
            return Vec::new();
        }
        ends = ends.iter().flat_map(|end| here.iter().map(move |here| [&end[..], here].concat())).collect();
    }
    ends
}

/// One end of the search: what was seen from there, and how.
struct Side {
    /// By seat, whether the other end has it.
    goal: Vec<bool>,
    /// States, and the one that each was reached from.
    nodes: Vec<(Bare, Option<usize>)>,
    seen: BTreeSet<Bare>,
    /// Those most like the other end first: the order of the search, not its result.
    open: BinaryHeap<(i64, usize)>,
}

impl Side {
    fn new(roots: impl IntoIterator<Item = Bare>, goal: Vec<bool>) -> Side {
        let mut side = Side { goal, nodes: Vec::new(), seen: BTreeSet::new(), open: BinaryHeap::new() };
        for root in roots {
            side.add(root, None);
        }
        side
    }

    fn add(&mut self, state: Bare, from: Option<usize>) {
        if !self.seen.contains(&state) {
            self.seen.insert(state.clone());
            let alike = state.iter().map(|&seat| if self.goal[usize::from(seat)] { 1 } else { -1 }).sum();
            self.open.push((alike, self.nodes.len()));
            self.nodes.push((state, from));
        }
    }

    fn next(&mut self) -> Option<usize> {
        self.open.pop().map(|(_, index)| index)
    }

    /// Whether a state is part of the other end.
    fn is_there(&self, index: usize) -> bool {
        self.nodes[index].0.iter().all(|&seat| self.goal[usize::from(seat)])
    }

    fn visit(&mut self, index: usize, moves: &mut Moves<'_>) {
        for next in moves.of(&self.nodes[index].0) {
            self.add(next, Some(index));
        }
    }

    /// The states from one back to where its side began.
    fn path(&self, index: usize) -> Vec<&Bare> {
        let mut path = vec![index];
        while let Some(before) = path.last().and_then(|&last| self.nodes[last].1) {
            path.push(before);
        }
        path.into_iter().map(|index| &self.nodes[index].0).collect()
    }
}

/// The shortest of the sequences that follow a path for a while, the quick method going on from there; `None` where
/// that does not get from its end to the second layout without another spare GPU.
fn shortest(start: &State, seats: &Seats, path: &[&Bare]) -> Option<Sequence> {
    let after = |length: usize| {
        let mut state = start.clone();
        path[..length].iter().for_each(|bare| state.go_to(seats, bare));
        let spares = state.spares.len();
        state.finish(spares, Taste::default())?;
        Some(Sequence::of(state, 1))
    };
    let whole = after(path.len())?;
    let stride = path.len().div_ceil(PREFIXES);
    (1..path.len()).step_by(stride).filter_map(after).chain([whole]).min_by_key(|found| found.ops.len())
}

impl State {
    /// Creates what a state has more and deletes what it has less.
    fn go_to(&mut self, seats: &Seats, bare: &Bare) {
        let reason = Reason::MakesRoom;
        let there: Vec<_> = bare.iter().map(|&seat| &seats.all[usize::from(seat)]).collect();
        for seat in &there {
            let (gpu, pod) = (seat.gpu, seat.pod);
            if self.pods[gpu].contains(&pod) {
                continue;
            }
            let cut = &seats.cuts[gpu][seat.cut];
            // What runs on a GPU is of one cut, so that the cut is there as soon as anything of it is.
            if self.pods[gpu].is_empty() && !cut.iter().all(|slice| self.slices[gpu].contains(slice)) {
                self.apply(Op::Repartition { gpu, slices: cut.clone() });
            }
            self.apply(Op::Create { gpu, pod, reason });
        }
        for gpu in 0..self.pods.len() {
            let is_there = |pod: &Pod| there.iter().any(|seat| seat.gpu == gpu && seat.pod == *pod);
            for pod in self.pods[gpu].clone().into_iter().filter(|pod| !is_there(pod)) {
                self.apply(Op::Delete { gpu, pod, reason });
            }
        }
    }
}
