//! Which step must wait for which: as few as keep the promise under every interleaving.
//!
//! A sequence keeps the floors one step after the other. Steps that run side by side keep them too when
//! - *space*: what comes to a place waits for everything that leaves it;
//! - *throughput*: every deletion is paid for, by what its service had above its floor from the start or by creations that it waits
//!   for, and nothing pays twice. Whatever has begun and ended, a service then has its floor and what has not been spent.

mod ancestors;
mod space;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use downbeat_mig::Placed;

use crate::case::{Case, GpuIndex, Pod, Rate};
use crate::sequence::Op;
use crate::step::Driver;
use crate::times::StepTimes;
use ancestors::Ancestors;
use space::Space;

/// What a step waits for and what it does to slices.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ordered {
    pub(crate) after: BTreeSet<usize>,
    pub(crate) removes: Vec<Placed>,
    pub(crate) makes: Vec<Placed>,
}

/// Throughput above a service's floor that has not been spent, and the step that it came with.
struct Token {
    from: Option<usize>,
    rate: Rate,
}

/// Orders a sequence.
pub(crate) fn order(case: &Case, driver: Driver, ops: &[Op], times: &StepTimes) -> Vec<Ordered> {
    let mut order = Order {
        case,
        driver,
        times,
        spaces: (0..case.gpus.len()).map(|gpu| Space::new(case, gpu)).collect(),
        purses: purses(case),
        ancestors: Ancestors::default(),
        ends: Vec::new(),
        steps: Vec::new(),
    };
    for op in ops {
        order.add(op);
    }
    order.steps
}

fn purses(case: &Case) -> Vec<Vec<Token>> {
    let mut rates: Vec<Rate> = vec![0; case.services.len()];
    for pod in case.gpus.iter().flat_map(|gpu| &gpu.old) {
        rates[case.service(pod.kind)] += case.rate(pod.kind);
    }
    let above = rates.into_iter().zip(&case.floors).map(|(rate, floor)| rate.saturating_sub(*floor));
    above.map(|rate| vec![Token { from: None, rate }]).collect()
}

struct Order<'a> {
    case: &'a Case,
    driver: Driver,
    times: &'a StepTimes,
    spaces: Vec<Space>,
    purses: Vec<Vec<Token>>,
    ancestors: Ancestors,
    /// When each step ends, about.
    ends: Vec<f64>,
    steps: Vec<Ordered>,
}

impl Order<'_> {
    fn add(&mut self, op: &Op) {
        let index = self.steps.len();
        let mut step = Ordered::default();
        match op {
            Op::Create { gpu, pod, .. } => {
                self.come(index, *gpu, *pod, &mut step);
                let (service, rate) = (self.case.service(pod.kind), self.case.rate(pod.kind));
                self.purses[service].push(Token { from: Some(index), rate });
            }
            Op::Delete { gpu, pod, .. } => {
                self.pay(*pod, &mut step);
                self.leave(index, *gpu, *pod, &mut step);
            }
            Op::Migrate { from, to, kind, .. } => {
                self.come(index, to.0, Pod { start: to.1, kind: *kind }, &mut step);
                self.leave(index, from.0, Pod { start: from.1, kind: *kind }, &mut step);
            }
            Op::Repartition { gpu, slices } => {
                let space = &mut self.spaces[*gpu];
                (step.removes, step.makes) = space.cut(index, slices, &mut step.after);
            }
        }
        let direct = self.ancestors.add(&step.after);
        step.after = direct;
        let begins = step.after.iter().map(|&before| self.ends[before]).fold(0.0, f64::max);
        self.ends.push(begins + self.times.of(op, self.case, !step.makes.is_empty()));
        self.steps.push(step);
    }

    /// Something comes to a place: after what was there has left.
    fn come(&mut self, index: usize, gpu: GpuIndex, pod: Pod, step: &mut Ordered) {
        let placed = self.case.placed(pod);
        let model = self.case.model(gpu);
        let reused = self.spaces[gpu].come(index, model, placed, &mut step.after, &self.ancestors);
        if let Some(leaver) = reused {
            self.steps[leaver].removes.retain(|slice| *slice != placed);
        }
        if self.driver == Driver::Nvml && reused.is_none() {
            step.makes.push(placed);
        }
    }

    fn leave(&mut self, index: usize, gpu: GpuIndex, pod: Pod, step: &mut Ordered) {
        let placed = self.case.placed(pod);
        self.spaces[gpu].leave(index, placed, &mut step.after);
        if self.driver == Driver::Nvml {
            step.removes.push(placed);
        }
    }

    /// Pays for a deletion with what is there soonest.
    fn pay(&mut self, pod: Pod, step: &mut Ordered) {
        let purse = &mut self.purses[self.case.service(pod.kind)];
        let when = |token: &Token| token.from.map_or(0.0, |step| self.ends[step]);
        purse.sort_by(|a, b| when(a).total_cmp(&when(b)));
        let mut due = self.case.rate(pod.kind);
        for token in purse.iter_mut() {
            if due == 0 {
                break;
            }
            let paid = due.min(token.rate);
            if paid > 0 {
                step.after.extend(token.from);
            }
            token.rate -= paid;
            due -= paid;
        }
        debug_assert_eq!(due, 0, "the sequence keeps the floors");
        purse.retain(|token| token.rate > 0);
    }
}
