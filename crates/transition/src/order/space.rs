//! One GPU: what is there, what has left, and which step did it.

use std::collections::BTreeSet;

use downbeat_mig::{GpuModel, Placed};

use super::ancestors::Ancestors;
use crate::case::{Case, GpuIndex};

/// Of so many things that may still be there every combination is looked at.
const SUBSETS_OF: usize = 10;

/// The history of a GPU's places.
#[derive(Clone, Debug)]
pub(super) struct Space {
    /// What is there and the step that brought it, where one did.
    present: Vec<(Placed, Option<usize>)>,
    /// What has left: the step it left with, and the step it had come with.
    gone: Vec<(Placed, usize, Option<usize>)>,
    slices: Vec<Placed>,
    last_cut: Option<usize>,
}

impl Space {
    pub(super) fn new(case: &Case, gpu: GpuIndex) -> Space {
        let there = &case.gpus[gpu];
        let old: Vec<Placed> = there.old.iter().map(|&pod| case.placed(pod)).collect();
        Space {
            present: old.iter().map(|&placed| (placed, None)).collect(),
            gone: Vec::new(),
            slices: old.into_iter().chain(there.idle.iter().copied()).collect(),
            last_cut: None,
        }
    }

    /// Something comes with step `index`. Adds to `after` what it waits for; returns the step that left exactly this
    /// slice behind, where there is one.
    pub(super) fn come(
        &mut self,
        index: usize,
        model: &GpuModel,
        placed: Placed,
        after: &mut BTreeSet<usize>,
        ancestors: &Ancestors,
    ) -> Option<usize> {
        after.extend(self.last_cut);
        let end = |placed: Placed| placed.start + model.profiles[placed.profile].size;
        let overlaps = |other: Placed| other.start < end(placed) && placed.start < end(other);
        after.extend(self.gone.iter().filter(|(other, ..)| overlaps(*other)).map(|(_, leaver, _)| *leaver));
        // Where it may find more there than the GPU allows beside it, it waits for what left last of that.
        loop {
            let lingering: Vec<(Placed, usize)> = (self.gone.iter())
                .filter(|(_, leaver, _)| !ancestors.implies(after, *leaver))
                .map(|&(other, leaver, _)| (other, leaver))
                .collect();
            let Some(leaver) = self.too_much(model, placed, &lingering) else { break };
            after.insert(leaver);
        }
        let reused = self.reused(placed, overlaps);
        self.present.push((placed, Some(index)));
        reused
    }

    /// Of what has left but may still be there, something without which `placed` is allowed; `None` where it is allowed
    /// anyway.
    fn too_much(&self, model: &GpuModel, placed: Placed, lingering: &[(Placed, usize)]) -> Option<usize> {
        let end = |placed: Placed| placed.start + model.profiles[placed.profile].size;
        let overlap = |a: Placed, b: Placed| a.start < end(b) && b.start < end(a);
        // Beyond a few, all at once are taken for the worst there may be, whether they can meet or not.
        let few = lingering.len() <= SUBSETS_OF;
        let subsets = if few { 0..1usize << lingering.len() } else { 0..1 };
        for subset in subsets {
            let is_there = |index: usize| !few || subset >> index & 1 == 1;
            let there = || {
                lingering.iter().enumerate().filter(|(index, _)| is_there(*index)).map(|(_, other)| *other)
            };
            // What came to the place of something waited for it to leave.
            let came = self.present.iter().map(|(other, _)| *other);
            let came = came.filter(|&other| !few || !there().any(|(stays, _)| overlap(stays, other)));
            let all: Vec<Placed> = came.chain(there().map(|(other, _)| other)).chain([placed]).collect();
            if !model.allows(&all) {
                return there().next_back().map(|(_, leaver)| leaver);
            }
        }
        None
    }

    /// The step that left this slice behind, if the slice can stay for the next one: nothing that came and went
    /// meanwhile counted on its being gone.
    fn reused(&self, placed: Placed, overlaps: impl Fn(Placed) -> bool) -> Option<usize> {
        let &(last, leaver, _) = self.gone.iter().rev().find(|(other, ..)| overlaps(*other))?;
        let visited = self.gone.iter().any(|(_, _, comer)| comer.is_some_and(|comer| comer > leaver));
        (last == placed && !visited).then_some(leaver)
    }

    /// Something leaves with step `index`; adds to `after` the step it came with.
    pub(super) fn leave(&mut self, index: usize, placed: Placed, after: &mut BTreeSet<usize>) {
        if let Some(at) = self.present.iter().position(|(other, _)| *other == placed) {
            let (_, comer) = self.present.swap_remove(at);
            after.extend(comer);
            self.gone.push((placed, index, comer));
        }
    }

    /// The GPU is cut anew with step `index`, after everything has left it; returns the slices that go and come.
    pub(super) fn cut(
        &mut self,
        index: usize,
        slices: &[Placed],
        after: &mut BTreeSet<usize>,
    ) -> (Vec<Placed>, Vec<Placed>) {
        after.extend(self.last_cut);
        after.extend(self.gone.drain(..).map(|(_, leaver, _)| leaver));
        let kept = |slice: &Placed| self.present.iter().any(|(other, _)| other == slice);
        let removes = self.slices.iter().copied().filter(|slice| !kept(slice)).collect();
        let makes = slices.iter().copied().filter(|slice| !kept(slice)).collect();
        self.slices = slices.to_vec();
        self.last_cut = Some(index);
        (removes, makes)
    }
}
