//! The dispatcher itself.

#![allow(clippy::disallowed_types, reason = "jobs are looked up by id and never walked through")]

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use downbeat_oip::{Failure, Reason};
use downbeat_profile::{LatencyProfile, Span};
use downbeat_sched::{
    Action, Actions, Adaptive, BatchId, ClassId, Delays, Event, GpuId, ModelId, Need, Outcome, Request,
    RequestId, Scheduler, Start, Time,
};
use tokio::sync::oneshot;

use super::correction::{Correction, Trial};
use super::device::Device;
use super::instance::{Instance, Shape, Stream};
use super::job::Sent;
use super::scaling::Tally;
use super::{Batch, Completed, InstanceId, InstanceSpec, Job, Outputs};
use crate::metrics::DeviceMeter;

/// Where batches go.
pub(crate) trait Outbox {
    /// Sends a batch to a device, behind what it was sent before.
    fn send(&mut self, gpu: GpuId, batch: Batch);
}

/// Something that happened.
#[derive(Debug)]
pub(crate) enum Command {
    /// A request came in.
    Submit { id: RequestId, job: Job },
    /// A request's client went away.
    Cancel { id: RequestId },
    /// A device finished a batch; it was busy for this long.
    Finished { gpu: GpuId, batch: BatchId, busy: Span, outputs: Outputs },
    /// A device has loaded all models and can work.
    DeviceJoined { gpu: GpuId, class: ClassId, name: Arc<str>, meter: Arc<DeviceMeter> },
    /// A device takes no more batches; what it has, it finishes.
    DeviceLeft { gpu: GpuId },
    /// Say when all that was told before is done.
    Settled { done: oneshot::Sender<()> },
    /// The devices of a worker are gone, with all they had.
    DevicesFailed { gpus: Vec<GpuId> },
    /// A model is loaded.
    Deploy { instance: InstanceId, spec: InstanceSpec },
    /// A model has come to a further class of devices, or was measured anew.
    Profile { instance: InstanceId, class: ClassId, profile: LatencyProfile },
    /// No more requests will come for a model; say so when the last one has left.
    Withdraw { instance: InstanceId, done: oneshot::Sender<()> },
}

/// Holds all requests, and carries out what the scheduler decides. See the [module](super).
pub(crate) struct Dispatcher<O> {
    scheduler: Scheduler<Adaptive>,
    actions: Actions,
    jobs: HashMap<RequestId, Held>,
    instances: BTreeMap<InstanceId, Instance>,
    /// By the scheduler's number for them.
    streams: Vec<Option<Stream>>,
    devices: BTreeMap<GpuId, Device>,
    /// Kept of every deadline for the way back to the client.
    reserve: Span,
    timer_at: Time,
    /// Since that was last asked for.
    tally: Tally,
    outbox: O,
}

struct Held {
    job: Job,
    model: ModelId,
    running: bool,
    /// Devices that failed while they had it.
    lost: u32,
}

/// A request that has been on so many devices that failed is not tried on another: it may be why they did.
const LOST_MAX: u32 = 3;

/// When so many requests of a shape have come too late in a row, what is known of it is doubted.
const EXPIRED_MAX: u32 = 32;

impl<O: Outbox> Dispatcher<O> {
    pub(crate) fn new(delays: Delays, reserve: Span, outbox: O) -> Dispatcher<O> {
        Dispatcher {
            scheduler: Scheduler::new(Adaptive, delays),
            actions: Actions::new(),
            jobs: HashMap::new(),
            instances: BTreeMap::new(),
            streams: Vec::new(),
            devices: BTreeMap::new(),
            reserve,
            timer_at: Time::NEVER,
            tally: Tally::default(),
            outbox,
        }
    }

    /// Whether nobody waits for anything.
    #[cfg(test)]
    pub(crate) fn is_idle(&self) -> bool {
        self.jobs.is_empty() && self.instances.values().all(|it| (it.jobs, it.waiting()) == (0, 0))
    }

    /// When [`tick`](Self::tick) wants to be called.
    pub(crate) fn wake_at(&self) -> Time {
        let overdue = self.devices.values().map(|device| device.expected_at).min();
        self.timer_at.min(overdue.unwrap_or(Time::NEVER))
    }

    /// The devices of a class that the traffic needs, as far as the scheduler can tell.
    pub(crate) fn need(&self, class: ClassId) -> Need {
        self.scheduler.need(class)
    }

    /// What happened since the last time this was asked.
    pub(crate) fn take_tally(&mut self) -> Tally {
        std::mem::take(&mut self.tally)
    }

    /// Requests that wait for a device.
    pub(crate) fn waiting(&self) -> u64 {
        self.instances.values().map(|instance| instance.waiting() as u64).sum()
    }

    /// How long each device of a class that takes work was busy since the last time this was asked, in the order of rank.
    pub(crate) fn take_busy(&mut self, class: ClassId) -> Vec<Span> {
        let devices = self.devices.values_mut().filter(|device| device.class == class && device.takes_work);
        devices.map(|device| std::mem::take(&mut device.busy)).collect()
    }

    /// Does what is due.
    pub(crate) fn tick(&mut self, now: Time) {
        let overdue: Vec<(GpuId, Time)> =
            self.devices.iter_mut().filter_map(|(&gpu, device)| Some((gpu, device.overdue(now)?))).collect();
        for (gpu, free_at) in overdue {
            self.schedule(now, Event::GpuLate { gpu, free_at });
            self.give_up_on(now, gpu);
        }
        if self.timer_at <= now {
            self.schedule(now, Event::Timer);
        }
    }

    /// Answers the requests on a device that is late whose time has passed twice over: it may hang, and whoever waits for them
    /// should know before that is certain. What it makes of them after all is dropped.
    fn give_up_on(&mut self, now: Time, gpu: GpuId) {
        let Some(device) = self.devices.get(&gpu) else { return };
        let hopeless = |id: &&RequestId| {
            self.jobs.get(id).is_some_and(|Held { job, .. }| now > job.due + job.due.since(job.arrived))
        };
        let hopeless: Vec<RequestId> = device.requests().filter(hopeless).copied().collect();
        for id in hopeless {
            // Before it leaves: should the device fail, it is not to run elsewhere.
            self.cancel(now, id);
            if let Some(held) = self.jobs.remove(&id) {
                let failure = expired(now, &held.job);
                self.leave(now, held, Err(failure));
            }
        }
    }

    /// Takes in what happened.
    pub(crate) fn handle(&mut self, now: Time, command: Command) {
        match command {
            Command::Submit { id, job } => self.submit(now, id, job),
            Command::Cancel { id } => self.cancel(now, id),
            Command::Finished { gpu, batch, busy, outputs } => self.finished(now, gpu, batch, busy, outputs),
            Command::DeviceJoined { gpu, class, name, meter } => {
                // One that left for a while may still have something to do.
                self.devices.entry(gpu).or_insert_with(|| Device::new(name, class, meter)).takes_work = true;
                self.schedule(now, Event::GpuJoined { gpu, class });
            }
            Command::DeviceLeft { gpu } => {
                if let Some(device) = self.devices.get_mut(&gpu) {
                    device.takes_work = false;
                }
                self.schedule(now, Event::GpuLeft { gpu });
            }
            // Nobody needs to wait for it.
            Command::Settled { done } => drop(done.send(())),
            Command::DevicesFailed { gpus } => self.devices_failed(now, &gpus),
            Command::Deploy { instance, spec } => {
                self.instances.insert(instance, Instance::new(spec));
            }
            Command::Profile { instance, class, profile } => self.profile(now, instance, class, &profile),
            Command::Withdraw { instance, done } => {
                if let Some(known) = self.instances.get_mut(&instance) {
                    known.withdrawn = Some(done);
                    self.retire(now, instance);
                }
            }
        }
    }

    /// Takes in a request, unless its model was withdrawn: then it is dropped, and who sent it may ask another.
    fn submit(&mut self, now: Time, id: RequestId, job: Job) {
        if self.instances.get(&job.instance).is_none_or(|instance| instance.withdrawn.is_some()) {
            return;
        }
        self.tally.arrivals += 1;
        match self.place(now, id, &job) {
            Ok(model) => {
                let request = self.request(id, &job, model);
                self.jobs.insert(id, Held { job, model, running: false, lost: 0 });
                self.schedule(now, Event::Arrived(request));
            }
            Err(failure) => {
                if let Some(instance) = self.instances.get(&job.instance) {
                    instance.spec.meter.failed(failure.reason);
                }
                self.count(Err(failure.reason));
                answer(job, Err(failure));
            }
        }
    }

    /// Finds the stream of a request, or opens one, and counts the request in.
    fn place(&mut self, now: Time, id: RequestId, job: &Job) -> Result<ModelId, Failure> {
        let unavailable = |message: &str| Failure::new(Reason::Unavailable, message);
        let Some(instance) = self.instances.get_mut(&job.instance) else {
            return Err(unavailable("the model is being unloaded"));
        };
        let runs_it = |device: &Device| instance.profile(device.class).is_some();
        if !self.devices.values().any(runs_it) {
            return Err(unavailable("no worker is there to run the model"));
        }
        if instance.is_full(job.priority) {
            let message = format!("{} requests wait for the model, its limit", instance.spec.queue_limit);
            return Err(Failure::new(Reason::Overloaded, message));
        }
        let shape = Shape::of(&job.inputs);
        let known = instance.streams.get(&shape).copied();
        let model = match known {
            Some(model) => model,
            None if self.makes_room(now, job.instance) => self.open_stream(now, job.instance, shape)?,
            None => self.open_stream(now, job.instance, Shape::alone(id))?,
        };
        if let Some(instance) = self.instances.get_mut(&job.instance) {
            instance.jobs += 1;
            instance.waits(job.priority);
        }
        if let Some(stream) = self.stream(model) {
            stream.jobs += 1;
            stream.used_at = now;
        }
        Ok(model)
    }

    fn open_stream(&mut self, now: Time, id: InstanceId, shape: Shape) -> Result<ModelId, Failure> {
        let Some(instance) = self.instances.get(&id) else {
            return Err(Failure::new(Reason::Unavailable, "the model is being unloaded"));
        };
        let mut stream = Stream::new(id, shape, now);
        stream.trial = (instance.spec.open && !stream.shape.is_alone()).then(Trial::default);
        Ok(self.add_stream(now, stream))
    }

    fn add_stream(&mut self, now: Time, stream: Stream) -> ModelId {
        let index = self.streams.iter().position(Option::is_none).unwrap_or_else(|| {
            self.streams.push(None);
            self.streams.len() - 1
        });
        let model = ModelId(index as u32);
        let spec = self.instances.get_mut(&stream.instance).map(|instance| {
            instance.lead(stream.shape.clone(), model);
            instance.model_spec(&stream)
        });
        self.streams[index] = Some(stream);
        if let Some(spec) = spec {
            self.schedule(now, Event::ModelAdded { model, spec });
        }
        model
    }

    /// Whether another shape of a model can have a stream of its own; the one that was longest unused gives way.
    fn makes_room(&mut self, now: Time, id: InstanceId) -> bool {
        let Some(instance) = self.instances.get(&id) else { return false };
        if instance.takes_another_shape() {
            return true;
        }
        let unused_since = |model: &ModelId| {
            let stream = self.streams.get(model.0 as usize).and_then(Option::as_ref)?;
            (stream.jobs == 0).then_some((stream.used_at, *model))
        };
        let Some((_, model)) = instance.streams.values().filter_map(unused_since).min() else { return false };
        self.close_stream(now, model);
        true
    }

    fn close_stream(&mut self, now: Time, model: ModelId) {
        let Some(stream) = self.streams.get_mut(model.0 as usize).and_then(Option::take) else { return };
        if let Some(instance) = self.instances.get_mut(&stream.instance) {
            instance.forget(&stream.shape, model);
        }
        self.schedule(now, Event::ModelRemoved { model });
    }

    fn cancel(&mut self, now: Time, id: RequestId) {
        if let Some(held) = self.jobs.get(&id) {
            let request = self.request(id, &held.job, held.model);
            self.schedule(now, Event::Cancelled(request));
        }
    }

    fn finished(&mut self, now: Time, gpu: GpuId, batch: BatchId, busy: Span, outputs: Outputs) {
        let Some(device) = self.devices.get_mut(&gpu) else { return };
        let Some(sent) = device.finish(batch) else { return };
        device.meter.busy(busy);
        device.busy += busy;
        let (class, device) = (device.class, Arc::clone(&device.name));
        if let Some(instance) = self.stream(sent.model).map(|stream| stream.instance)
            && let Some(instance) = self.instances.get(&instance)
        {
            instance.spec.meter.executed(sent.rows, busy, now.since(sent.finish_at));
        }
        // The scheduler first: the device may have been waited for.
        self.schedule(now, Event::BatchFinished { gpu, batch });
        if outputs.is_ok() {
            self.correct(now, &sent, class, busy);
        }
        let together = sent.requests.len() > 1;
        let mut outputs = outputs.map(Vec::into_iter);
        for id in sent.requests {
            let outputs = match &mut outputs {
                Ok(each) => Ok(each.next().unwrap_or_default()),
                Err(trouble) if together => {
                    self.try_alone(now, id, trouble);
                    continue;
                }
                Err(trouble) => Err(Failure::new(Reason::Failed, trouble.clone())),
            };
            let Some(held) = self.jobs.remove(&id) else { continue };
            let queue = now.since(held.job.arrived) - busy;
            let completed = outputs.map(|outputs| Completed {
                outputs,
                queue,
                compute: busy,
                batch_rows: sent.rows,
                device: Arc::clone(&device),
            });
            self.leave(now, held, completed);
        }
    }

    /// Runs a request again by itself whose batch failed: one bad value must not fail everybody it happened to meet.
    fn try_alone(&mut self, now: Time, id: RequestId, trouble: &str) {
        let Some(mut held) = self.jobs.remove(&id) else { return };
        if held.job.reply.is_closed() {
            return self.leave(now, held, Err(Failure::new(Reason::Cancelled, "the client went away")));
        }
        let Ok(model) = self.open_stream(now, held.job.instance, Shape::alone(id)) else {
            return self.leave(now, held, Err(Failure::new(Reason::Failed, trouble)));
        };
        self.depart(now, held.model);
        if let Some(stream) = self.stream(model) {
            stream.jobs += 1;
        }
        if let Some(instance) = self.instances.get_mut(&held.job.instance) {
            instance.waits(held.job.priority);
        }
        (held.model, held.running) = (model, false);
        let request = self.request(id, &held.job, model);
        self.jobs.insert(id, held);
        self.schedule(now, Event::Arrived(request));
    }

    /// Corrects the prediction of a stream whose batches take longer or shorter than they should.
    fn correct(&mut self, now: Time, sent: &Sent, class: ClassId, busy: Span) {
        let Some(stream) = self.streams.get_mut(sent.model.0 as usize).and_then(Option::as_mut) else {
            return;
        };
        stream.expired = 0;
        let Some(instance) = self.instances.get(&stream.instance) else { return };
        let Some(profile) = instance.profile(class) else { return };
        if let Some(trial) = &mut stream.trial {
            if let Some(learned) = trial.observe(profile.latency(sent.rows), busy) {
                instance.spec.meter.corrected(learned.applied());
                self.end_trial(now, sent.model, (class, learned));
            }
            return;
        }
        if let Some(factor) = stream.correction(class).observe(profile.latency(sent.rows), busy)
            && let Ok(profile) = profile.scaled(factor)
        {
            instance.spec.meter.corrected(factor);
            self.schedule(now, Event::ProfileChanged { model: sent.model, class, profile });
        }
    }

    /// Opens a stream for a shape whose latency is known by now. The one of its first requests ends with the last of them.
    fn end_trial(&mut self, now: Time, model: ModelId, learned: (ClassId, Correction)) {
        let Some(trial) = self.stream(model) else { return };
        let mut stream = Stream::new(trial.instance, trial.shape.clone(), trial.used_at);
        stream.corrections = vec![learned];
        let leads = |it: &Instance| it.streams.get(&stream.shape) == Some(&model);
        // Only once: batches of it may be on several devices.
        if self.instances.get(&stream.instance).is_some_and(leads) {
            self.add_stream(now, stream);
        }
    }

    /// Where nothing of a shape runs any more, because it is thought to take too long, tries it anew.
    fn doubt(&mut self, now: Time, model: ModelId) {
        let Some(stream) = self.stream(model) else { return };
        stream.expired += 1;
        let (id, doubtful) = (stream.instance, stream.expired >= EXPIRED_MAX);
        let Some(instance) = self.instances.get(&id).filter(|it| doubtful && it.spec.open) else { return };
        let profiles = instance.spec.profiles.clone();
        if let Some(stream) = self.stream(model) {
            stream.expired = 0;
            stream.corrections.clear();
        }
        for (class, profile) in profiles {
            self.schedule(now, Event::ProfileChanged { model, class, profile });
        }
    }

    /// All at once: what one of them had must not be sent to another of them, nor count as lost again.
    fn devices_failed(&mut self, now: Time, gpus: &[GpuId]) {
        for &gpu in gpus {
            self.schedule(now, Event::GpuLeft { gpu });
        }
        for &gpu in gpus {
            self.device_failed(now, gpu);
        }
    }

    fn device_failed(&mut self, now: Time, gpu: GpuId) {
        let Some(device) = self.devices.remove(&gpu) else { return };
        // Before the scheduler starts them again elsewhere.
        for id in device.into_sent().flat_map(|sent| sent.requests) {
            let Some(held) = self.jobs.get_mut(&id) else { continue };
            (held.running, held.lost) = (false, held.lost + 1);
            if let Some(instance) = self.instances.get_mut(&held.job.instance) {
                instance.waits(held.job.priority);
            }
            if held.lost >= LOST_MAX {
                self.cancel(now, id);
            }
        }
        self.schedule(now, Event::GpuFailed { gpu });
    }

    fn profile(&mut self, now: Time, id: InstanceId, class: ClassId, profile: &LatencyProfile) {
        let Some(instance) = self.instances.get_mut(&id) else { return };
        instance.spec.profiles.retain(|(of, _)| *of != class);
        instance.spec.profiles.push((class, profile.clone()));
        for model in instance.streams.values().copied().collect::<Vec<_>>() {
            if let Some(stream) = self.stream(model) {
                *stream.correction(class) = Correction::default();
            }
            self.schedule(now, Event::ProfileChanged { model, class, profile: profile.clone() });
        }
    }

    /// Tells the scheduler and does what it says.
    fn schedule(&mut self, now: Time, event: Event) {
        let mut actions = std::mem::take(&mut self.actions);
        self.scheduler.handle(now, event, &mut actions);
        for action in actions.list() {
            match action {
                Action::Start(start) => self.start(now, start, actions.requests(start)),
                Action::Answer { request, outcome } => self.refuse(now, *request, *outcome),
                Action::ArmTimer { at } => self.timer_at = *at,
            }
        }
        actions.clear();
        self.actions = actions;
    }

    fn start(&mut self, now: Time, start: &Start, ids: &[RequestId]) {
        let Some(stream) = self.streams.get(start.model.0 as usize).and_then(Option::as_ref) else { return };
        let instance = stream.instance;
        let mut requests = Vec::with_capacity(ids.len());
        let mut known = self.instances.get_mut(&instance);
        for id in ids {
            if let Some(held) = self.jobs.get_mut(id) {
                held.running = true;
                requests.push((held.job.rows, Arc::clone(&held.job.inputs)));
                if let Some(known) = &mut known {
                    known.waits_no_longer(held.job.priority);
                }
            }
        }
        if let Some(known) = known {
            known.spec.meter.released(start.rows, start.reason);
        }
        self.tally.batches += 1;
        self.tally.rows += u64::from(start.rows);
        if let Some(device) = self.devices.get_mut(&start.gpu) {
            device.send(Sent {
                batch: start.batch,
                model: start.model,
                rows: start.rows,
                requests: ids.to_vec(),
                start_at: start.start_at,
                finish_at: start.finish_at,
            });
        }
        let expected = start.finish_at.since(now);
        self.outbox
            .send(start.gpu, Batch { id: start.batch, instance, rows: start.rows, expected, requests });
    }

    fn refuse(&mut self, now: Time, id: RequestId, outcome: Outcome) {
        let Some(held) = self.jobs.remove(&id) else { return };
        if outcome == Outcome::Expired {
            self.doubt(now, held.model);
        }
        let failure = match outcome {
            // With nothing to run it on, that it is too late is not what its client should read.
            Outcome::Expired if self.devices.is_empty() => {
                Failure::new(Reason::Unavailable, "no worker is left to run the model")
            }
            Outcome::Expired => expired(now, &held.job),
            Outcome::Cancelled if held.lost >= LOST_MAX => {
                let message = format!("{LOST_MAX} workers ended while they ran the request's batch");
                Failure::new(Reason::Failed, message)
            }
            Outcome::Cancelled => Failure::new(Reason::Cancelled, "the client went away"),
            Outcome::Overloaded => Failure::new(Reason::Overloaded, "too many requests wait for the model"),
            Outcome::TooLarge => {
                let message = format!("{} rows are more than the model takes in one batch", held.job.rows);
                Failure::new(Reason::Invalid, message)
            }
            Outcome::UnknownModel | Outcome::Removed => {
                Failure::new(Reason::Unavailable, "the model is being unloaded")
            }
        };
        self.leave(now, held, Err(failure));
    }

    /// The one way out for a request that was taken in.
    fn leave(&mut self, now: Time, held: Held, result: Result<Completed, Failure>) {
        let Held { job, model, running, .. } = held;
        let id = job.instance;
        if let Some(instance) = self.instances.get_mut(&id) {
            instance.jobs -= 1;
            if !running {
                instance.waits_no_longer(job.priority);
            }
            let meter = &instance.spec.meter;
            match &result {
                Ok(_) if job.reply.is_closed() => meter.failed(Reason::Cancelled),
                Ok(completed) => {
                    let total = now.since(job.arrived);
                    meter.completed(job.rows, total, completed.queue, completed.compute, now > job.due);
                }
                Err(failure) => meter.failed(failure.reason),
            }
        }
        if !job.reply.is_closed() {
            self.count(result.as_ref().map(|_| now > job.due).map_err(|failure| failure.reason));
        }
        self.depart(now, model);
        answer(job, result);
        self.retire(now, id);
    }

    /// Counts an answer: whether it came late, or why there is none. What its client got wrong, or gave up, says nothing
    /// about devices.
    fn count(&mut self, late: Result<bool, Reason>) {
        let bad = match late {
            Ok(late) => late,
            Err(Reason::Expired | Reason::Overloaded) => true,
            Err(_) => return,
        };
        self.tally.answered += 1;
        self.tally.bad += u64::from(bad);
    }

    /// Forgets a model that was withdrawn and has no requests left.
    fn retire(&mut self, now: Time, id: InstanceId) {
        let over = |instance: &Instance| instance.withdrawn.is_some() && instance.jobs == 0;
        if !self.instances.get(&id).is_some_and(over) {
            return;
        }
        let Some(instance) = self.instances.remove(&id) else { return };
        for &model in instance.streams.values() {
            self.close_stream(now, model);
        }
        if let Some(done) = instance.withdrawn {
            // Nobody needs to wait for it.
            let _ = done.send(());
        }
    }

    fn request(&self, id: RequestId, job: &Job, model: ModelId) -> Request {
        // A tenth at most: a short deadline is not used up by the way back.
        let tenth = Span::from_nanos(job.due.since(job.arrived).as_nanos() / 10);
        let deadline = job.due - self.reserve.min(tenth);
        Request { id, model, deadline, priority: job.priority, rows: job.rows }
    }

    /// A request leaves its stream. One to which no more can come, for it was for a single one or its shape has another,
    /// ends with its last.
    fn depart(&mut self, now: Time, model: ModelId) {
        let Some(stream) = self.streams.get_mut(model.0 as usize).and_then(Option::as_mut) else { return };
        stream.jobs -= 1;
        let leads = |it: &Instance| it.streams.get(&stream.shape) == Some(&model);
        let more_may_come =
            !stream.shape.is_alone() && self.instances.get(&stream.instance).is_some_and(leads);
        if stream.jobs == 0 && !more_may_come {
            self.close_stream(now, model);
        }
    }

    fn stream(&mut self, model: ModelId) -> Option<&mut Stream> {
        self.streams.get_mut(model.0 as usize)?.as_mut()
    }
}

fn expired(now: Time, job: &Job) -> Failure {
    let (given, waited) =
        (job.due.since(job.arrived).as_millis_f64(), now.since(job.arrived).as_millis_f64());
    let message = format!("the deadline of {given:.1} ms cannot be met; known after {waited:.1} ms");
    Failure::new(Reason::Expired, message)
}

fn answer(job: Job, result: Result<Completed, Failure>) {
    // Its place is free before its client can know; a client that went away does not care.
    drop(job.permit);
    let _ = job.reply.send(result);
}

#[cfg(test)]
mod tests;
