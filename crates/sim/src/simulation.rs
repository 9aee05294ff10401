//! The simulation: arrivals, devices and a policy in virtual time.

#[cfg(test)]
mod tests;

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use downbeat_sched::{
    Action, ClassId, Event, GpuId, ModelId, ModelSpec, PortfolioScheduler, Priority, Request, Scheduler,
    Span, Time,
};

use crate::account::Account;
use crate::devices::{Devices, Executed};
use crate::in_flight::{InFlight, Traveller};
use crate::policy::{Cluster, Outbox, Policy};
use crate::report::RunReport;
use crate::scenario::{Fault, Scenario};
use crate::workload::Arrivals;

/// When a run may end before its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Until {
    /// Never.
    End,
    /// When some model is sure to end with more than 1 % bad requests: the report then says little more than that.
    Failure,
}

/// Runs `policy` on `scenario` with the arrivals of `seed`. `name` is what the report calls the policy.
///
/// After the last arrival the run goes on until every request has left, or could only be late.
pub fn simulate<P: Policy>(
    scenario: &Scenario,
    seed: u64,
    name: String,
    policy: &mut P,
    until: Until,
) -> RunReport {
    let mut simulation = Simulation::new(scenario, seed, Account::new(scenario, seed));
    simulation.introduce(policy);
    simulation.run(policy, until, Time::NEVER);
    simulation.finish(name, seed)
}

impl Policy for Scheduler {
    fn handle(&mut self, now: Time, event: Event, out: &mut Outbox) {
        Scheduler::handle(self, now, event, &mut out.actions);
    }
}

impl Policy for PortfolioScheduler {
    fn handle(&mut self, now: Time, event: Event, out: &mut Outbox) {
        PortfolioScheduler::handle(self, now, event, &mut out.actions);
    }
}

/// What a run is written down in.
pub(crate) trait Books {
    /// A request came in.
    fn arrived(&mut self, traveller: Traveller);
    /// A request's batch finished at `finish`.
    fn finished(&mut self, traveller: Traveller, finish: Time);
    /// A request was answered at `now` without having run, or never was.
    fn expired(&mut self, traveller: Traveller, now: Time);
    /// A batch ran, to its end or until it was stopped.
    fn executed(&mut self, executed: &Executed);
    /// Whether the model is sure to miss its objective, whatever comes.
    fn fails_early(&self, model: u32) -> bool;
}

/// A cluster at one instant of virtual time.
#[derive(Clone)]
pub(crate) struct Simulation<B> {
    cluster: Cluster,
    arrivals: Vec<Arrivals>,
    /// The next arrival of every model.
    next_arrivals: BinaryHeap<Reverse<(Time, u32)>>,
    in_flight: InFlight,
    devices: Devices,
    timer: Time,
    /// Devices that have yet to fail, the last failure first.
    faults: Vec<Fault>,
    priorities: Vec<Priority>,
    pub(crate) books: B,
    /// When arrivals end.
    end: Time,
    /// When what has not left never will.
    deadline: Time,
    out: Outbox,
}

impl<B: Books> Simulation<B> {
    pub(crate) fn new(scenario: &Scenario, seed: u64, books: B) -> Simulation<B> {
        let cluster = scenario.cluster();
        let rates = cluster.models.iter().map(|model| model.rate_rps);
        let mut arrivals: Vec<Arrivals> = (scenario.models.iter().zip(rates).enumerate())
            .map(|(index, (model, rate_rps))| Arrivals::new(&model.arrival, rate_rps, seed, index))
            .collect();
        let next = arrivals.iter_mut().map(Arrivals::next);
        let longest_slo = scenario.models.iter().map(|model| model.slo).max().unwrap_or(Span::ZERO);
        let end = Time::ZERO + scenario.duration;
        Simulation {
            next_arrivals: (0..).zip(next).map(|(model, at)| Reverse((at, model))).collect(),
            arrivals,
            in_flight: InFlight::default(),
            devices: Devices::new(cluster.gpus.len(), scenario.delays, &scenario.jitter, seed),
            timer: Time::NEVER,
            faults: scenario.faults.iter().rev().copied().collect(),
            priorities: scenario.models.iter().map(|model| model.priority).collect(),
            books,
            end,
            deadline: end + longest_slo * 4,
            out: Outbox::default(),
            cluster,
        }
    }

    /// Tells the policy of the models and the devices.
    fn introduce<P: Policy>(&mut self, policy: &mut P) {
        self.introduce_models(policy);
        for index in 0..self.cluster.gpus.len() {
            self.join(policy, Time::ZERO, GpuId(index as u32));
        }
    }

    pub(crate) fn introduce_models<P: Policy>(&mut self, policy: &mut P) {
        for index in 0..self.cluster.models.len() {
            let profiles = (0..).map(ClassId).zip(&self.cluster.models[index].profiles);
            let spec = ModelSpec::new(
                profiles.filter_map(|(class, profile)| Some((class, profile.clone()?))).collect::<Vec<_>>(),
            );
            let added = Event::ModelAdded { model: ModelId(index as u32), spec };
            self.tell(policy, Time::ZERO, added);
        }
    }

    /// Lets a device take work from `now` on: one of the cluster's that is not there, or a new one in place of one that
    /// failed.
    pub(crate) fn join<P: Policy>(&mut self, policy: &mut P, now: Time, gpu: GpuId) {
        self.devices.repair(gpu);
        self.tell(policy, now, Event::GpuJoined { gpu, class: self.cluster.gpus[gpu.0 as usize] });
    }

    /// The class of a device.
    pub(crate) fn class(&self, gpu: GpuId) -> Option<ClassId> {
        self.cluster.gpus.get(gpu.0 as usize).copied()
    }

    /// A further device of a class, which has yet to [join](Self::join).
    pub(crate) fn add_gpu(&mut self, class: ClassId) -> GpuId {
        self.cluster.gpus.push(class);
        self.devices.add()
    }

    /// Lets a device finish what it runs and take nothing more.
    pub(crate) fn leave<P: Policy>(&mut self, policy: &mut P, now: Time, gpu: GpuId) {
        self.tell(policy, now, Event::GpuLeft { gpu });
    }

    /// Whether a device has failed and not been replaced.
    pub(crate) fn has_failed(&self, gpu: GpuId) -> bool {
        self.devices.has_failed(gpu)
    }

    /// Runs until the end, or until just before `pause`.
    pub(crate) fn run<P: Policy>(&mut self, policy: &mut P, until: Until, pause: Time) {
        loop {
            let arrival = self.next_arrivals.peek().map_or(Time::NEVER, |&Reverse((at, _))| at);
            let finish = self.devices.next_finish();
            let fault = self.faults.last().map_or(Time::NEVER, |fault| Time::ZERO + fault.at);
            if arrival.min(finish).min(self.timer).min(fault) >= pause {
                return;
            }
            // At one instant: what finishes first, so that its device can be used; then what waits for the clock.
            if fault < arrival.min(finish).min(self.timer).min(self.end) {
                self.fail(policy, fault);
            } else if arrival < finish && arrival < self.timer && arrival < self.end {
                let model = self.arrive(policy);
                if until == Until::Failure && self.books.fails_early(model) {
                    return;
                }
            } else if finish <= self.timer && finish != Time::NEVER {
                if finish > self.deadline {
                    return;
                }
                self.finish_batch(policy, finish);
            } else if self.timer != Time::NEVER {
                if self.timer > self.deadline {
                    return;
                }
                let now = std::mem::replace(&mut self.timer, Time::NEVER);
                self.tell(policy, now, Event::Timer);
            } else {
                return;
            }
            if arrival >= self.end && self.in_flight.is_empty() {
                return;
            }
        }
    }

    fn arrive<P: Policy>(&mut self, policy: &mut P) -> u32 {
        let Some(mut next) = self.next_arrivals.peek_mut() else { return 0 };
        let Reverse((now, model)) = *next;
        *next = Reverse((self.arrivals[model as usize].next(), model));
        drop(next);
        let traveller = Traveller { model, arrived: now };
        self.books.arrived(traveller);
        let request = Request {
            id: self.in_flight.enter(traveller),
            model: ModelId(model),
            deadline: now + self.cluster.models[model as usize].slo,
            priority: self.priorities[model as usize],
            rows: 1,
        };
        self.tell(policy, now, Event::Arrived(request));
        model
    }

    fn fail<P: Policy>(&mut self, policy: &mut P, now: Time) {
        if let Some(Fault { gpu, .. }) = self.faults.pop() {
            self.fail_now(policy, now, gpu);
        }
    }

    /// Loses a device with all that it was sent.
    pub(crate) fn fail_now<P: Policy>(&mut self, policy: &mut P, now: Time, gpu: GpuId) {
        self.stop(now, gpu);
        self.devices.fail(gpu);
        self.tell(policy, now, Event::GpuFailed { gpu });
    }

    /// Stops a device in the middle of a batch; what it did until now counts as work.
    fn stop(&mut self, now: Time, gpu: GpuId) {
        if let Some(executed) = self.devices.preempt(now, gpu) {
            self.books.executed(&executed);
            self.devices.recycle(executed.requests);
        }
    }

    fn finish_batch<P: Policy>(&mut self, policy: &mut P, now: Time) {
        let Some(executed) = self.devices.finish() else { return };
        self.books.executed(&executed);
        let Executed { gpu, batch, requests, .. } = executed;
        for &request in &requests {
            if let Some(traveller) = self.in_flight.leave(request) {
                self.books.finished(traveller, now);
            }
        }
        self.devices.recycle(requests);
        self.tell(policy, now, Event::BatchFinished { gpu, batch });
    }

    /// Tells the policy of an event and does what it wants done.
    fn tell<P: Policy>(&mut self, policy: &mut P, now: Time, event: Event) {
        let mut out = std::mem::take(&mut self.out);
        policy.handle(now, event, &mut out);
        for gpu in out.preempt.drain(..) {
            self.stop(now, gpu);
        }
        for action in out.actions.list() {
            match action {
                Action::Start(start) => {
                    let requests = out.actions.requests(start);
                    if let Some(profile) = self.cluster.profile(start.model, start.gpu) {
                        self.devices.send(now, start, requests, profile);
                    }
                }
                Action::Answer { request, .. } => {
                    if let Some(traveller) = self.in_flight.leave(*request) {
                        self.books.expired(traveller, now);
                    }
                }
                Action::ArmTimer { at } => self.timer = (*at).max(now),
            }
        }
        out.actions.clear();
        self.out = out;
    }

    /// Counts what has not left as never answered.
    pub(crate) fn close(&mut self) {
        for traveller in self.in_flight.iter() {
            self.books.expired(traveller, self.end);
        }
    }
}

impl Simulation<Account> {
    fn finish(mut self, name: String, seed: u64) -> RunReport {
        self.close();
        self.books.into_report(name, seed, self.in_flight.entered())
    }
}
