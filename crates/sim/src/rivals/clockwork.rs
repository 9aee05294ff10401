//! `clockwork` and `clockwork-published`: Clockwork's controller.
//!
//! Source: Arpan Gujarati, Reza Karimi, Safya Alzayat, Wei Hao, Antoine Kaufmann, Ymir Vigfusson, Jonathan Mace,
//! "Serving DNNs like Clockwork: Performance Predictability from the Bottom Up", OSDI 2020; public code: Clockwork's
//! `controller/infer5` scheduler and `WorkerTracker`.
//!
//! Each device is kept busy `ahead` into the future. To fill it, every model with requests offers one strategy per
//! batch size, ordered by the latest time it could begin: the deadline of the first request that may still run in a
//! batch of that size, less the estimate for it. The most urgent strategy is popped; if the model can make a batch of
//! that size or a larger one in time, the largest such batch is sent, else the model's smaller sizes stay in the
//! running. Requests that a batch passed over are dropped, as are those that could not finish alone. Estimates are the
//! 99th percentile of the last 10 executions (which is their maximum), the profile until there are any.
//!
//! Popping comes to this: of the sizes that a model has enough requests for, the most urgent counts, and the largest
//! runs. That is computed directly here, without the many strategies that are popped only to fail. (Requests that a
//! size can no longer wait for leave its queue in every model that is looked at, not only in those popped.)
//!
//! Settings, with defaults in [`ClockworkSettings`]: `ahead`, `max_batch`, `max_exec`, `sizes`, `buffer`, `window`.
//! `clockwork-published` is [`ClockworkSettings::published`]: the controller's defaults, batches of at most 16 and
//! executions of at most 25 ms. `clockwork` is without these two, which were chosen for the GPUs of 2019.
//!
//! Departures:
//! - Models are always loaded. Clockwork's LoadTracker, which swaps weights in and out, has nothing to do.
//! - `buffer` defaults to 0, not 5 ms: a request's deadline here already excludes the time kept for the response.
//! - The 1 ms that the controller allows for reaching a worker is the cluster's real delay here.
//! - The controller polls devices in turn; here the device that is free first is filled first, which is never worse.
//! - An estimate that was not renewed for a second gives way to the profile. In the public code one outlier above the SLO
//!   at size 1 makes every later request infeasible, and with nothing running nothing is measured again.
//! - Workers drop a batch that would begin 10 ms behind its plan; here it runs, late.
//! - With several classes of devices each class has its own set of per-size queues and estimates, and a request is
//!   dropped once every class has passed over it.

mod estimate;
mod queues;
mod settings;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use downbeat_sched::{ClassId, Event, GpuId, ModelId, Release, Request, Span, Time};

use super::alarm::Alarm;
use super::devices::{Devices, Sent};
use super::queue::expire;
use crate::{Cluster, Outbox, Policy};
use queues::{ModelQueues, Strategy};

pub use settings::{ClockworkSettings, Sizes};

/// A device that is this far behind its prediction is sent nothing more.
const LAG: Span = Span::from_millis(10);

/// Clockwork's controller, with all models loaded everywhere.
#[derive(Debug)]
pub struct Clockwork {
    gpus: Vec<ClassId>,
    models: Vec<ModelQueues>,
    /// Models with requests waiting.
    waiting: BTreeSet<ModelId>,
    devices: Devices,
    ahead: Span,
    /// No device can be sent anything before this.
    full_until: Time,
    alarm: Alarm,
}

impl Clockwork {
    /// The controller of `cluster`.
    pub fn new(cluster: &Cluster, settings: &ClockworkSettings) -> Clockwork {
        let queues = |facts| ModelQueues::new(facts, &cluster.gpus, settings);
        Clockwork {
            gpus: cluster.gpus.clone(),
            models: cluster.models.iter().map(queues).collect(),
            waiting: BTreeSet::new(),
            devices: Devices::new(cluster),
            ahead: settings.ahead,
            full_until: Time::ZERO,
            alarm: Alarm::new(),
        }
    }

    fn arrived(&mut self, request: &Request, out: &mut Outbox) {
        let Some(queues) = self.models.get_mut(request.model.0 as usize).filter(|queues| queues.deployed())
        else {
            return expire(request.model, request.id, out);
        };
        let deadline = queues.push(request);
        if self.waiting.insert(request.model) {
            self.alarm.by(deadline, out);
        }
    }

    /// Fills every device up to the horizon, the one that is free first before the others.
    fn schedule(&mut self, now: Time, out: &mut Outbox) {
        if now < self.full_until {
            return;
        }
        let horizon = now + self.ahead;
        // A class whose first free device found nothing to run has nothing to run on the others either.
        let mut done: Vec<ClassId> = Vec::new();
        while !self.waiting.is_empty() {
            let open =
                |gpu: &GpuId| !done.contains(&self.class(*gpu)) && self.devices.overdue(now, *gpu) <= LAG;
            let key = |gpu| (self.devices.free_at(now, gpu), !self.devices.idle(gpu), gpu);
            let Some((free_at, _, gpu)) = self.devices.ids().filter(open).map(key).min() else { return };
            if free_at >= horizon && free_at > now {
                self.full_until = if done.is_empty() { (free_at - self.ahead).next() } else { Time::ZERO };
                self.alarm.by((free_at - self.ahead).next(), out);
                return;
            }
            if !self.schedule_on(now, gpu, out) {
                done.push(self.class(gpu));
            }
        }
    }

    /// Sends a device the most urgent strategy that works out; false where none does.
    fn schedule_on(&mut self, now: Time, gpu: GpuId, out: &mut Outbox) -> bool {
        let class = self.class(gpu);
        let Clockwork { models, waiting, devices, .. } = self;
        let mut best: Option<(Strategy, ModelId)> = None;
        waiting.retain(|&model| {
            let queues = &mut models[model.0 as usize];
            let strategy = queues.strategy(now, class, |size| devices.begins_at(now, gpu, size));
            queues.drop_passed_over(out);
            let rivals = best.into_iter().chain(strategy.map(|strategy| (strategy, model)));
            best = rivals.min();
            !queues.is_empty()
        });
        let Some((strategy, model)) = best else { return false };
        let queues = &mut models[model.0 as usize];
        let (run, requests) = queues.take(now, class, strategy);
        devices.send(now, gpu, model, run, Release::Eager, requests.into_iter(), out);
        queues.drop_passed_over(out);
        if queues.is_empty() {
            waiting.remove(&model);
        }
        true
    }

    fn finished(&mut self, now: Time, gpu: GpuId, sent: &Sent) {
        let took = now.since(sent.begins_at);
        let class = self.class(gpu);
        self.models[sent.model.0 as usize].measured(now, class, sent.size, took);
        self.full_until = Time::ZERO;
    }

    /// Drops what no device got to before its deadline.
    fn time_out(&mut self, now: Time, out: &mut Outbox) {
        self.alarm.rang();
        self.full_until = Time::ZERO;
        let mut next = Time::NEVER;
        let Clockwork { models, waiting, .. } = self;
        waiting.retain(|model| {
            let queues = &mut models[model.0 as usize];
            queues.time_out(now, out);
            next = next.min(queues.first_deadline());
            !queues.is_empty()
        });
        self.alarm.by(next, out);
    }

    fn class(&self, gpu: GpuId) -> ClassId {
        self.gpus[gpu.0 as usize]
    }
}

impl Policy for Clockwork {
    fn handle(&mut self, now: Time, event: Event, out: &mut Outbox) {
        match event {
            Event::Arrived(request) => self.arrived(&request, out),
            Event::BatchFinished { gpu, batch } => match self.devices.finished(now, gpu, batch) {
                Some(sent) => self.finished(now, gpu, &sent),
                None => return,
            },
            Event::Timer => self.time_out(now, out),
            _ => return,
        }
        self.schedule(now, out);
    }
}
