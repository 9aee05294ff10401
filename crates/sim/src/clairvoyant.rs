//! Small cases whose best schedule is known, because everything can be tried.
//!
//! No policy knows what will arrive. Beside a schedule made with all arrivals known in advance one sees what is left to
//! gain, and that nobody gains more than is possible.

#[cfg(test)]
mod tests;

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use downbeat_sched::{
    Action, BatchId, ClassId, Event, GpuId, LatencyProfile, ModelId, ModelSpec, Priority, Request, RequestId,
    Span, Time,
};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::policy::{Outbox, Policy};

/// A few requests for one or two models, on one or two devices; all times in whole milliseconds.
#[derive(Clone, Debug)]
pub struct SmallCase {
    gpus: u32,
    models: Vec<SmallModel>,
    /// By arrival.
    requests: Vec<SmallRequest>,
}

/// l(b) = alpha * b + beta.
#[derive(Clone, Copy, Debug)]
struct SmallModel {
    alpha: u32,
    beta: u32,
    max_batch: u32,
}

#[derive(Clone, Copy, Debug)]
struct SmallRequest {
    arrival: u32,
    deadline: u32,
    model: usize,
}

/// How much of what was possible was served.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Served {
    /// Requests in time.
    pub in_time: u32,
    /// Requests that could have been in time.
    pub possible: u32,
}

impl Served {
    /// The served share of the possible; 1 where nothing was possible.
    pub fn share(self) -> f64 {
        if self.possible == 0 { 1.0 } else { f64::from(self.in_time) / f64::from(self.possible) }
    }
}

impl SmallCase {
    /// 4 to 7 requests, each of which could be in time alone.
    pub fn random(seed: u64) -> SmallCase {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let models: Vec<_> = (0..random.random_range(1..=2))
            .map(|_| SmallModel {
                alpha: random.random_range(0..=3),
                beta: random.random_range(1..=8),
                max_batch: random.random_range(1..=5),
            })
            .collect();
        let mut requests: Vec<_> = (0..random.random_range(4..=7))
            .map(|_| {
                let model = random.random_range(0..models.len());
                let SmallModel { alpha, beta, .. } = models[model];
                let arrival = random.random_range(0..12);
                let slack = random.random_range(0..=2 * (alpha + beta));
                SmallRequest { arrival, deadline: arrival + alpha + beta + slack, model }
            })
            .collect();
        requests.sort_by_key(|request| request.arrival);
        SmallCase { gpus: random.random_range(1..=2), models, requests }
    }

    /// Lets a policy decide that has seen nothing before.
    pub fn serve(&self, policy: &mut impl Policy) -> Served {
        Served { in_time: Replay::new(self).run(policy), possible: self.optimum() }
    }

    /// How many requests could be in time, had all arrivals been known in advance.
    ///
    /// Nothing is lost by starting every batch as soon as its last request is there and the device is free. So it is
    /// enough to know, for each set of requests, when one device can be done with all of them in time; and the best
    /// schedule gives each device a set, all of them disjoint.
    fn optimum(&self) -> u32 {
        let done = self.earliest_done();
        let mut reachable = vec![false; done.len()];
        reachable[0] = true;
        for _ in 0..self.gpus {
            for all in (0..done.len()).rev() {
                reachable[all] |= subsets(all).any(|one| done[one].is_some() && reachable[all & !one]);
            }
        }
        (0..done.len()).filter(|&set| reachable[set]).map(usize::count_ones).max().unwrap_or(0)
    }

    /// For each set of requests, when one device that runs just these can be done with them; `None` where one is late.
    fn earliest_done(&self) -> Vec<Option<u32>> {
        let mut done = vec![None; 1 << self.requests.len()];
        done[0] = Some(0);
        for set in 1..done.len() {
            let after = |last: usize| self.finish(last, done[set & !last]?);
            done[set] = subsets(set).filter(|&last| last != 0).filter_map(after).min();
        }
        done
    }

    /// When the batch of these requests is done on a device that is free at `free`; `None` where that is no batch, or
    /// too late for one of them.
    fn finish(&self, batch: usize, free: u32) -> Option<u32> {
        let members = || self.requests.iter().enumerate().filter(|(id, _)| batch >> id & 1 == 1);
        let model = members().next()?.1.model;
        let SmallModel { alpha, beta, max_batch } = self.models[model];
        let size = batch.count_ones();
        let start = members().map(|(_, request)| request.arrival).max()?.max(free);
        let finish = start + alpha * size + beta;
        let legal = size <= max_batch
            && members().all(|(_, request)| request.model == model && finish <= request.deadline);
        legal.then_some(finish)
    }
}

/// All subsets of `set`, itself and the empty one included.
fn subsets(set: usize) -> impl Iterator<Item = usize> {
    let smaller = move |&subset: &usize| subset.checked_sub(1).map(|less| less & set);
    std::iter::successors(Some(set), smaller)
}

/// A small case under a policy: devices that take as long as the profiles say, and nothing else.
struct Replay<'a> {
    case: &'a SmallCase,
    running: BinaryHeap<Reverse<(Time, GpuId, BatchId)>>,
    timer: Time,
    in_time: u32,
    out: Outbox,
}

impl<'a> Replay<'a> {
    fn new(case: &'a SmallCase) -> Replay<'a> {
        Replay { case, running: BinaryHeap::new(), timer: Time::NEVER, in_time: 0, out: Outbox::default() }
    }

    fn run(mut self, policy: &mut impl Policy) -> u32 {
        for (id, model) in (0..).zip(&self.case.models) {
            let (alpha, beta) = (f64::from(model.alpha), f64::from(model.beta));
            let profile = LatencyProfile::linear(alpha, beta, model.max_batch);
            let spec = ModelSpec::new(profile.map(|profile| (ClassId(0), profile)));
            self.tell(policy, Time::ZERO, Event::ModelAdded { model: ModelId(id), spec });
        }
        for gpu in (0..self.case.gpus).map(GpuId) {
            self.tell(policy, Time::ZERO, Event::GpuJoined { gpu, class: ClassId(0) });
        }
        for (id, request) in (0..).zip(&self.case.requests) {
            let now = at_ms(request.arrival);
            self.advance(policy, now);
            let request = Request {
                id: RequestId(id),
                model: ModelId(request.model as u32),
                deadline: at_ms(request.deadline),
                priority: Priority::default(),
                rows: 1,
            };
            self.tell(policy, now, Event::Arrived(request));
        }
        // Long after the last deadline nothing can be in time any more.
        self.advance(policy, at_ms(1_000));
        self.in_time
    }

    /// All that happens by itself up to `until`. At one instant: what finishes first, so that its device can be used.
    fn advance(&mut self, policy: &mut impl Policy, until: Time) {
        loop {
            let finish = self.running.peek().map_or(Time::NEVER, |&Reverse((at, ..))| at);
            if finish.min(self.timer) > until {
                return;
            }
            if finish <= self.timer {
                let Some(Reverse((now, gpu, batch))) = self.running.pop() else { return };
                self.tell(policy, now, Event::BatchFinished { gpu, batch });
            } else {
                let now = std::mem::replace(&mut self.timer, Time::NEVER);
                self.tell(policy, now, Event::Timer);
            }
        }
    }

    fn tell(&mut self, policy: &mut impl Policy, now: Time, event: Event) {
        policy.handle(now, event, &mut self.out);
        for action in self.out.actions.list() {
            match action {
                Action::Start(start) => {
                    let due = |id: &RequestId| at_ms(self.case.requests[id.0 as usize].deadline);
                    let requests = self.out.actions.requests(start);
                    let in_time = requests.iter().filter(|&id| start.finish_at <= due(id)).count();
                    self.in_time += in_time as u32;
                    self.running.push(Reverse((start.finish_at, start.gpu, start.batch)));
                }
                Action::Answer { .. } => {}
                Action::ArmTimer { at } => self.timer = (*at).max(now),
            }
        }
        self.out.actions.clear();
    }
}

fn at_ms(ms: u32) -> Time {
    Time::ZERO + Span::from_millis(u64::from(ms))
}
