//! When which request should be sent: known before the first one is, and independent of what the server does.

#[cfg(test)]
mod tests;

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

use downbeat_sim::{Arrival, Arrivals};

use crate::mix::ModelLoad;

/// A request that should be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Due {
    /// When, from the beginning of the run.
    pub at: Duration,
    /// The index of its model.
    pub model: usize,
}

/// All requests of a run in the order in which they should be sent.
///
/// Each model has a stream of its own, as in the simulator: the same seed, rate and models give the same requests.
#[derive(Clone, Debug)]
pub struct Plan {
    streams: Vec<Arrivals>,
    next: BinaryHeap<Reverse<Due>>,
    end: Duration,
}

impl Plan {
    /// The requests of the first `length` at a mean of `rate_rps`, which the models share by weight.
    pub fn new(models: &[ModelLoad], arrival: &Arrival, rate_rps: f64, seed: u64, length: Duration) -> Plan {
        let weights: f64 = models.iter().map(|model| model.weight).sum();
        let streams = models
            .iter()
            .enumerate()
            .map(|(index, model)| Arrivals::new(arrival, rate_rps * model.weight / weights, seed, index));
        let mut plan = Plan { streams: streams.collect(), next: BinaryHeap::new(), end: length };
        for model in 0..models.len() {
            plan.draw(model);
        }
        plan
    }

    /// Draws the next request of a model.
    fn draw(&mut self, model: usize) {
        let at = Duration::from_nanos(self.streams[model].next().since_origin().as_nanos());
        if at < self.end {
            self.next.push(Reverse(Due { at, model }));
        }
    }

    /// How many requests each model has from `from` on.
    pub fn counts_from(&self, from: Duration) -> Vec<u64> {
        let mut counts = vec![0; self.streams.len()];
        for due in self.clone().filter(|due| due.at >= from) {
            counts[due.model] += 1;
        }
        counts
    }
}

impl Iterator for Plan {
    type Item = Due;

    fn next(&mut self) -> Option<Due> {
        let Reverse(due) = self.next.pop()?;
        self.draw(due.model);
        Some(due)
    }
}
