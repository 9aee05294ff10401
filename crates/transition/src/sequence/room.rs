//! Making room: what is in the way moves aside.

mod covers;
mod places;

use super::state::State;
use super::{Op, Reason, Taste};
use crate::case::{GpuIndex, KindIndex, Pod};

/// A place that is wanted, and what is in its way.
#[derive(Clone, Debug)]
pub(super) struct Goal {
    pub(super) gpu: GpuIndex,
    pub(super) pod: Pod,
    pub(super) blockers: Vec<Pod>,
}

/// A way to reach a goal: instances that are put somewhere for the time being, so that what is in the way can be
/// spared.
#[derive(Clone, Debug)]
struct Way {
    goal: Goal,
    stopgaps: Vec<(GpuIndex, Pod)>,
    /// How many steps it costs, about: one for each stopgap, one for each that is itself in the way of something.
    cost: usize,
}

impl State {
    /// Makes room for something that is wanted, in the way that costs least; `false` where there is none.
    pub(super) fn make_room(&mut self, taste: Taste) -> bool {
        let mut ways: Vec<Way> = self.goals().iter().filter_map(|goal| self.way(goal, taste)).collect();
        ways.sort_by_key(|way| (way.cost, shuffled(taste.salt, way.goal.gpu, way.goal.pod)));
        if taste.lookahead > 1 {
            ways.truncate(taste.lookahead);
            ways.sort_by_cached_key(|way| self.outcome(way, taste));
        }
        let Some(way) = ways.into_iter().next() else { return false };
        self.go(&way);
        true
    }

    /// What remains to be done after a way, and what it cost: less is better.
    fn outcome(&self, way: &Way, taste: Taste) -> (u64, usize) {
        let mut trial = self.clone();
        let remained = trial.wanted.iter().sum::<u32>();
        trial.ops.clear();
        trial.go(way);
        trial.exchange(taste);
        let done = remained - trial.wanted.iter().sum::<u32>();
        // Cost per instance that came to its place.
        ((way.cost as u64 * 1000) / u64::from(done.max(1)), usize::MAX - done as usize)
    }

    fn goals(&self) -> Vec<Goal> {
        let mut goals: Vec<Goal> = Vec::new();
        for (gpu, view) in self.views.iter().enumerate() {
            for wanted in &view.wanted {
                let same = |goal: &Goal| goal.gpu == gpu && goal.blockers == wanted.blockers;
                if !goals.iter().rev().take_while(|goal| goal.gpu == gpu).any(same) {
                    goals.push(Goal { gpu, pod: wanted.pod, blockers: wanted.blockers.clone() });
                }
            }
        }
        goals
    }

    fn way(&self, goal: &Goal, taste: Taste) -> Option<Way> {
        let mut best: Option<Way> = None;
        for kinds in self.covers(goal) {
            if best.as_ref().is_some_and(|best| best.cost <= kinds.len()) {
                continue;
            }
            let Some((stopgaps, conflicts)) = self.places(goal, &kinds, taste) else { continue };
            let cost = stopgaps.len() + conflicts;
            if best.as_ref().is_none_or(|best| cost < best.cost) {
                best = Some(Way { goal: goal.clone(), stopgaps, cost });
            }
        }
        best
    }

    /// Puts the stopgaps up and takes away what is in the way.
    fn go(&mut self, way: &Way) {
        let reason = Reason::MakesRoom;
        let gpu = way.goal.gpu;
        self.cut_for(&way.stopgaps);
        let mut blockers = way.goal.blockers.clone();
        // What comes back as it was is a migration; those last, because what is created pays for deletions at once.
        let (mut created, mut moved) = (Vec::new(), Vec::new());
        for &(to, pod) in &way.stopgaps {
            match blockers.iter().position(|blocker| blocker.kind == pod.kind) {
                Some(index) => moved.push((blockers.swap_remove(index), to, pod)),
                None => created.push((to, pod)),
            }
        }
        for (to, pod) in created {
            self.apply(Op::Create { gpu: to, pod, reason });
        }
        for (blocker, to, pod) in moved {
            let (from, to) = ((gpu, blocker.start), (to, pod.start));
            self.apply(Op::Migrate { from, to, kind: pod.kind, reason });
        }
        for pod in blockers {
            self.apply(Op::Delete { gpu, pod, reason });
        }
    }

    /// How many memory units a kind takes.
    fn size(&self, kind: KindIndex) -> u8 {
        let kind = &self.case.kinds[kind];
        self.case.types[kind.gpu_type].profiles[kind.profile].size
    }
}

/// A number that orders equal choices differently for each salt; by index for salt 0.
fn shuffled(salt: u64, gpu: GpuIndex, pod: Pod) -> u64 {
    let index = (gpu as u64) << 8 | u64::from(pod.start);
    if salt == 0 {
        index
    } else {
        (index + 1).wrapping_mul(salt.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1).rotate_left(29)
    }
}
