//! Every moment of every interleaving, one by one.

use std::collections::BTreeSet;

use super::Ground;
use super::machine::Machine;
use crate::layout::Layout;
use crate::step::Transition;

/// How it went.
pub(super) enum Outcome {
    /// All of so many moments are fine.
    AllFine(usize),
    /// There are more than were allowed.
    TooMany,
    /// One is not.
    Wrong(String),
}

/// For each step whether it has begun and whether it has ended.
type Moment = Vec<(bool, bool)>;

/// Plays all moments, as long as there are at most `most`.
pub(super) fn play(ground: &Ground, from: &Layout, transition: &Transition, most: usize) -> Outcome {
    let steps = &transition.steps;
    let first: Moment = vec![(false, false); steps.len()];
    let mut seen: BTreeSet<Moment> = BTreeSet::from([first.clone()]);
    let mut open = vec![(first, Machine::new(ground, from))];
    while let Some((moment, machine)) = open.pop() {
        for (index, step) in steps.iter().enumerate() {
            let (begun, ended) = moment[index];
            let ready = step.after.iter().all(|&id| moment[id as usize - 1].1);
            if ended || !begun && !ready {
                continue;
            }
            let mut next = moment.clone();
            next[index] = (true, begun);
            if seen.contains(&next) {
                continue;
            }
            if seen.len() >= most {
                return Outcome::TooMany;
            }
            let mut machine = machine.clone();
            let played = if begun { machine.end(step) } else { machine.begin(step) };
            if let Err(wrong) = played {
                let under_way: Vec<String> = (steps.iter().zip(&next))
                    .filter(|(_, (begun, ended))| *begun && !ended)
                    .map(|(step, _)| step.id.to_string())
                    .collect();
                return Outcome::Wrong(format!(
                    "step {}: {wrong} (while step {} is under way)",
                    step.id,
                    under_way.join(", ")
                ));
            }
            seen.insert(next.clone());
            open.push((next, machine));
        }
    }
    Outcome::AllFine(seen.len())
}
