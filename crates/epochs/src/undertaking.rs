//! A change that is being carried out.

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use downbeat_transition::{Layout, Step, Transition, state_after};

/// A transition under way: which steps have ended, which run, which may begin.
///
/// Whoever carries it out begins what is [ready](Self::ready), in any order and side by side, and tells of every
/// beginning and end.
#[derive(Clone, Debug)]
pub struct Undertaking {
    from: Layout,
    transition: Transition,
    running: BTreeSet<u32>,
    ended: BTreeSet<u32>,
    failed: BTreeSet<u32>,
    stopped: bool,
}

impl Undertaking {
    /// A transition from a layout, of which nothing has begun.
    pub fn new(from: Layout, transition: Transition) -> Undertaking {
        let [running, ended, failed] = [BTreeSet::new(), BTreeSet::new(), BTreeSet::new()];
        Undertaking { from, transition, running, ended, failed, stopped: false }
    }

    /// The transition.
    pub fn transition(&self) -> &Transition {
        &self.transition
    }

    /// The steps that may begin now.
    pub fn ready(&self) -> impl Iterator<Item = &Step> {
        let waits = |step: &&Step| {
            let begun = [&self.running, &self.ended, &self.failed].iter().any(|set| set.contains(&step.id));
            !begun && step.after.iter().all(|before| self.ended.contains(before))
        };
        self.transition.steps.iter().filter(|_| !self.stopped).filter(waits)
    }

    /// The steps that run.
    pub fn running(&self) -> impl Iterator<Item = &Step> {
        self.transition.steps.iter().filter(|step| self.running.contains(&step.id))
    }

    /// The steps that have neither ended nor failed: those that run, and, unless it was stopped, those that wait.
    pub fn remaining(&self) -> impl Iterator<Item = &Step> {
        let over = |step: &&Step| self.ended.contains(&step.id) || self.failed.contains(&step.id);
        let waits = |step: &&Step| !self.stopped || self.running.contains(&step.id);
        self.transition.steps.iter().filter(move |step| !over(step) && waits(step))
    }

    /// A step that was ready has begun.
    pub fn begin(&mut self, id: u32) {
        if self.ready().any(|step| step.id == id) {
            self.running.insert(id);
        }
    }

    /// A step that ran has ended.
    pub fn end(&mut self, id: u32) {
        if self.running.remove(&id) {
            self.ended.insert(id);
        }
    }

    /// A step that ran has failed: nothing that waits for it can begin, and nothing else will.
    pub fn fail(&mut self, id: u32) {
        if self.running.remove(&id) {
            self.failed.insert(id);
            self.stopped = true;
        }
    }

    /// Lets no further step begin.
    pub fn stop(&mut self) {
        self.stopped = true;
    }

    /// Whether it was stopped, or a step has failed.
    pub fn is_stopped(&self) -> bool {
        self.stopped
    }

    /// Whether nothing runs and nothing more will.
    pub fn is_over(&self) -> bool {
        self.running.is_empty() && self.ready().next().is_none()
    }

    /// What there is when the steps that ended have ended and no other has begun.
    pub fn layout(&self) -> Layout {
        let ids = |set: &BTreeSet<u32>| set.iter().copied().collect::<Vec<u32>>();
        // Only steps of this transition get into the sets, and none before what it waits for.
        state_after(&self.from, &self.transition, &ids(&self.ended), &ids(&self.failed))
            .unwrap_or_else(|_| self.from.clone())
    }

    /// What there is to be in the end.
    pub fn target(&self) -> Layout {
        let all: Vec<u32> = self.transition.steps.iter().map(|step| step.id).collect();
        state_after(&self.from, &self.transition, &all, &[]).unwrap_or_else(|_| self.from.clone())
    }
}
