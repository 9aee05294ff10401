//! `shepherd`: Flex, the online serving algorithm of Shepherd.
//!
//! Source: Hong Zhang, Yupeng Tang, Anurag Khandelwal, Ion Stoica, "SHEPHERD: Serving DNNs in the Wild", NSDI 2023,
//! algorithms 1 and 2. Its code is not public; details that the pseudocode leaves open follow the re-implementation
//! in the public Symphony repository (`shepherd/flex_scheduler.cpp`), whose comments report what the authors said.
//!
//! A device that finishes runs the largest feasible batch of any model. A request that arrives is offered to every
//! device: an idle one runs it, a busy one is preempted when the best batch of the new and the running model is at
//! least `lambda` times the running one. Preempted requests have lost their work and are treated as new arrivals. A
//! batch is feasible while its earliest deadline holds; requests that cannot finish even alone are dropped.
//!
//! Settings: `lambda`, default 3.03, the value for which the paper proves its competitive ratio.
//!
//! Departures:
//! - One group of devices serves all models. The paper's planner (HERD) splits large clusters into groups of models
//!   and devices every few minutes, so that each group stays small enough to schedule; one group pools best.
//! - Preemption is instantaneous, and no device is preempted twice within one event.
//! - With several classes of devices a request is dropped once no class could finish it, and a device skips the heads
//!   that only a faster class could still finish.

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::fmt;

use downbeat_sched::{Event, GpuId, LatencyProfile, ModelId, Release, Request, Span, Time};

use super::devices::Devices;
use super::queue::{DeadlineQueue, expire};
use super::setting::{self, Setting};
use crate::{Cluster, Outbox, Policy};

/// The settings of [`Shepherd`].
#[derive(Clone, Debug, PartialEq)]
pub struct ShepherdSettings {
    /// `lambda`: how many times larger a batch must be to preempt the running one; default 3.03.
    pub lambda: f64,
}

impl Default for ShepherdSettings {
    fn default() -> ShepherdSettings {
        ShepherdSettings { lambda: 3.03 }
    }
}

impl ShepherdSettings {
    pub(crate) const TABLE: [Setting; 1] = [Setting { key: "lambda", values: "a number above 1" }];

    /// Changes one setting, as written on a command line.
    pub fn set(&mut self, key: &str, value: &str) -> Result<(), String> {
        match key {
            "lambda" => self.lambda = setting::number(value)?,
            _ => return Err(setting::unknown(key, &ShepherdSettings::TABLE)),
        }
        if self.lambda <= 1.0 {
            return Err(format!(
                "lambda is {value}; at 1 or less batches would preempt their equals forever"
            ));
        }
        Ok(())
    }

    /// A setting's value, as [`set`](ShepherdSettings::set) takes it; empty for a key that is not in the table.
    pub(crate) fn get(&self, key: &str) -> String {
        if key == "lambda" { self.lambda.to_string() } else { String::new() }
    }
}

impl fmt::Display for ShepherdSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        setting::write(f, &ShepherdSettings::TABLE, |key| Some(self.get(key)))
    }
}

/// Flex over one group of devices.
#[derive(Debug)]
pub struct Shepherd {
    cluster: Cluster,
    lambda: f64,
    queues: Vec<DeadlineQueue>,
    /// Models with requests waiting.
    waiting: BTreeSet<ModelId>,
    /// By model: the least time between sending a request alone and its end, on any device.
    quickest: Vec<Option<Span>>,
    devices: Devices,
    running: Vec<Option<Running>>,
    /// Models whose queues grew in this event and are not yet offered to the devices.
    grown: Vec<ModelId>,
    /// Counts the events, to tell which devices were given a batch in this one.
    event: u64,
}

#[derive(Debug)]
struct Running {
    model: ModelId,
    requests: Vec<Request>,
    /// The size of a batch that preempts this one.
    preempted_by: u32,
    since_event: u64,
}

/// A batch that a device could run now.
#[derive(Clone, Copy, Debug)]
struct Candidate {
    model: ModelId,
    /// Heads of the queue that this device can no longer finish.
    skipped: u32,
    size: u32,
}

impl Shepherd {
    /// Flex over all devices of `cluster`.
    pub fn new(cluster: &Cluster, settings: &ShepherdSettings) -> Shepherd {
        let devices = Devices::new(cluster);
        let quickest = |model: ModelId| {
            let alone = |gpu| Some(cluster.profile(model, gpu)?.latency(1) + cluster.delays.lead(1));
            devices.ids().filter_map(alone).min()
        };
        let models = cluster.models.len();
        Shepherd {
            lambda: settings.lambda,
            queues: vec![DeadlineQueue::default(); models],
            waiting: BTreeSet::new(),
            quickest: (0..models as u32).map(|model| quickest(ModelId(model))).collect(),
            running: cluster.gpus.iter().map(|_| None).collect(),
            grown: Vec::new(),
            event: 0,
            devices,
            cluster: cluster.clone(),
        }
    }

    fn arrived(&mut self, now: Time, request: Request, out: &mut Outbox) {
        if self.quickest.get(request.model.0 as usize).copied().flatten().is_none() {
            return expire(request.model, request.id, out);
        }
        self.enqueue(request);
        self.grown.push(request.model);
        while let Some(model) = self.grown.pop() {
            self.drop_hopeless(now, model, out);
            for gpu in self.devices.ids() {
                self.offer(now, model, gpu, out);
            }
        }
    }

    /// Offers the requests of a model to a device, which may be busy.
    fn offer(&mut self, now: Time, model: ModelId, gpu: GpuId, out: &mut Outbox) {
        let Some(running) = &self.running[gpu.0 as usize] else {
            if let Some(candidate) = self.candidate(now, model, gpu) {
                self.start(now, gpu, candidate, out);
            }
            return;
        };
        if running.since_event == self.event {
            return;
        }
        let (current, needed) = (running.model, running.preempted_by);
        // Nearly always too few wait: that spares the look at the profile.
        let enough = model != current && self.queues[model.0 as usize].len() >= needed;
        let new = if enough { self.candidate(now, model, gpu) } else { None };
        let grown = self.regrown(now, gpu, running);
        let best = if grown.map(|c| c.size) > new.map(|c| c.size) { grown } else { new };
        if let Some(best) = best.filter(|best| best.size >= needed) {
            self.preempt(gpu, out);
            self.start(now, gpu, best, out);
            // Without its part in the new batch, what was preempted counts as arriving again.
            self.grown.push(current);
        }
    }

    /// The largest feasible batch of a model on a device.
    fn candidate(&self, now: Time, model: ModelId, gpu: GpuId) -> Option<Candidate> {
        let queue = &self.queues[model.0 as usize];
        if queue.is_empty() {
            return None;
        }
        let profile = self.cluster.profile(model, gpu)?;
        let skipped = queue.due_before(now + self.cluster.delays.lead(1) + profile.latency(1));
        let head = queue.get(skipped)?;
        let size = self.feasible(now, profile, head.deadline).min(queue.len() - skipped);
        (size > 0).then_some(Candidate { model, skipped, size })
    }

    /// The largest feasible batch of the running model, were its running requests to start again with those waiting.
    fn regrown(&self, now: Time, gpu: GpuId, running: &Running) -> Option<Candidate> {
        let queue = &self.queues[running.model.0 as usize];
        let most = running.requests.len() as u32 + queue.len();
        if most < running.preempted_by {
            return None;
        }
        let profile = self.cluster.profile(running.model, gpu)?;
        let head = running.requests.iter().chain(queue.head()).map(|request| request.deadline).min()?;
        let size = self.feasible(now, profile, head).min(most);
        (size > 0).then_some(Candidate { model: running.model, skipped: 0, size })
    }

    /// The largest batch that sent now ends by `deadline`.
    fn feasible(&self, now: Time, profile: &LatencyProfile, deadline: Time) -> u32 {
        profile.largest_within(deadline.since(now) - self.cluster.delays.control, self.cluster.delays.data)
    }

    /// Drops the requests that no device could finish in time, even alone and idle.
    fn drop_hopeless(&mut self, now: Time, model: ModelId, out: &mut Outbox) {
        let Some(quickest) = self.quickest[model.0 as usize] else { return };
        let queue = &mut self.queues[model.0 as usize];
        queue.drop_due_before(now + quickest, out);
        if queue.is_empty() {
            self.waiting.remove(&model);
        }
    }

    fn finished(&mut self, now: Time, gpu: GpuId, out: &mut Outbox) {
        self.running[gpu.0 as usize] = None;
        let models: Vec<ModelId> = self.waiting.iter().copied().collect();
        for &model in &models {
            self.drop_hopeless(now, model, out);
        }
        let mut best: Option<Candidate> = None;
        for candidate in models.iter().filter_map(|&model| self.candidate(now, model, gpu)) {
            if best.is_none_or(|best| candidate.size > best.size) {
                best = Some(candidate);
            }
        }
        if let Some(best) = best {
            self.start(now, gpu, best, out);
        }
    }

    fn start(&mut self, now: Time, gpu: GpuId, candidate: Candidate, out: &mut Outbox) {
        let Candidate { model, skipped, size } = candidate;
        let Some(profile) = self.cluster.profile(model, gpu) else { return };
        let queue = &mut self.queues[model.0 as usize];
        let requests: Vec<Request> = queue.take(skipped, size).collect();
        if queue.is_empty() {
            self.waiting.remove(&model);
        }
        let ids = requests.iter().map(|request| request.id);
        self.devices.send(now, gpu, model, profile.latency(size), Release::Eager, ids, out);
        let preempted_by = (self.lambda * f64::from(size)).ceil() as u32;
        self.running[gpu.0 as usize] =
            Some(Running { model, requests, preempted_by, since_event: self.event });
    }

    fn preempt(&mut self, gpu: GpuId, out: &mut Outbox) {
        if let Some(running) = self.running[gpu.0 as usize].take() {
            out.preempt.push(gpu);
            self.devices.preempted(gpu);
            running.requests.into_iter().for_each(|request| self.enqueue(request));
        }
    }

    fn enqueue(&mut self, request: Request) {
        self.queues[request.model.0 as usize].insert(request);
        self.waiting.insert(request.model);
    }
}

impl Policy for Shepherd {
    fn handle(&mut self, now: Time, event: Event, out: &mut Outbox) {
        self.event += 1;
        match event {
            Event::Arrived(request) => self.arrived(now, request, out),
            Event::BatchFinished { gpu, batch } if self.devices.finished(now, gpu, batch).is_some() => {
                self.finished(now, gpu, out);
            }
            _ => {}
        }
    }
}
