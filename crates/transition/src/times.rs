//! How long steps take, and when each begins if it begins as soon as it may.

#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};

use crate::case::Case;
use crate::sequence::Op;
use crate::step::Transition;

/// Seconds that the parts of steps take.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct StepTimes {
    /// From asking for an instance to its first answer, its slice being there.
    pub create_s: f64,
    /// Stopping an instance.
    pub delete_s: f64,
    /// Moving an instance to another GPU of its node.
    pub migrate_local_s: f64,
    /// Moving an instance to another node.
    pub migrate_remote_s: f64,
    /// Changing slices and making that known to the cluster, apart from the slices themselves.
    pub repartition_s: f64,
    /// Each slice that is made.
    pub slice_create_s: f64,
    /// Each slice that is removed.
    pub slice_delete_s: f64,
}

impl StepTimes {
    /// As MIG-serving measured on Kubernetes in 2021.
    pub const PAPER_2021: StepTimes = StepTimes {
        create_s: 47.0,
        delete_s: 38.0,
        migrate_local_s: 30.0,
        migrate_remote_s: 48.0,
        repartition_s: 50.0,
        slice_create_s: 0.0,
        slice_delete_s: 0.0,
    };

    /// As published in 2024 for small pods: changing slices costs a restart of the device plugin. Stopping a pod was
    /// not reported and is taken to be as quick as starting one.
    pub const PAPER_2024: StepTimes = StepTimes {
        create_s: 0.12,
        delete_s: 0.12,
        migrate_local_s: 0.24,
        migrate_remote_s: 0.24,
        repartition_s: 4.3,
        slice_create_s: 0.04,
        slice_delete_s: 0.1,
    };

    /// What a step takes. Making a slice for an instance is a repartition too.
    pub(crate) fn of(&self, op: &Op, case: &Case, cuts: bool) -> f64 {
        let cutting = if cuts { self.repartition_s + self.slice_create_s } else { 0.0 };
        match op {
            Op::Create { .. } => self.create_s + cutting,
            Op::Delete { .. } => self.delete_s,
            Op::Migrate { from, to, .. } => {
                let local = case.gpus[from.0].node == case.gpus[to.0].node;
                cutting + if local { self.migrate_local_s } else { self.migrate_remote_s }
            }
            Op::Repartition { slices, .. } => self.repartition_s + self.slice_create_s * slices.len() as f64,
        }
    }
}

/// Fills in when each step begins and ends, its slack, how long the whole takes and the path that decides it.
pub(crate) fn schedule(transition: &mut Transition) {
    let count = transition.steps.len();
    for index in 0..count {
        let begins = transition.steps[index].after.iter().map(|&id| transition.steps[id as usize - 1].end_s);
        let start = begins.fold(0.0, f64::max);
        let step = &mut transition.steps[index];
        step.start_s = start;
        step.end_s = start + step.expected_s;
    }
    let whole = transition.steps.iter().map(|step| step.end_s).fold(0.0, f64::max);
    let mut latest_end = vec![whole; count];
    for index in (0..count).rev() {
        let step = &transition.steps[index];
        let latest_start = latest_end[index] - step.expected_s;
        for &before in &step.after {
            let end = &mut latest_end[before as usize - 1];
            *end = end.min(latest_start);
        }
        transition.steps[index].slack_s = (latest_end[index] - transition.steps[index].end_s).max(0.0);
    }
    transition.expected_s = whole;
    transition.critical_path = critical_path(transition);
}

/// From the last step to end back to the first: each waited for the one before.
fn critical_path(transition: &Transition) -> Vec<u32> {
    let steps = &transition.steps;
    let last = steps.iter().max_by(|a, b| a.end_s.total_cmp(&b.end_s).then(b.id.cmp(&a.id)));
    let mut path = Vec::new();
    let mut at = last;
    while let Some(step) = at {
        path.push(step.id);
        let before = step.after.iter().map(|&id| &steps[id as usize - 1]);
        at = before.max_by(|a, b| a.end_s.total_cmp(&b.end_s).then(b.id.cmp(&a.id)));
    }
    path.reverse();
    path
}
