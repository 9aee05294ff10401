//! The scheduler: shard and matchmaker put together, on one thread, as one state machine.

use crate::fleet::Sent;
use crate::matchmaker::{Grant, Matchmaker};
use crate::shard::{Shard, Taken};
use crate::{
    Action, Actions, BatchId, ClassId, Delays, Event, GpuId, ModelId, Need, Outcome, Request, Rule, Span,
    Start, Time,
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
    /// Models that are to make a new offer, each once.
    touched: Vec<ModelId>,
    is_touched: Vec<bool>,
}

impl Scheduler {
    /// A scheduler without models and devices.
    pub fn new(rule: Rule, delays: Delays) -> Self {
        // The matchmaker is on the same thread, so that it can be told of a window when that opens, and no sooner.
        let mut shard = Shard::new(delays, rule.margin, 0, 1);
        shard.suppress_updates(Span::ZERO);
        Scheduler {
            shard,
            matchmaker: Matchmaker::new(rule, delays),
            now: Time::ZERO,
            armed: Time::NEVER,
            touched: Vec::new(),
            is_touched: Vec::new(),
        }
    }

    /// The same scheduler, in which a model makes an offer for every request: for tests.
    pub fn with_all_updates(mut self) -> Self {
        self.shard.send_all_updates();
        self
    }

    /// Reacts to an event; what is to be done is added to `out`. A `now` before that of an earlier event counts as that
    /// event's.
    pub fn handle(&mut self, now: Time, event: Event, out: &mut Actions) {
        self.take_in(now, event, out);
        self.settle(now, out);
    }

    /// Learns of an event. What follows from it is decided when it is next [settled](Self::settle); answers that are
    /// certain are given at once. For callers who learn of several events at a time.
    pub fn take_in(&mut self, now: Time, event: Event, out: &mut Actions) {
        self.advance(now);
        match event {
            Event::Arrived(request) => self.arrived(&request, out),
            Event::Cancelled(request) => self.cancelled(&request, out),
            Event::BatchFinished { gpu, batch } => self.batch_finished(gpu, batch),
            Event::GpuLate { gpu, free_at } => self.matchmaker.late(gpu, free_at, self.now),
            Event::GpuJoined { gpu, class } => {
                self.matchmaker.join(gpu, class, self.now);
                self.update_present();
            }
            Event::GpuLeft { gpu } => {
                self.matchmaker.leave(gpu);
                self.update_present();
            }
            Event::GpuFailed { gpu } => self.gpu_failed(gpu, |_| true, out),
            Event::ModelAdded { model, spec } => {
                if self.shard.add(model, spec) {
                    self.touch(model);
                }
            }
            Event::ModelRemoved { model } => {
                let outcome = Outcome::Removed;
                let removed = |request| out.push(Action::Answer { model, request, outcome });
                if self.shard.remove(model, removed) {
                    self.matchmaker.forget(model);
                }
            }
            Event::ModelDraining { model } => {
                if self.shard.drain(model) {
                    self.touch(model);
                }
            }
            Event::ProfileChanged { model, class, profile } => {
                if self.shard.set_profile(model, class, profile) {
                    self.touch(model);
                }
            }
            Event::RuleChanged { class, rule } => self.matchmaker.follow(class, rule),
            // Used up, whether or not it came too early: it must be armed again even for the same time.
            Event::Timer => self.armed = Time::ZERO,
        }
    }

    /// Learns that a device is gone, as from [`Event::GpuFailed`]. Of the requests that it ran, those that are not to run
    /// `again` are answered [`Outcome::Cancelled`].
    pub fn take_in_failure(
        &mut self,
        now: Time,
        gpu: GpuId,
        again: impl FnMut(&Request) -> bool,
        out: &mut Actions,
    ) {
        self.advance(now);
        self.gpu_failed(gpu, again, out);
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
            Ok(true) => self.touch(request.model),
            Ok(false) => {}
            Err(outcome) => answer(request, outcome, out),
        }
    }

    fn cancelled(&mut self, request: &Request, out: &mut Actions) {
        if self.shard.cancel(request) {
            answer(request, Outcome::Cancelled, out);
            self.touch(request.model);
        }
    }

    fn batch_finished(&mut self, gpu: GpuId, batch: BatchId) {
        if self.matchmaker.finished(gpu, batch, self.now) {
            self.shard.finish(self.now, batch, |_| ());
        }
    }

    fn gpu_failed(&mut self, gpu: GpuId, mut again: impl FnMut(&Request) -> bool, out: &mut Actions) {
        let Scheduler { shard, matchmaker, .. } = self;
        // At most two, so that nothing is gained by keeping the list.
        let mut touched = Vec::new();
        matchmaker.fail(gpu, |batch| {
            let mut homeless = Vec::new();
            let cancelled = |request: &Request| answer(request, Outcome::Cancelled, out);
            touched.extend(shard.lose(batch, &mut again, cancelled, |request| homeless.push(*request)));
            homeless.iter().for_each(|request| answer(request, Outcome::Removed, out));
        });
        touched.into_iter().for_each(|model| self.touch(model));
        self.update_present();
    }

    /// Tells all models whose class has got its first device, or lost its last.
    fn update_present(&mut self) {
        let changed = self.shard.set_present(self.matchmaker.present());
        if changed.bits() == 0 {
            return;
        }
        for model in (0..self.shard.models_end()).map(ModelId) {
            if self.shard.is_deployed_on(model, changed) {
                self.touch(model);
            }
        }
    }

    fn advance(&mut self, now: Time) {
        self.now = self.now.max(now).min(LAST_NOW);
    }

    /// Has a model make a new offer when all that comes now is known.
    #[inline]
    fn touch(&mut self, model: ModelId) {
        let index = model.0 as usize;
        if self.is_touched.len() <= index {
            self.is_touched.resize(index + 1, false);
        }
        if !std::mem::replace(&mut self.is_touched[index], true) {
            self.touched.push(model);
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
            out.push(Action::Answer { model, request, outcome: Outcome::Expired });
        }
        matchmaker.post(model, &offer.candidates);
    }

    /// Decides what follows from all that was [taken in](Self::take_in) and from the time, and arms the timer for what
    /// is due next.
    pub fn settle(&mut self, now: Time, out: &mut Actions) {
        self.settle_with(now, true, out);
    }

    /// As [`settle`](Self::settle), but starts no batch early on spare devices. For callers who know of more events that
    /// they have yet to take in: requests among them may belong into the same batch.
    pub fn settle_due(&mut self, now: Time, out: &mut Actions) {
        self.settle_with(now, false, out);
    }

    fn settle_with(&mut self, now: Time, early: bool, out: &mut Actions) {
        self.advance(now);
        for at in 0..self.touched.len() {
            let model = self.touched[at];
            self.is_touched[model.0 as usize] = false;
            self.offer(model, out);
        }
        self.touched.clear();
        loop {
            if let Some(model) = self.shard.due(self.now) {
                self.offer(model, out);
            } else if let Some(grant) = self.matchmaker.grant(self.now) {
                self.start(&grant, out);
            } else if early && let Some(grant) = self.matchmaker.grant_early(self.now) {
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

fn answer(request: &Request, outcome: Outcome, out: &mut Actions) {
    out.push(Action::Answer { model: request.model, request: request.id, outcome });
}
