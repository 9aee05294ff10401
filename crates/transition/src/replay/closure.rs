//! The worst moment for a sum.

use std::collections::VecDeque;

use super::precedence::{Event, Precedence};

/// The largest sum of weights over all moments: sets of events that hold everything their members wait for.
///
/// A closure of largest weight: what is gained by all good events, less the smallest cut between those that are taken
/// and the bad ones that they bring along.
pub(super) fn largest(precedence: &Precedence, weights: &[(Event, i64)]) -> i64 {
    let good: Vec<(Event, i64)> = weights.iter().copied().filter(|(_, weight)| *weight > 0).collect();
    let bad: Vec<(Event, i64)> = weights.iter().copied().filter(|(_, weight)| *weight < 0).collect();
    let mut flow = Flow {
        needs: (good.iter())
            .map(|(event, _)| {
                (0..bad.len()).filter(|&index| precedence.precedes(bad[index].0, *event)).collect()
            })
            .collect(),
        left: good.iter().map(|(_, weight)| *weight).collect(),
        open: bad.iter().map(|(_, weight)| -weight).collect(),
        paid: vec![Default::default(); bad.len()],
    };
    let gained: i64 = flow.left.iter().sum();
    gained - flow.largest()
}

/// Gains of good events are spent on the bad events that they bring along, as much as can be.
struct Flow {
    /// The bad events that each good one brings along.
    needs: Vec<Vec<usize>>,
    /// What each good event has left to spend.
    left: Vec<i64>,
    /// What each bad event can still take.
    open: Vec<i64>,
    /// What each bad event has been paid by each good one.
    paid: Vec<std::collections::BTreeMap<usize, i64>>,
}

impl Flow {
    /// Augments along shortest paths until there is none.
    fn largest(&mut self) -> i64 {
        let mut total = 0;
        while let Some(more) = self.augment() {
            total += more;
        }
        total
    }

    fn augment(&mut self) -> Option<i64> {
        // From good events with something left, over bad ones they need, back over those who paid for these.
        let mut from_good: Vec<Option<usize>> = vec![None; self.open.len()];
        let mut from_bad: Vec<Option<Option<usize>>> = vec![None; self.left.len()];
        let mut queue: VecDeque<usize> = (0..self.left.len()).filter(|&good| self.left[good] > 0).collect();
        for &good in &queue {
            from_bad[good] = Some(None);
        }
        while let Some(good) = queue.pop_front() {
            for &bad in &self.needs[good] {
                if from_good[bad].is_some() {
                    continue;
                }
                from_good[bad] = Some(good);
                if self.open[bad] > 0 {
                    return Some(self.push(bad, &from_good, &from_bad));
                }
                for (&payer, &paid) in &self.paid[bad] {
                    if paid > 0 && from_bad[payer].is_none() {
                        from_bad[payer] = Some(Some(bad));
                        queue.push_back(payer);
                    }
                }
            }
        }
        None
    }

    /// Sends along the path that ends at `last` as much as it takes.
    fn push(&mut self, last: usize, from_good: &[Option<usize>], from_bad: &[Option<Option<usize>>]) -> i64 {
        let mut path = Vec::new();
        let mut bad = last;
        let mut amount = self.open[last];
        while let Some(good) = from_good[bad] {
            path.push((good, bad));
            match from_bad[good].flatten() {
                Some(before) => {
                    amount = amount.min(self.paid[before].get(&good).copied().unwrap_or(0));
                    bad = before;
                }
                None => {
                    amount = amount.min(self.left[good]);
                    self.left[good] -= amount;
                    break;
                }
            }
        }
        for (index, &(good, bad)) in path.iter().enumerate() {
            *self.paid[bad].entry(good).or_insert(0) += amount;
            // The payer on this edge takes back what it paid on the next one towards the source.
            if let Some(&(_, before)) = path.get(index + 1) {
                *self.paid[before].entry(good).or_insert(0) -= amount;
            }
        }
        self.open[last] -= amount;
        amount
    }
}
