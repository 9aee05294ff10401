//! The same load through the single-threaded scheduler, in virtual time: what the threads' decisions are held against.

#![allow(
    clippy::disallowed_types,
    reason = "requests and batches are looked up by number and never walked through"
)]

use std::collections::HashMap;

use downbeat_sched::{
    Action, Actions, BatchId, ClassId, Event, GpuId, ModelId, ModelSpec, Request, RequestId, Rule, Scheduler,
    Span, Start, Time,
};

use super::account::Account;
use super::generator::Generator;
use super::{DELAYS, EmulatedDevices, Load, LoadError, LoadReport};
use crate::host::{DomainId, Host, Inlet, Launch};
use crate::sync::Arc;

/// When the load begins.
const BEGIN: Time = Time::from_nanos(1_000_000);

/// A scheduler for each domain, and everything around them.
struct Single {
    schedulers: Vec<Scheduler>,
    timers: Vec<Time>,
    generators: Vec<Generator>,
    /// By model: whose generator it is.
    shards: Vec<usize>,
    waiting: HashMap<RequestId, Request>,
    running: HashMap<(DomainId, BatchId), Vec<Request>>,
    actions: Actions,
}

impl Load {
    /// Runs the same requests through the single-threaded scheduler, in virtual time: nothing is ever late there.
    pub fn run_on_one_thread(&self) -> Result<LoadReport, LoadError> {
        self.check()?;
        let profile = self.profile()?;
        let (weights, devices) = (self.weights(), Arc::new(EmulatedDevices::new(self.gpus as usize)));
        let placed = self.place(&weights);
        let account = Account::new(BEGIN + self.warmup, self.duration);
        let mut shards = vec![0; self.models as usize];
        for (shard, models) in placed.iter().enumerate() {
            models.iter().for_each(|model| shards[model.0 as usize] = shard);
        }
        let generators = (0u16..).zip(&placed).map(|(index, models)| {
            Generator::new(self, index, models, &weights, BEGIN, Arc::clone(&devices), account.clone())
        });
        let mut single = Single {
            schedulers: (0..self.domains).map(|_| Scheduler::new(Rule::ADAPTIVE, DELAYS)).collect(),
            timers: vec![Time::NEVER; usize::from(self.domains)],
            generators: generators.collect(),
            shards,
            waiting: HashMap::new(),
            running: HashMap::new(),
            actions: Actions::new(),
        };
        for gpu in (0..self.gpus).map(GpuId) {
            single.tell(Time::ZERO, self.domain_of(gpu.0), Event::GpuJoined { gpu, class: ClassId(0) });
        }
        for model in (0..self.models).map(ModelId) {
            let spec = ModelSpec::new([(ClassId(0), profile.clone())]);
            single.tell(Time::ZERO, self.domain_of(model.0), Event::ModelAdded { model, spec });
        }
        single.run(self, account.measured_until() + self.slo);
        let accounts = single.generators.into_iter().map(Generator::into_account);
        Ok(LoadReport::sum(self, accounts, Span::ZERO))
    }
}

impl Single {
    fn run(&mut self, load: &Load, until: Time) {
        let mut inlet = Inlet::default();
        loop {
            let arrivals = self.generators.iter().map(Host::wake_at).min().unwrap_or(Time::NEVER);
            let timers = self.timers.iter().copied().min().unwrap_or(Time::NEVER);
            let now = arrivals.min(timers);
            if now > until {
                return;
            }
            for domain in
                (0..self.timers.len()).filter(|&domain| self.timers[domain] <= now).collect::<Vec<_>>()
            {
                self.tell(now, DomainId(domain as u16), Event::Timer);
            }
            for shard in 0..self.generators.len() {
                if self.generators[shard].wake_at() > now {
                    continue;
                }
                self.generators[shard].poll(now, &mut inlet);
                for finished in std::mem::take(&mut inlet.finished) {
                    let (domain, gpu, batch) = (finished.domain, finished.gpu, finished.batch);
                    for request in self.running.remove(&(domain, batch)).unwrap_or_default() {
                        self.generators[shard].finish(now, &request);
                    }
                    self.tell(now, domain, Event::BatchFinished { gpu, batch });
                }
                for request in std::mem::take(&mut inlet.arrived) {
                    self.waiting.insert(request.id, request);
                    self.tell(now, load.domain_of(request.model.0), Event::Arrived(request));
                }
            }
        }
    }

    fn tell(&mut self, now: Time, domain: DomainId, event: Event) {
        let mut actions = std::mem::take(&mut self.actions);
        self.schedulers[usize::from(domain.0)].handle(now, event, &mut actions);
        for action in actions.list() {
            match action {
                Action::Start(start) => self.start(now, domain, start, actions.requests(start)),
                Action::Answer { request, outcome, .. } => {
                    if let Some(request) = self.waiting.remove(request) {
                        let shard = self.shards[request.model.0 as usize];
                        self.generators[shard].answer(now, request.model, request.id, *outcome);
                    }
                }
                Action::ArmTimer { at } => self.timers[usize::from(domain.0)] = *at,
            }
        }
        actions.clear();
        self.actions = actions;
    }

    fn start(&mut self, now: Time, domain: DomainId, start: &Start, ids: &[RequestId]) {
        let requests: Vec<Request> = ids.iter().filter_map(|id| self.waiting.remove(id)).collect();
        let launch = Launch {
            domain,
            batch: start.batch,
            model: start.model,
            gpu: start.gpu,
            class: ClassId(0),
            ready_at: now + DELAYS.lead(start.rows),
            start_at: start.start_at,
            finish_at: start.finish_at,
            latency: start.finish_at.since(start.start_at),
            rows: start.rows,
            reason: start.reason,
            decided_at: now,
        };
        self.generators[self.shards[start.model.0 as usize]].start(now, &launch, &requests);
        self.running.insert((domain, start.batch), requests);
    }
}
