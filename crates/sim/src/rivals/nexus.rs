//! `nexus`: Nexus, an epoch plan by squishy bin packing, run by duty cycles with early drop.
//!
//! Source: Haichen Shen, Lequn Chen, Yuchen Jin, Liangyu Zhao, Bingyu Kong, Matthai Philipose, Arvind Krishnamurthy,
//! Ravi Sundaram, "Nexus: A GPU Cluster Engine for Accelerating DNN-Based Video Analysis", SOSP 2019; public code:
//! uwsampl/nexus (`scheduler/`, `backend/gpu_executor.cpp`, `backend/model_exec.cpp`).
//!
//! Every epoch the cluster is planned from the rates seen ([`plan`]): each device gets a list of models with a batch
//! size for each. Requests are spread over a model's devices by weighted round robin when they arrive and stay there.
//! A device goes round its models; each turn takes up to the planned batch, after *early drop*: heads that could not
//! finish with that batch are dropped, so that the batch behind them stays whole.
//!
//! Settings, with defaults in [`NexusSettings`]: `epoch`, `min_epoch`, `headroom`.
//!
//! Departures:
//! - `headroom=fit`: the published plan uses as few devices as the mean rate needs and leaves the rest idle, for other
//!   tenants. On a cluster of fixed size that would drop requests at any load, so by default all rates are scaled up by
//!   the largest factor whose plan still fits the cluster. `headroom=1` is the published plan.
//! - A plan that does not fit is made for rates scaled down, and where not even that fits, the smallest loads share
//!   devices anyway. The published scheduler leaves such loads unassigned: all of a model's requests could fail.
//! - As in the public code, and unlike the paper's figure, a device does not wait out its duty cycle: a turn begins as
//!   soon as the turn before it ends.
//! - Prefix batching and query (multi-stage) latency splits have no counterpart here; the models are independent.

mod plan;
#[cfg(test)]
mod tests;

use std::fmt;

use downbeat_sched::{Delays, Event, GpuId, LatencyProfile, ModelId, Release, Request, Span, Time};

use super::alarm::Alarm;
use super::devices::Devices;
use super::queue::{DeadlineQueue, expire};
use super::setting;
use crate::{Cluster, Outbox, Policy};
use plan::{Load, Plan};

/// What rates the plan is made for, relative to those seen.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Headroom {
    /// The largest factor whose plan fits the cluster.
    Fit,
    /// This factor, or less where its plan does not fit the cluster.
    Factor(f64),
}

/// The settings of [`Nexus`].
#[derive(Clone, Debug, PartialEq)]
pub struct NexusSettings {
    /// `epoch`: how often the cluster is planned anew; default 30 s.
    pub epoch: Span,
    /// `min_epoch`: how soon it is planned anew when a model's rate left 0.8 to 1.1 of what was planned for, and over
    /// how long rates are measured; default 10 s.
    pub min_epoch: Span,
    /// `headroom`: `fit` or a factor; default `fit`.
    pub headroom: Headroom,
}

impl Default for NexusSettings {
    fn default() -> NexusSettings {
        NexusSettings {
            epoch: Span::from_millis(30_000),
            min_epoch: Span::from_millis(10_000),
            headroom: Headroom::Fit,
        }
    }
}

impl NexusSettings {
    /// Changes one setting, as written in a scenario or on a command line.
    pub fn set(&mut self, key: &str, value: &str) -> Result<(), String> {
        match key {
            "epoch" => self.epoch = setting::span(value)?,
            "min_epoch" => self.min_epoch = setting::span(value)?,
            "headroom" if value == "fit" => self.headroom = Headroom::Fit,
            "headroom" => self.headroom = Headroom::Factor(setting::number(value)?.max(1e-3)),
            _ => return Err(setting::unknown("nexus", key, &["epoch", "min_epoch", "headroom"])),
        }
        Ok(())
    }
}

impl fmt::Display for NexusSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "epoch={:?}:min_epoch={:?}:headroom=", self.epoch, self.min_epoch)?;
        match self.headroom {
            Headroom::Fit => f.write_str("fit"),
            Headroom::Factor(factor) => write!(f, "{factor}"),
        }
    }
}

/// Why a cluster cannot be run by [`Nexus`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NexusError {
    /// Squishy bin packing fills devices that are all alike.
    #[error("nexus plans for one device class only, and this cluster has {0}")]
    SeveralClasses(usize),
}

/// Nexus over the devices of one class.
#[derive(Debug)]
pub struct Nexus {
    settings: NexusSettings,
    delays: Delays,
    models: Vec<Served>,
    backends: Vec<Backend>,
    devices: Devices,
    planned_at: Time,
    counted_from: Time,
    alarm: Alarm,
}

/// A model, how much of it is expected, and where its requests go.
#[derive(Debug)]
struct Served {
    profile: Option<LatencyProfile>,
    slo: Span,
    planned_rps: f64,
    counted: u64,
    routes: Vec<Route>,
}

#[derive(Clone, Copy, Debug)]
struct Route {
    gpu: GpuId,
    turn: usize,
    /// The share of the model's requests that goes here; all shares add up to 1.
    share: f64,
    /// What of its share it has not been given yet.
    deficit: f64,
}

/// A device and the models it goes round.
#[derive(Debug, Default)]
struct Backend {
    turns: Vec<Turn>,
    next: usize,
}

#[derive(Debug)]
struct Turn {
    model: ModelId,
    batch: u32,
    queue: DeadlineQueue,
}

impl Nexus {
    /// Plans for the announced rates.
    pub fn new(cluster: &Cluster, settings: &NexusSettings) -> Result<Nexus, NexusError> {
        let mut classes = cluster.gpus.clone();
        classes.sort_unstable();
        classes.dedup();
        if classes.len() > 1 {
            return Err(NexusError::SeveralClasses(classes.len()));
        }
        let models = (0..cluster.models.len()).map(|model| Served {
            profile: cluster.profile(ModelId(model as u32), GpuId(0)).cloned(),
            slo: cluster.models[model].slo,
            planned_rps: cluster.models[model].rate_rps,
            counted: 0,
            routes: Vec::new(),
        });
        let mut nexus = Nexus {
            settings: settings.clone(),
            delays: cluster.delays,
            models: models.collect(),
            backends: cluster.gpus.iter().map(|_| Backend::default()).collect(),
            devices: Devices::new(cluster),
            planned_at: Time::ZERO,
            counted_from: Time::ZERO,
            alarm: Alarm::new(),
        };
        nexus.apply(&nexus.plan());
        Ok(nexus)
    }

    fn plan(&self) -> Plan {
        let loads = self.models.iter().enumerate().filter_map(|(model, served)| {
            Some(Load {
                model: ModelId(model as u32),
                profile: served.profile.as_ref()?,
                slo: served.slo,
                delays: self.delays,
                rps: served.planned_rps,
            })
        });
        plan::fit(&loads.collect::<Vec<_>>(), self.backends.len(), self.settings.headroom)
    }

    /// Puts a plan into force; requests of models that moved away are handed back.
    fn apply(&mut self, plan: &Plan) -> Vec<Request> {
        let mut old: Vec<Turn> = Vec::new();
        for served in &mut self.models {
            served.routes.clear();
        }
        let mut stranded = Vec::new();
        for (index, backend) in self.backends.iter_mut().enumerate() {
            old.append(&mut backend.turns);
            backend.next = 0;
            for share in plan.devices.get(index).into_iter().flatten() {
                let kept = old.iter_mut().find(|turn| turn.model == share.model);
                let queue = kept.map(|turn| std::mem::take(&mut turn.queue)).unwrap_or_default();
                let route = Route {
                    gpu: GpuId(index as u32),
                    turn: backend.turns.len(),
                    share: share.rps,
                    deficit: 0.0,
                };
                self.models[share.model.0 as usize].routes.push(route);
                backend.turns.push(Turn { model: share.model, batch: share.batch, queue });
            }
            for mut turn in old.drain(..) {
                let waiting = turn.queue.len();
                stranded.extend(turn.queue.take(0, waiting));
            }
        }
        for served in &mut self.models {
            let all: f64 = served.routes.iter().map(|route| route.share).sum();
            served.routes.iter_mut().for_each(|route| route.share /= all);
        }
        stranded
    }

    /// At the end of an epoch, or sooner when rates moved, plans for the rates seen.
    fn review(&mut self, now: Time, out: &mut Outbox) {
        let window = now.since(self.counted_from);
        if window < self.settings.min_epoch {
            return;
        }
        let due = now.since(self.planned_at) >= self.settings.epoch;
        let rate = |served: &Served| served.counted as f64 / window.as_secs_f64();
        let moved = self.models.iter().any(|served| {
            let ratio = rate(served).max(plan::LEAST_RPS) / served.planned_rps.max(plan::LEAST_RPS);
            !(0.8..=1.1).contains(&ratio)
        });
        if due || moved {
            self.models.iter_mut().for_each(|served| served.planned_rps = rate(served));
            self.planned_at = now;
            for request in self.apply(&self.plan()) {
                self.route(request, out);
            }
            for gpu in self.devices.ids() {
                self.serve(now, gpu, out);
            }
        }
        self.counted_from = now;
        self.models.iter_mut().for_each(|served| served.counted = 0);
    }

    /// Weighted round robin: the device that lags its share the most gets the request.
    fn route(&mut self, request: Request, out: &mut Outbox) -> Option<GpuId> {
        let Some(served) = self.models.get_mut(request.model.0 as usize).filter(|it| !it.routes.is_empty())
        else {
            expire(request.id, out);
            return None;
        };
        let mut chosen = 0;
        for place in 0..served.routes.len() {
            served.routes[place].deficit += served.routes[place].share;
            if served.routes[place].deficit > served.routes[chosen].deficit {
                chosen = place;
            }
        }
        let route = &mut served.routes[chosen];
        route.deficit -= 1.0;
        self.backends[route.gpu.0 as usize].turns[route.turn].queue.insert(request);
        Some(route.gpu)
    }

    /// Gives the next model in the round its turn, if the device can take a batch.
    fn serve(&mut self, now: Time, gpu: GpuId, out: &mut Outbox) {
        let backend = &mut self.backends[gpu.0 as usize];
        let lead = backend.turns.iter().map(|turn| self.delays.lead(turn.batch)).max().unwrap_or(Span::ZERO);
        let opens_at = self.devices.opens_at(gpu, lead);
        if opens_at > now {
            self.alarm.by(opens_at, out);
            return;
        }
        for _ in 0..backend.turns.len() {
            let place = backend.next;
            backend.next = (place + 1) % backend.turns.len();
            let turn = &mut backend.turns[place];
            let Some(profile) = &self.models[turn.model.0 as usize].profile else { continue };
            let size =
                turn.early_drop(|size| self.devices.begins_at(now, gpu, size) + profile.latency(size), out);
            if size > 0 {
                let reason = if size == turn.batch { Release::Full } else { Release::Eager };
                let requests = turn.queue.take(0, size).map(|request| request.id);
                self.devices.send(now, gpu, turn.model, profile.latency(size), reason, requests, out);
                self.alarm.by(self.devices.opens_at(gpu, lead).max(now), out);
                return;
            }
        }
    }
}

impl Turn {
    /// Drops the heads that the batch behind them cannot wait for; returns the size of the batch.
    fn early_drop(&mut self, ends_at: impl Fn(u32) -> Time, out: &mut Outbox) -> u32 {
        loop {
            let size = self.batch.min(self.queue.len());
            match self.queue.head() {
                Some(head) if head.deadline < ends_at(size) => self.queue.drop_head(out),
                _ => return size,
            }
        }
    }
}

impl Policy for Nexus {
    fn handle(&mut self, now: Time, event: Event, out: &mut Outbox) {
        match event {
            Event::Arrived(request) => {
                self.review(now, out);
                if let Some(served) = self.models.get_mut(request.model.0 as usize) {
                    served.counted += 1;
                }
                if let Some(gpu) = self.route(request, out) {
                    self.serve(now, gpu, out);
                }
            }
            Event::BatchFinished { gpu, batch } if self.devices.finished(now, gpu, batch).is_some() => {
                self.serve(now, gpu, out);
            }
            Event::Timer => {
                self.alarm.rang();
                for gpu in self.devices.ids() {
                    self.serve(now, gpu, out);
                }
            }
            _ => {}
        }
    }
}
