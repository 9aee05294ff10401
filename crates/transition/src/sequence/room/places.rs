//! Where stopgaps go.

use downbeat_mig::Placed;

use super::{Goal, shuffled};
use crate::case::{GpuIndex, KindIndex, Pod};
use crate::sequence::state::State;
use crate::sequence::{Op, Taste};
use crate::step::Driver;

/// Places that are looked at for each stopgap, and in all.
const PLACES_EACH: usize = 10;
const PLACES_ALL: usize = 400;

/// A place for a stopgap, and of how many wanted instances it would be in the way.
#[derive(Clone, Copy, Debug)]
struct Candidate {
    gpu: GpuIndex,
    pod: Pod,
    conflicts: usize,
}

impl State {
    /// Places for instances of these kinds, none in the way of the goal, and how many wanted instances they would be in
    /// the way of.
    pub(super) fn places(
        &self,
        goal: &Goal,
        kinds: &[KindIndex],
        taste: Taste,
    ) -> Option<(Vec<(GpuIndex, Pod)>, usize)> {
        // The largest are the hardest to place.
        let mut kinds = kinds.to_vec();
        kinds.sort_by_key(|&kind| (std::cmp::Reverse(self.size(kind)), kind));
        let mut taken = Vec::new();
        let mut budget = PLACES_ALL;
        self.place_all(goal, &kinds, taste, &mut taken, &mut budget).then(|| {
            let conflicts = taken.iter().map(|candidate| candidate.conflicts).sum();
            (taken.iter().map(|candidate| (candidate.gpu, candidate.pod)).collect(), conflicts)
        })
    }

    fn place_all(
        &self,
        goal: &Goal,
        kinds: &[KindIndex],
        taste: Taste,
        taken: &mut Vec<Candidate>,
        budget: &mut usize,
    ) -> bool {
        let Some((&kind, rest)) = kinds.split_first() else { return true };
        for candidate in self.candidates(goal, kind, taste, taken) {
            if *budget == 0 {
                return false;
            }
            *budget -= 1;
            taken.push(candidate);
            if self.place_all(goal, rest, taste, taken, budget) {
                return true;
            }
            taken.pop();
        }
        false
    }

    /// Where an instance of a kind can go now: out of others' way first, then on the goal's node, then where little
    /// room is left.
    fn candidates(&self, goal: &Goal, kind: KindIndex, taste: Taste, taken: &[Candidate]) -> Vec<Candidate> {
        let mut found = Vec::new();
        let wanted = &self.case.kinds[kind];
        for gpu in (0..self.case.gpus.len()).filter(|&gpu| self.case.gpus[gpu].gpu_type == wanted.gpu_type) {
            let here: Vec<Pod> = taken
                .iter()
                .filter(|candidate| candidate.gpu == gpu)
                .map(|candidate| candidate.pod)
                .collect();
            for &start in &self.case.model(gpu).profiles[wanted.profile].starts {
                let pod = Pod { start, kind };
                if self.busy[gpu] & self.units(pod) == 0 && self.has_room(goal, gpu, &here, pod) {
                    found.push(Candidate { gpu, pod, conflicts: self.conflicts(gpu, pod) });
                }
            }
        }
        let node = self.case.gpus[goal.gpu].node;
        found.sort_by_cached_key(|candidate| {
            let gpu = candidate.gpu;
            let used: u32 = self.pods[gpu].iter().map(|pod| u32::from(self.size(pod.kind))).sum();
            (
                candidate.conflicts,
                self.case.gpus[gpu].node != node,
                std::cmp::Reverse(used),
                shuffled(taste.salt, gpu, candidate.pod),
            )
        });
        found.truncate(PLACES_EACH);
        found
    }

    /// Whether a stopgap can run here, beside `here` and what runs already, without being in the way of the goal.
    fn has_room(&self, goal: &Goal, gpu: GpuIndex, here: &[Pod], pod: Pod) -> bool {
        let model = self.case.model(gpu);
        let placed = |pods: &mut dyn Iterator<Item = Pod>| -> Vec<Placed> {
            pods.map(|pod| self.case.placed(pod)).collect()
        };
        let now = placed(&mut self.pods[gpu].iter().chain(here).copied().chain([pod]));
        if !model.allows(&now) {
            return false;
        }
        if self.driver == Driver::MigParted {
            let is_goal = gpu == goal.gpu && (self.pending[gpu] || self.overlap(pod, goal.pod));
            return !is_goal && (self.slices[gpu].contains(&self.case.placed(pod)) || self.is_blank(gpu));
        }
        if gpu != goal.gpu {
            return true;
        }
        let stay = self.pods[gpu].iter().filter(|pod| !goal.blockers.contains(pod));
        let then = placed(&mut stay.chain(here).copied().chain([pod, goal.pod]));
        model.allows(&then)
    }

    /// Whether mig-parted may cut this GPU as is convenient: nothing runs on it, and nothing is wanted there.
    fn is_blank(&self, gpu: GpuIndex) -> bool {
        self.pods[gpu].is_empty() && self.views[gpu].wanted.is_empty()
    }

    /// Of how many wanted instances a stopgap would be in the way.
    fn conflicts(&self, gpu: GpuIndex, pod: Pod) -> usize {
        if self.pending[gpu] {
            return 1;
        }
        self.views[gpu].wanted.iter().filter(|wanted| self.overlap(pod, wanted.pod)).count()
    }

    /// Cuts blank GPUs so that the stopgaps fit, and what is left of them into slices of the kinds that most is to be
    /// moved of.
    pub(super) fn cut_for(&mut self, stopgaps: &[(GpuIndex, Pod)]) {
        if self.driver != Driver::MigParted {
            return;
        }
        for gpu in 0..self.case.gpus.len() {
            let mut slices: Vec<Placed> =
                stopgaps.iter().filter(|(to, _)| *to == gpu).map(|(_, pod)| self.case.placed(*pod)).collect();
            if slices.iter().all(|slice| self.slices[gpu].contains(slice)) {
                continue;
            }
            for profile in self.profiles_on_the_move(gpu) {
                for &start in &self.case.model(gpu).profiles[profile].starts {
                    slices.push(Placed { start, profile });
                    if !self.case.model(gpu).allows(&slices) {
                        slices.pop();
                    }
                }
            }
            slices.sort_unstable();
            self.apply(Op::Repartition { gpu, slices });
        }
    }

    /// Profiles of a GPU's type, by how many instances are where they are not wanted.
    fn profiles_on_the_move(&self, gpu: GpuIndex) -> Vec<usize> {
        let gpu_type = self.case.gpus[gpu].gpu_type;
        let mut counts = vec![0; self.case.types[gpu_type].profiles.len()];
        for (kind, &surplus) in self.case.kinds.iter().zip(&self.surplus) {
            if kind.gpu_type == gpu_type {
                counts[kind.profile] += surplus;
            }
        }
        let mut profiles: Vec<usize> = (0..counts.len()).filter(|&profile| counts[profile] > 0).collect();
        profiles.sort_by_key(|&profile| std::cmp::Reverse(counts[profile]));
        profiles
    }
}
