//! The scheduler: models and matchmaker put together, on one thread, as one state machine.

use downbeat_profile::LARGEST_BATCH;

use crate::fleet::{Fleet, Outstanding};
use crate::heap::KeyedHeap;
use crate::matchmaker::{Grant, Matchmaker};
use crate::model::{Model, Offer, Taken};
use crate::policy::{Need, Policy};
use crate::{
    Action, Actions, BatchId, ClassId, Delays, Event, GpuId, ModelId, ModelSpec, Outcome, Request, Start,
    Time,
};

/// Ids at or past this are refused: tables are indexed by them, and a stray id must not take all memory.
pub const ID_LIMIT: u32 = 1 << 22;

/// Classes at or past this are refused: every event looks at all of them, of which there are a handful.
pub const CLASS_LIMIT: u16 = 64;

/// Deadlines past this, 292 years from the origin, count as this, so that no feasible batch is near the end of the clock,
/// where sums saturate and an impossible batch would look possible.
const LAST_DEADLINE: Time = Time::from_nanos(1 << 63);

/// The clock stops here, long before the last deadline.
const LAST_NOW: Time = Time::from_nanos(1 << 62);

/// Deadline-driven batch scheduling as a pure state machine.
///
/// Told of an [`Event`] at a time, it answers with [`Action`]s. It does no I/O, reads no clock and spawns nothing; the
/// same events at the same times give the same actions. No sequence of events makes it panic: what makes no sense (a
/// batch that was never started, an unknown device) is ignored.
#[derive(Clone, Debug)]
pub struct Scheduler<P: Policy> {
    models: Vec<Option<Model<P::Drop>>>,
    /// When each model's offer is out of date.
    alarms: KeyedHeap<Time>,
    matchmaker: Matchmaker<P>,
    fleet: Fleet,
    delays: Delays,
    now: Time,
    armed: Time,
    next_batch: u64,
    /// Kept to be filled again.
    offer: Offer,
}

impl<P: Policy> Scheduler<P> {
    /// A scheduler without models and devices.
    pub fn new(policy: P, delays: Delays) -> Self {
        Scheduler {
            models: Vec::new(),
            alarms: KeyedHeap::default(),
            matchmaker: Matchmaker::new(policy, delays),
            fleet: Fleet::default(),
            delays,
            now: Time::ZERO,
            armed: Time::NEVER,
            next_batch: 0,
            offer: Offer::default(),
        }
    }

    /// Reacts to an event; what is to be done is added to `out`. A `now` before that of an earlier event counts as that
    /// event's.
    pub fn handle(&mut self, now: Time, event: Event, out: &mut Actions) {
        self.now = self.now.max(now).min(LAST_NOW);
        match event {
            Event::Arrived(request) => self.arrived(&bounded(request), out),
            Event::Cancelled(request) => self.cancelled(&bounded(request), out),
            Event::BatchFinished { gpu, batch } => self.batch_finished(gpu, batch),
            Event::GpuLate { gpu, free_at } => self.gpu_late(gpu, free_at),
            Event::GpuJoined { gpu, class } => self.gpu_joined(gpu, class, out),
            Event::GpuLeft { gpu } => self.gpu_left(gpu, out),
            Event::GpuFailed { gpu } => self.gpu_failed(gpu, out),
            Event::ModelAdded { model, spec } => self.model_added(model, spec, out),
            Event::ModelRemoved { model } => self.model_removed(model, out),
            Event::ProfileChanged { model, class, profile } => {
                let present = self.matchmaker.gpus_of(class) > 0;
                if class.0 < CLASS_LIMIT
                    && let Some(known) = self.model_mut(model)
                {
                    known.set_profile(class, profile, present);
                    self.offer(model, out);
                }
            }
            // Used up, whether or not it came too early: it must be armed again even for the same time.
            Event::Timer => self.armed = Time::ZERO,
        }
        self.settle(out);
    }

    /// Requests of `model` that wait.
    pub fn waiting(&self, model: ModelId) -> usize {
        self.models.get(model.0 as usize).and_then(Option::as_ref).map_or(0, Model::waiting)
    }

    /// How many devices of `class` the traffic of all models keeps busy on average, if each runs the largest batches that
    /// it can sustain: a signal for scaling. More than there are where there are too few. Costs a lookup.
    pub fn needed(&self, class: ClassId) -> f64 {
        self.need(class).mean()
    }

    /// [`needed`](Self::needed), and how much that varies beyond what waiting evens out.
    pub fn need(&self, class: ClassId) -> Need {
        self.matchmaker.pressure(class).need
    }

    fn model_mut(&mut self, model: ModelId) -> Option<&mut Model<P::Drop>> {
        self.models.get_mut(model.0 as usize)?.as_mut()
    }

    fn arrived(&mut self, request: &Request, out: &mut Actions) {
        let now = self.now;
        let queued = match self.model_mut(request.model) {
            Some(model) => model.arrive(now, request),
            None => Err(Outcome::UnknownModel),
        };
        match queued {
            Ok(()) => self.offer(request.model, out),
            Err(outcome) => out.push(Action::Answer { request: request.id, outcome }),
        }
    }

    fn cancelled(&mut self, request: &Request, out: &mut Actions) {
        if self.model_mut(request.model).is_some_and(|model| model.cancel(request)) {
            out.push(Action::Answer { request: request.id, outcome: Outcome::Cancelled });
            self.offer(request.model, out);
        } else {
            self.fleet.cancel(request);
        }
    }

    fn batch_finished(&mut self, gpu: GpuId, batch: BatchId) {
        let Some(device) = self.fleet.get_mut(gpu) else { return };
        let Some(finished) = device.finish(batch, self.now) else { return };
        let (class, idle, leaving, free_at) =
            (device.class, device.is_idle(), device.leaving, device.free_at);
        let requests = finished.requests;
        if P::LEARNS_MARGIN
            && let Some(earliest) = requests.iter().min_by_key(|request| request.deadline)
        {
            let late = self.now > earliest.deadline;
            if let Some(model) = self.model_mut(earliest.model) {
                model.observe(class, late);
            }
        }
        self.fleet.recycle(requests);
        match (leaving, idle) {
            (true, true) => drop(self.fleet.remove(gpu)),
            (true, false) => {}
            (false, true) => self.matchmaker.set_idle(gpu, self.now),
            (false, false) => self.matchmaker.set_busy(gpu, free_at, true),
        }
    }

    fn gpu_late(&mut self, gpu: GpuId, free_at: Time) {
        if let Some(device) = self.fleet.get_mut(gpu)
            && !device.is_idle()
        {
            device.free_at = free_at.max(self.now);
            self.matchmaker.set_busy(gpu, device.free_at, device.takes_more());
        }
    }

    fn gpu_joined(&mut self, gpu: GpuId, class: ClassId, out: &mut Actions) {
        if gpu.0 >= ID_LIMIT || class.0 >= CLASS_LIMIT {
            return;
        }
        match self.fleet.get_mut(gpu) {
            None => {
                self.fleet.add(gpu, class, self.now);
                self.matchmaker.add_gpu(gpu, class, self.now);
            }
            // It was to leave, still has something to do, and stays after all.
            Some(device) if device.leaving && device.class == class => {
                device.leaving = false;
                self.matchmaker.add_gpu(gpu, class, self.now);
                self.matchmaker.set_busy(gpu, device.free_at, device.takes_more());
            }
            Some(_) => return,
        }
        if self.matchmaker.gpus_of(class) == 1 {
            self.set_present(class, true, out);
        }
    }

    fn gpu_left(&mut self, gpu: GpuId, out: &mut Actions) {
        let Some(device) = self.fleet.get_mut(gpu) else { return };
        if device.leaving {
            return;
        }
        device.leaving = true;
        let (class, idle) = (device.class, device.is_idle());
        if idle {
            self.fleet.remove(gpu);
        }
        self.withdraw_gpu(gpu, class, out);
    }

    fn gpu_failed(&mut self, gpu: GpuId, out: &mut Actions) {
        let Some(device) = self.fleet.remove(gpu) else { return };
        let (class, leaving) = (device.class, device.leaving);
        for lost in device.into_outstanding() {
            self.requeue(lost, out);
        }
        if !leaving {
            self.withdraw_gpu(gpu, class, out);
        }
    }

    fn withdraw_gpu(&mut self, gpu: GpuId, class: ClassId, out: &mut Actions) {
        self.matchmaker.remove_gpu(gpu);
        if self.matchmaker.gpus_of(class) == 0 {
            self.set_present(class, false, out);
        }
    }

    /// Puts the requests of a batch that was lost back into their queue, but for those that nobody waits for any more.
    fn requeue(&mut self, mut lost: Outstanding, out: &mut Actions) {
        let Some(model) = lost.requests.first().map(|request| request.model) else { return };
        for &request in &lost.cancelled {
            lost.requests.retain(|running| running.id != request);
            out.push(Action::Answer { request, outcome: Outcome::Cancelled });
        }
        match self.model_mut(model) {
            Some(known) => {
                lost.requests.iter().for_each(|request| known.requeue(request));
                self.offer(model, out);
            }
            None => {
                for request in &lost.requests {
                    out.push(Action::Answer { request: request.id, outcome: Outcome::Removed });
                }
            }
        }
        self.fleet.recycle(lost.requests);
    }

    /// Tells all models that a class has got its first device, or lost its last.
    fn set_present(&mut self, class: ClassId, present: bool, out: &mut Actions) {
        for index in 0..self.models.len() {
            let model = ModelId(index as u32);
            if self.model_mut(model).is_some_and(|known| known.set_present(class, present)) {
                self.offer(model, out);
            }
        }
    }

    fn model_added(&mut self, model: ModelId, mut spec: ModelSpec, out: &mut Actions) {
        if model.0 >= ID_LIMIT {
            return;
        }
        spec.profiles.retain(|(class, _)| class.0 < CLASS_LIMIT);
        let index = model.0 as usize;
        if self.models.len() <= index {
            self.models.resize_with(index + 1, || None);
        }
        let matchmaker = &self.matchmaker;
        let is_present = |class| matchmaker.gpus_of(class) > 0;
        match &mut self.models[index] {
            Some(known) => known.respecify(spec, is_present),
            unknown => *unknown = Some(Model::new(spec, is_present)),
        }
        self.offer(model, out);
    }

    fn model_removed(&mut self, model: ModelId, out: &mut Actions) {
        let Some(removed) = self.models.get_mut(model.0 as usize).and_then(Option::take) else { return };
        for request in removed.waiting_requests() {
            out.push(Action::Answer { request, outcome: Outcome::Removed });
        }
        self.alarms.remove(model.0);
        self.matchmaker.forget(model);
    }

    /// Lets a model form its batches anew and tells the matchmaker.
    fn offer(&mut self, model: ModelId, out: &mut Actions) {
        let Some(known) = self.models.get_mut(model.0 as usize).and_then(Option::as_mut) else { return };
        let matchmaker = &self.matchmaker;
        known.offer(self.now, &self.delays, |class| matchmaker.pressure(class), &mut self.offer);
        for &(class, need) in &self.offer.needs {
            self.matchmaker.set_need(model, class, need);
        }
        for &request in &self.offer.expired {
            out.push(Action::Answer { request, outcome: Outcome::Expired });
        }
        self.matchmaker.post(model, &self.offer.candidates);
        if self.offer.stale_at == Time::NEVER {
            self.alarms.remove(model.0);
        } else {
            self.alarms.set(model.0, self.offer.stale_at);
        }
    }

    /// Does all that is due now, and arms the timer for what is due next.
    fn settle(&mut self, out: &mut Actions) {
        loop {
            if let Some((_, model)) = self.alarms.peek().filter(|&(at, _)| at <= self.now) {
                self.offer(ModelId(model), out);
            } else if let Some(grant) = self.matchmaker.grant(self.now) {
                self.start(&grant, out);
            } else {
                break;
            }
        }
        let alarm = self.alarms.peek().map_or(Time::NEVER, |(at, _)| at);
        let wake_at = alarm.min(self.matchmaker.wake_at(self.now));
        if wake_at != self.armed {
            self.armed = wake_at;
            out.push(Action::ArmTimer { at: wake_at });
        }
    }

    /// Carries out a grant: forms the batch again for this very device, with what has arrived meanwhile.
    fn start(&mut self, grant: &Grant, out: &mut Actions) {
        let Grant { model, gpu, class, free_at, reason } = *grant;
        let Some(known) = self.models.get_mut(model.0 as usize).and_then(Option::as_mut) else { return };
        let mut requests = self.fleet.blank_list();
        let taken = known.take(self.now, class, free_at, &self.delays, |ticket, priority, rows| {
            requests.push(Request { id: ticket.id, model, deadline: ticket.deadline, priority, rows });
        });
        // A grant that comes to nothing leaves the model withdrawn until its next arrival or alarm, or else the same
        // grant would come again at once.
        let (Some(taken), Some(device)) = (taken, self.fleet.get_mut(gpu)) else {
            return self.fleet.recycle(requests);
        };
        let batch = BatchId(self.next_batch);
        self.next_batch += 1;
        let start = Start {
            batch,
            model,
            gpu,
            start_at: taken.start_at,
            finish_at: taken.finish_at,
            reason,
            rows: taken.rows,
            requests: 0..0,
        };
        out.start(start, requests.iter().map(|request| request.id));
        let Taken { ready_at, latency, finish_at, .. } = taken;
        device.send(Outstanding { batch, ready_at, latency, requests, cancelled: Vec::new() }, finish_at);
        let takes_more = device.takes_more();
        self.matchmaker.set_busy(gpu, taken.finish_at, takes_more);
        self.offer(model, out);
    }
}

fn bounded(request: Request) -> Request {
    // One row more than any profile describes is too many like any other number.
    let rows = request.rows.clamp(1, LARGEST_BATCH + 1);
    Request { deadline: request.deadline.min(LAST_DEADLINE), rows, ..request }
}
