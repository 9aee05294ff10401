//! What surely has happened when something happens.

use crate::step::Step;

/// A step's beginning or its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Event {
    /// The step's index.
    pub(super) step: usize,
    pub(super) is_end: bool,
}

impl Event {
    pub(super) fn begin(step: usize) -> Event {
        Event { step, is_end: false }
    }

    pub(super) fn end(step: usize) -> Event {
        Event { step, is_end: true }
    }
}

/// Who waits for whom, directly or not.
pub(super) struct Precedence {
    /// Row `b`: a bit for each step that has ended when `b` begins.
    rows: Vec<Vec<u64>>,
}

impl Precedence {
    pub(super) fn of(steps: &[Step]) -> Result<Precedence, String> {
        let words = steps.len().div_ceil(64);
        let mut rows: Vec<Vec<u64>> = Vec::with_capacity(steps.len());
        for (index, step) in steps.iter().enumerate() {
            if step.id as usize != index + 1 {
                return Err(format!("step {} is at place {} of the list", step.id, index + 1));
            }
            let mut row = vec![0u64; words];
            for &id in &step.after {
                let before = (id as usize).wrapping_sub(1);
                if before >= index {
                    return Err(format!(
                        "step {} waits for step {id}, which does not come before it",
                        step.id
                    ));
                }
                row[before / 64] |= 1 << (before % 64);
                for (word, more) in row.iter_mut().zip(&rows[before]) {
                    *word |= more;
                }
            }
            rows.push(row);
        }
        Ok(Precedence { rows })
    }

    /// Whether `first` has ended whenever `then` begins.
    pub(super) fn ends_before(&self, first: usize, then: usize) -> bool {
        self.rows[then][first / 64] >> (first % 64) & 1 == 1
    }

    /// Whether `a` has happened whenever `b` happens; not the case for the same event.
    pub(super) fn precedes(&self, a: Event, b: Event) -> bool {
        if a.step == b.step { !a.is_end && b.is_end } else { self.ends_before(a.step, b.step) }
    }
}
