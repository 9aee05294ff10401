//! One step after the other: a sequence in which no service ever falls below its floor.
//!
//! This is MIG-serving's exchange-and-compact, for targets at given places. *Exchange* ([`exchange`]): instances of
//! kinds that there are to be more of are created, and those of kinds that there are to be fewer of are deleted as far
//! as what has been created pays for them; what changes its place only is *migrated* (compacted) to where it is wanted.
//! When every place that is wanted is taken by something that cannot be spared, *room is made* ([`room`]): what is in
//! the way moves aside, to holes or to a spare GPU, and a further round begins. Each round puts at least one instance
//! to its final place, where it stays; so it ends.
//!
//! The order here is one of many. Which steps must wait for which is worked out afterwards ([`order`](crate::order)).

mod detour;
mod exchange;
mod room;
mod search;
mod state;
mod tidy;

use downbeat_mig::Placed;

use crate::case::{Case, GpuIndex, KindIndex, Pod};
use crate::step::Driver;
pub(crate) use search::{Effort, Searched, search};
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

/// How choices that look equal are made; several are tried. The default is the quickest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Taste {
    /// How many ways to make room are played through before one is taken.
    pub(crate) lookahead: usize,
    /// Shuffles equal choices.
    pub(crate) salt: u64,
    /// Where something may come from several GPUs that must be emptied, those come first that are nearest to it; else
    /// those that most waits for. For mig-parted: with NVML no GPU must be emptied.
    pub(crate) empties: bool,
}

/// A sequence with at most `spare_max` spare GPUs, or `None` where this way of choosing does not find one.
pub(crate) fn sequence(case: &Case, driver: Driver, spare_max: usize, taste: Taste) -> Option<Sequence> {
    let mut state = State::new(case.clone(), driver);
    let rounds = state.finish(spare_max, taste)?;
    Some(Sequence::of(state, rounds))
}

/// A sequence that first brings together what is to be together, on GPUs that are cut for it already, and then lets
/// whole GPUs trade places. That takes more steps, but hardly ever more than one spare GPU: a GPU's content fits onto
/// an empty one, and leaves another.
pub(crate) fn sequence_by_detour(
    case: &Case,
    driver: Driver,
    spare_max: usize,
    taste: Taste,
) -> Option<Sequence> {
    let mut state = State::new(detour::of(case), driver);
    let rounds = state.finish(spare_max, taste)?;
    state.aim_at(case);
    let rounds = rounds + state.finish(spare_max, taste)?;
    Some(Sequence::of(state, rounds))
}

impl State {
    /// Goes on until everything is as it is wanted; returns how many times room was made.
    fn finish(&mut self, spare_max: usize, taste: Taste) -> Option<usize> {
        let mut rounds = 0;
        loop {
            self.exchange(taste);
            if self.is_done() {
                return Some(rounds);
            }
            rounds += 1;
            if !self.make_room(taste) {
                if self.spares.len() == spare_max {
                    return None;
                }
                self.open_spare();
            }
        }
    }
}

impl Sequence {
    fn of(state: State, rounds: usize) -> Sequence {
        let ops = tidy::tidy(&state.case, state.driver, state.ops);
        Sequence { case: state.case, ops, spares: state.spares, rounds }
    }
}
