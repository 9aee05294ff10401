//! The scheduler: shard and matchmaker put together, on one thread, as one state machine.

use crate::fleet::Sent;
use crate::matchmaker::{Grant, Matchmaker};
use crate::shard::{Shard, Taken};
use crate::{
    Action, Actions, BatchId, ClassId, Delays, Event, GpuId, ModelId, Need, Outcome, Request, Rule, Start,
    Time,
};

/// Ids at or past this are refused: tables are indexed by them, and a stray id must not take all memory.
pub const ID_LIMIT: u32 = 1 << 22;

/// Classes at or past this are refused: every event looks at all of them, of which there are a handful.
pub const CLASS_LIMIT: u16 = 64;

/// The clock stops here, long before the last deadline.
const LAST_NOW: Time = Time::from_nanos(1 << 62);

/// Deadline-driven batch scheduling as a pure state machine.
///
/// Told of an [`Event`] at a time, it answers with [`Action`]s. It does no I/O, reads no clock and spawns nothing; the
/// same events at the same times give the same actions. No sequence of events makes it panic: what makes no sense (a
/// batch that was never started, an unknown device) is ignored.
///
/// One [`Shard`] with all models, and one [`Matchmaker`], each told at once what the other says.
#[derive(Clone, Debug)]
pub struct Scheduler {
    shard: Shard,
    matchmaker: Matchmaker,
    now: Time,
    armed: Time,
}

impl Scheduler {
    /// A scheduler without models and devices.
    pub fn new(rule: Rule, delays: Delays) -> Self {
        Scheduler {
            shard: Shard::new(delays, rule.margin, 0, 1),
            matchmaker: Matchmaker::new(rule, delays),
            now: Time::ZERO,
            armed: Time::NEVER,
        }
    }

    /// Reacts to an event; what is to be done is added to `out`. A `now` before that of an earlier event counts as that
    /// event's.
    pub fn handle(&mut self, now: Time, event: Event, out: &mut Actions) {
        self.now = self.now.max(now).min(LAST_NOW);
        match event {
            Event::Arrived(request) => self.arrived(&request, out),
            Event::Cancelled(request) => self.cancelled(&request, out),
            Event::BatchFinished { gpu, batch } => self.batch_finished(gpu, batch),
            Event::GpuLate { gpu, free_at } => self.matchmaker.late(gpu, free_at, self.now),
            Event::GpuJoined { gpu, class } => {
                self.matchmaker.join(gpu, class, self.now);
                self.update_present(out);
            }
            Event::GpuLeft { gpu } => {
                self.matchmaker.leave(gpu);
                self.update_present(out);
            }
            Event::GpuFailed { gpu } => self.gpu_failed(gpu, out),
            Event::ModelAdded { model, spec } => {
                if self.shard.add(model, spec) {
                    self.offer(model, out);
                }
            }
            Event::ModelRemoved { model } => {
                let removed = |request| out.push(Action::Answer { request, outcome: Outcome::Removed });
                if self.shard.remove(model, removed) {
                    self.matchmaker.forget(model);
                }
            }
            Event::ModelDraining { model } => {
                if self.shard.drain(model) {
                    self.offer(model, out);
                }
            }
            Event::ProfileChanged { model, class, profile } => {
                if self.shard.set_profile(model, class, profile) {
                    self.offer(model, out);
                }
            }
            Event::RuleChanged { class, rule } => self.matchmaker.follow(class, rule),
            // Used up, whether or not it came too early: it must be armed again even for the same time.
            Event::Timer => self.armed = Time::ZERO,
        }
        self.settle(out);
    }

    /// Requests of `model` that wait.
    pub fn waiting(&self, model: ModelId) -> usize {
        self.shard.waiting(model)
    }

    /// How many devices of `class` the traffic of all models keeps busy on average, if each runs the largest batches
    /// that it can sustain: a signal for scaling. More than there are where there are too few. Costs a lookup.
    pub fn needed(&self, class: ClassId) -> f64 {
        self.need(class).mean()
    }

    /// [`needed`](Self::needed), and how much that varies beyond what waiting evens out.
    pub fn need(&self, class: ClassId) -> Need {
        self.matchmaker.need(class)
    }

    fn arrived(&mut self, request: &Request, out: &mut Actions) {
        match self.shard.arrive(self.now, request) {
            Ok(_) => self.offer(request.model, out),
            Err(outcome) => out.push(Action::Answer { request: request.id, outcome }),
        }
    }

    fn cancelled(&mut self, request: &Request, out: &mut Actions) {
        if self.shard.cancel(request) {
            out.push(Action::Answer { request: request.id, outcome: Outcome::Cancelled });
            self.offer(request.model, out);
        }
    }

    fn batch_finished(&mut self, gpu: GpuId, batch: BatchId) {
        if self.matchmaker.finished(gpu, batch, self.now) {
            self.shard.finish(self.now, batch, |_| ());
        }
    }

    fn gpu_failed(&mut self, gpu: GpuId, out: &mut Actions) {
        let Scheduler { shard, matchmaker, .. } = self;
        // At most two, so that nothing is gained by keeping the list.
        let mut touched = Vec::new();
        matchmaker.fail(gpu, |batch| {
            let mut answers = Vec::new();
            let cancelled = |request: &Request| {
                out.push(Action::Answer { request: request.id, outcome: Outcome::Cancelled });
            };
            let homeless = |request: &Request| answers.push(request.id);
            touched.extend(shard.lose(batch, |_| true, cancelled, homeless));
            for request in answers {
                out.push(Action::Answer { request, outcome: Outcome::Removed });
            }
        });
        touched.into_iter().for_each(|model| self.offer(model, out));
        self.update_present(out);
    }

    /// Tells all models whose class has got its first device, or lost its last.
    fn update_present(&mut self, out: &mut Actions) {
        let changed = self.shard.set_present(self.matchmaker.present());
        if changed.bits() == 0 {
            return;
        }
        for model in (0..self.shard.models_end()).map(ModelId) {
            if self.shard.is_deployed_on(model, changed) {
                self.offer(model, out);
            }
        }
    }

    /// Lets a model form its batches anew and tells the matchmaker.
    fn offer(&mut self, model: ModelId, out: &mut Actions) {
        let Scheduler { shard, matchmaker, .. } = self;
        let Some(offer) = shard.offer(self.now, model, matchmaker) else { return };
        for &(class, need) in &offer.needs {
            matchmaker.set_need(model, class, need);
        }
        for &request in &offer.expired {
            out.push(Action::Answer { request, outcome: Outcome::Expired });
        }
        matchmaker.post(model, &offer.candidates);
    }

    /// Does all that is due now, and arms the timer for what is due next.
    fn settle(&mut self, out: &mut Actions) {
        loop {
            if let Some(model) = self.shard.due(self.now) {
                self.offer(model, out);
            } else if let Some(grant) = self.matchmaker.grant(self.now) {
                self.start(&grant, out);
            } else if let Some(grant) = self.matchmaker.grant_early(self.now) {
                self.start(&grant, out);
            } else {
                break;
            }
        }
        let wake_at = self.shard.wake_at().min(self.matchmaker.wake_at(self.now));
        if wake_at != self.armed {
            self.armed = wake_at;
            out.push(Action::ArmTimer { at: wake_at });
        }
    }

    /// Carries out a grant.
    fn start(&mut self, grant: &Grant, out: &mut Actions) {
        // A grant that comes to nothing leaves the model withdrawn until its next arrival or alarm, or else the same
        // grant would come again at once.
        let Grant { model, gpu, life, reason, .. } = *grant;
        let Some(taken) = self.shard.take(self.now, grant) else {
            return self.matchmaker.declined(gpu, life);
        };
        let Taken { batch, rows, ready_at, start_at, finish_at, latency, requests } = taken;
        let start = Start { batch, model, gpu, start_at, finish_at, reason, rows, requests: 0..0 };
        out.start(start, requests.iter().map(|request| request.id));
        self.matchmaker.sent(gpu, life, Sent { batch, ready_at, latency }, finish_at);
        self.offer(model, out);
    }
}
