//! One step after the other: a sequence in which no service ever falls below its floor.
//!
//! This is MIG-serving's exchange-and-compact, for targets at given places. *Exchange* ([`exchange`]): instances of kinds that there are to be
//! more of are created, and those of kinds that there are to be fewer of are deleted as far as what has been created pays for
//! them; what changes its place only is *migrated* (compacted) to where it is wanted. When every place that is wanted is taken by
//! something that cannot be spared, *room is made* ([`room`]): what is in the way moves aside, to holes or to a spare GPU, and a
//! further round begins. Each round puts at least one instance to its final place, where it stays; so it ends.
//!
//! The order here is one of many. Which steps must wait for which is worked out afterwards ([`order`](crate::order)).

mod exchange;
mod room;
mod search;
mod state;
mod tidy;

use downbeat_mig::Placed;

use crate::case::{Case, GpuIndex, KindIndex, Pod};
use crate::step::Driver;
pub(crate) use search::Effort;
use state::State;

/// What is done next.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Op {
    Create { gpu: GpuIndex, pod: Pod, reason: Reason },
    Delete { gpu: GpuIndex, pod: Pod, reason: Reason },
    Migrate { from: (GpuIndex, u8), to: (GpuIndex, u8), kind: KindIndex, reason: Reason },
    Repartition { gpu: GpuIndex, slices: Vec<Placed> },
}

/// Why something is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reason {
    /// It is what the second layout says.
    Wanted,
    /// It lets something else move, and will be undone.
    MakesRoom,
}

/// A sequence, and the case with the spare GPUs that it takes.
#[derive(Clone, Debug)]
pub(crate) struct Sequence {
    pub(crate) case: Case,
    pub(crate) ops: Vec<Op>,
    pub(crate) spares: Vec<GpuIndex>,
    pub(crate) rounds: usize,
}

/// How choices that look equal are made; several are tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Taste {
    /// How many ways to make room are played through before one is taken.
    pub(crate) lookahead: usize,
    /// Shuffles equal choices.
    pub(crate) salt: u64,
}

/// A sequence with at most `spare_max` spare GPUs, or `None` where this way of choosing does not find one.
pub(crate) fn sequence(case: &Case, driver: Driver, spare_max: usize, taste: Taste) -> Option<Sequence> {
    let mut state = State::new(case.clone(), driver);
    let mut rounds = 0;
    loop {
        state.exchange();
        if state.is_done() {
            break;
        }
        rounds += 1;
        if !state.make_room(taste) {
            if state.spares.len() == spare_max {
                return None;
            }
            state.open_spare();
        }
    }
    Some(Sequence::of(state, rounds))
}

/// A sequence with exactly `spares` spare GPUs, found by searching; for NVML.
pub(crate) fn search(case: &Case, spares: usize, effort: Effort) -> Option<Sequence> {
    let state = search::search(case, spares, effort)?;
    Some(Sequence::of(state, 1))
}

impl Sequence {
    fn of(state: State, rounds: usize) -> Sequence {
        let ops = tidy::tidy(&state.case, state.driver, state.ops);
        Sequence { case: state.case, ops, spares: state.spares, rounds }
    }
}
