//! What has surely ended when a step begins.

use std::collections::BTreeSet;

/// For each step, every step that it waits for, directly or not.
#[derive(Clone, Debug, Default)]
pub(super) struct Ancestors {
    sets: Vec<BTreeSet<usize>>,
}

impl Ancestors {
    /// Adds the next step; returns those of `after` that the others do not imply.
    pub(super) fn add(&mut self, after: &BTreeSet<usize>) -> BTreeSet<usize> {
        let implied: BTreeSet<usize> = after.iter().flat_map(|&before| &self.sets[before]).copied().collect();
        let direct = after.difference(&implied).copied().collect();
        self.sets.push(implied.union(after).copied().collect());
        direct
    }

    /// Whether `before` has ended when a step that waits for `after` begins.
    pub(super) fn implies(&self, after: &BTreeSet<usize>, before: usize) -> bool {
        after.contains(&before) || after.iter().any(|&step| self.sets[step].contains(&before))
    }
}
