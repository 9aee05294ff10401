//! `delayed`: Triton Inference Server's dynamic batcher.
//!
//! Source: NVIDIA Triton Inference Server, public code (triton-inference-server/core, `dynamic_batch_scheduler.cc`)
//! and its user guide's chapters on the dynamic batcher and the rate limiter.
//!
//! Each model has a first-in-first-out queue. Once an instance is free, its batcher starts a batch when a preferred
//! size (without one: the largest size) is waiting or when the head has waited `max_queue_delay_microseconds`; until an
//! instance is free the batch goes on growing. Triton knows no deadlines: it drops nothing unless the queue has a
//! timeout with the action REJECT, and then only when the batcher next looks at the queue.
//!
//! Settings, with defaults in [`DelayedSettings`]: `delay`, `cap`, `max_batch`, `preferred`, `timeout`. Nobody knows
//! the best ones beforehand, so results should be reported for the best of [`DelayedSettings::grid`].
//!
//! Departures:
//! - All models share all devices, one batch at a time per device, as with one rate-limiter resource per GPU; among
//!   the models that are ready the one with the oldest head goes first. Triton without the rate limiter would let
//!   batches of several models slow each other down on one GPU.
//! - A queue is bounded, at what arrives in ten SLOs and 100,000 requests at least, so that memory does not grow with the
//!   length of an overload; more are answered at once. Triton's `max_queue_size` is unlimited by default. A request
//!   behind so many others would be late by far: the bound makes no result worse.
//! - With several classes of devices the cap differs by class (as one server per class would have it), and the
//!   smallest of them makes a batch full.

mod settings;
#[cfg(test)]
mod tests;

use std::collections::{BTreeSet, VecDeque};

use downbeat_sched::{Action, Event, GpuId, ModelId, Outcome, Release, Request, RequestId, Span, Time};

use super::alarm::Alarm;
use super::devices::Devices;
use super::queue::expire;
use crate::{Cluster, Outbox, Policy};

pub use settings::{BatchCap, DelayedSettings, QueueTimeout};

/// No queue is bounded at less than this many requests.
const LEAST_BOUND: usize = 100_000;

/// Triton's dynamic batcher over a shared pool of devices.
#[derive(Debug)]
pub struct Delayed {
    cluster: Cluster,
    models: Vec<Batcher>,
    devices: Devices,
    /// Devices that may be sent a batch now.
    open: BTreeSet<GpuId>,
    /// Models that may start a batch now: the oldest head first.
    ready: BTreeSet<(Time, ModelId)>,
    /// Models that wait for more requests, with the time at which they stop waiting.
    delayed: BTreeSet<(Time, ModelId)>,
    /// How long before a device is free its next batch is sent.
    lead: Span,
    alarm: Alarm,
}

/// One model's queue and what its operator configured.
#[derive(Debug)]
struct Batcher {
    queue: VecDeque<Waiting>,
    /// One more request than this many is not let in.
    most_waiting: usize,
    /// The largest batch by class of device; 0 where the model is not deployed.
    caps: Vec<u32>,
    /// The size at which a batch starts at once.
    full: u32,
    /// Sizes to prefer while the delay lasts, rising.
    preferred: Vec<u32>,
    delay: Span,
    timeout: Option<Span>,
    place: Place,
}

#[derive(Clone, Copy, Debug)]
struct Waiting {
    id: RequestId,
    since: Time,
}

/// Which of the two sets a model is in, and under which time.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Place {
    Neither,
    Delayed(Time),
    Ready(Time),
}

impl Delayed {
    /// A batcher per model, configured by `settings`.
    pub fn new(cluster: &Cluster, settings: &DelayedSettings) -> Delayed {
        let devices = Devices::new(cluster);
        let models: Vec<Batcher> =
            (0..cluster.models.len()).map(|model| Batcher::new(cluster, model, settings)).collect();
        let largest = models.iter().flat_map(|model| model.caps.iter().copied()).max().unwrap_or(1);
        Delayed {
            cluster: cluster.clone(),
            models,
            open: devices.ids().collect(),
            devices,
            ready: BTreeSet::new(),
            delayed: BTreeSet::new(),
            lead: cluster.delays.lead(largest),
            alarm: Alarm::new(),
        }
    }

    fn arrived(&mut self, now: Time, request: &Request, out: &mut Outbox) {
        let Some(batcher) = self.models.get_mut(request.model.0 as usize).filter(|model| model.full > 0)
        else {
            return expire(request.model, request.id, out);
        };
        if batcher.queue.len() >= batcher.most_waiting {
            let outcome = Outcome::Overloaded;
            return out.actions.push(Action::Answer { model: request.model, request: request.id, outcome });
        }
        batcher.queue.push_back(Waiting { id: request.id, since: now });
        self.settle(now, request.model);
    }

    /// Puts a model in the set it belongs in.
    fn settle(&mut self, now: Time, model: ModelId) {
        let batcher = &mut self.models[model.0 as usize];
        let place = batcher.place_now(now);
        if place == batcher.place {
            return;
        }
        match std::mem::replace(&mut batcher.place, place) {
            Place::Neither => false,
            Place::Delayed(until) => self.delayed.remove(&(until, model)),
            Place::Ready(since) => self.ready.remove(&(since, model)),
        };
        match place {
            Place::Neither => false,
            Place::Delayed(until) => self.delayed.insert((until, model)),
            Place::Ready(since) => self.ready.insert((since, model)),
        };
    }

    /// Matches ready models with open devices, the oldest head first.
    fn dispatch(&mut self, now: Time, out: &mut Outbox) {
        let mut from = (Time::ZERO, ModelId(0));
        while !self.open.is_empty() {
            let Some(&(since, model)) = self.ready.range(from..).next() else { break };
            self.reject(now, model, out);
            self.settle(now, model);
            if self.models[model.0 as usize].place != Place::Ready(since) {
                continue; // its old head timed out: it has another place in the order now
            }
            let runs_on = |gpu: &&GpuId| self.cluster.profile(model, **gpu).is_some();
            match self.open.iter().find(runs_on).copied() {
                Some(gpu) => self.start(now, model, gpu, out),
                None => from = (since, ModelId(model.0 + 1)),
            }
        }
    }

    /// Answers the requests that waited longer than the queue's timeout.
    fn reject(&mut self, now: Time, model: ModelId, out: &mut Outbox) {
        let batcher = &mut self.models[model.0 as usize];
        let Some(timeout) = batcher.timeout else { return };
        while let Some(head) = batcher.queue.front().filter(|head| now.since(head.since) > timeout) {
            expire(model, head.id, out);
            batcher.queue.pop_front();
        }
    }

    fn start(&mut self, now: Time, model: ModelId, gpu: GpuId, out: &mut Outbox) {
        let Some(profile) = self.cluster.profile(model, gpu) else { return };
        let class = self.cluster.gpus[gpu.0 as usize];
        let batcher = &mut self.models[model.0 as usize];
        let cap = batcher.caps[class.0 as usize];
        let size = batcher.size(now, cap);
        let reason = if size >= cap { Release::Full } else { Release::Eager };
        let requests = batcher.queue.drain(..size as usize).map(|waiting| waiting.id);
        self.devices.send(now, gpu, model, profile.latency(size), reason, requests, out);
        self.open.remove(&gpu);
        self.settle(now, model);
        self.await_opening(now, gpu, out);
    }

    /// Opens the device, or sees to it that the timer rings when it opens.
    fn await_opening(&mut self, now: Time, gpu: GpuId, out: &mut Outbox) {
        let at = self.devices.opens_at(gpu, self.lead);
        if at <= now {
            self.open.insert(gpu);
        } else {
            self.alarm.by(at, out);
        }
    }

    fn rang(&mut self, now: Time, out: &mut Outbox) {
        self.alarm.rang();
        while let Some(&(until, model)) = self.delayed.first().filter(|first| first.0 <= now) {
            self.settle(now, model);
            debug_assert!(!self.delayed.contains(&(until, model)), "a model whose delay is over is ready");
        }
        for gpu in self.devices.ids() {
            self.await_opening(now, gpu, out);
        }
    }
}

impl Policy for Delayed {
    fn handle(&mut self, now: Time, event: Event, out: &mut Outbox) {
        match event {
            Event::Arrived(request) => self.arrived(now, &request, out),
            Event::BatchFinished { gpu, batch } => {
                self.devices.finished(now, gpu, batch);
                self.await_opening(now, gpu, out);
            }
            Event::Timer => self.rang(now, out),
            _ => return,
        }
        self.dispatch(now, out);
        if let Some(&(until, _)) = self.delayed.first() {
            self.alarm.by(until, out);
        }
    }
}

impl Batcher {
    fn new(cluster: &Cluster, model: usize, settings: &DelayedSettings) -> Batcher {
        let facts = &cluster.models[model];
        let deployed = |class: usize| cluster.gpus.iter().any(|gpu| gpu.0 as usize == class);
        let caps: Vec<u32> = facts
            .profiles
            .iter()
            .enumerate()
            .map(|(class, profile)| match profile {
                Some(profile) if deployed(class) => settings.cap_of(profile, facts.slo, cluster.delays),
                _ => 0,
            })
            .collect();
        let smallest_cap = caps.iter().copied().filter(|&cap| cap > 0).min().unwrap_or(0);
        let mut preferred: Vec<u32> =
            settings.preferred.iter().copied().filter(|&size| (1..=smallest_cap).contains(&size)).collect();
        preferred.sort_unstable();
        Batcher {
            queue: VecDeque::new(),
            most_waiting: LEAST_BOUND.max((10.0 * facts.slo.as_secs_f64() * facts.rate_rps) as usize),
            full: preferred.first().copied().unwrap_or(smallest_cap),
            timeout: settings.timeout_of(cluster, model),
            caps,
            preferred,
            delay: settings.delay.of(facts.slo),
            place: Place::Neither,
        }
    }

    fn place_now(&self, now: Time) -> Place {
        let Some(head) = self.queue.front() else { return Place::Neither };
        let until = head.since + self.delay;
        if now >= until || self.queue.len() >= self.full as usize {
            Place::Ready(head.since)
        } else {
            Place::Delayed(until)
        }
    }

    /// How many requests start. While the delay lasts (and without one, always) a preferred size that is reached is
    /// kept to; a head that has waited its delay takes along all that fit.
    fn size(&self, now: Time, cap: u32) -> u32 {
        let waiting = cap.min(self.queue.len() as u32);
        let delay_is_over = self.delay > Span::ZERO
            && self.queue.front().is_some_and(|head| now.since(head.since) >= self.delay);
        let preferred = self.preferred.iter().rev().copied().find(|&size| size <= waiting);
        preferred.filter(|_| !delay_is_over).unwrap_or(waiting)
    }
}
