//! The dispatcher itself.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use downbeat_oip::Reason;
use downbeat_profile::{LatencyProfile, Span};
use downbeat_sched::{
    BatchId, ClassId, Event, GpuId, ModelId, Need, Release, Request, RequestId, Rule, Start, Time,
};
use downbeat_shards::CLASSES_PER_MODEL;
use tokio::sync::oneshot;

use super::devices::{Devices, Sent};
use super::handle::SchedulerHandle;
use super::instance::{Instance, Phase};
use super::job::Held;
use super::numbers::Numbers;
use super::scaling::Tally;
use super::shadow_feed::ShadowFeed;
use super::{Batch, InstanceId, InstanceSpec, Job, Outputs};
use crate::metrics::{DeviceMeter, Metrics};

/// Where batches go.
pub(crate) trait Outbox: Send + Sync {
    /// Sends a batch to a device, behind what it was sent before.
    fn send(&self, gpu: GpuId, batch: Batch);
}

/// Something that happened.
#[derive(Debug)]
pub(crate) enum Command {
    /// A request came in.
    Submit { id: RequestId, job: Job },
    /// A request's client went away.
    Cancel { instance: InstanceId, id: RequestId },
    /// A device finished a batch; it was busy for this long.
    Finished { gpu: GpuId, batch: BatchId, busy: Span, outputs: Outputs },
    /// A device has loaded all models and can work.
    DeviceJoined { gpu: GpuId, class: ClassId, name: Arc<str>, meter: Arc<DeviceMeter> },
    /// A device takes no more batches; what it has, it finishes. To be told when it has been sent its last.
    DeviceLeft { gpu: GpuId, settled: Option<oneshot::Sender<()>> },
    /// The devices of a worker are gone, with all they had.
    DevicesFailed { gpus: Vec<GpuId> },
    /// A model is loaded.
    Deploy { instance: InstanceId, spec: InstanceSpec },
    /// A model has come to a further class of devices, or was measured anew.
    Profile { instance: InstanceId, class: ClassId, profile: LatencyProfile },
    /// No more requests will come for a model; say so when the last one has left.
    Withdraw { instance: InstanceId, done: oneshot::Sender<()> },
    /// No more requests will come for any model.
    Drain,
}

/// Holds all requests, and carries out what the scheduler decides. See the [module](super).
pub(crate) struct Dispatcher {
    pub(super) scheduler: SchedulerHandle,
    instances: RwLock<BTreeMap<InstanceId, Arc<Instance>>>,
    pub(super) numbers: Numbers,
    pub(super) devices: Devices,
    /// Kept of every deadline for the way back to the client.
    reserve: Span,
    pub(super) counts: Counts,
    outbox: Box<dyn Outbox>,
    pub(super) shadow_feed: ShadowFeed,
}

impl Dispatcher {
    pub(super) fn new(
        scheduler: SchedulerHandle,
        reserve: Span,
        outbox: Box<dyn Outbox>,
        shadow_feed: ShadowFeed,
    ) -> Dispatcher {
        Dispatcher {
            scheduler,
            instances: RwLock::default(),
            numbers: Numbers::default(),
            devices: Devices::default(),
            reserve,
            counts: Counts::default(),
            outbox,
            shadow_feed,
        }
    }

    /// Takes in what happened.
    pub(crate) fn handle(&self, now: Time, command: Command) {
        match command {
            Command::Submit { id, job } => self.submit(now, id, job),
            Command::Cancel { instance, id } => self.cancel(now, instance, id),
            Command::Finished { gpu, batch, busy, outputs } => {
                let Some(done) = self.devices.finish(gpu, batch, busy) else { return };
                // The scheduler first: the device may be waited for.
                self.scheduler.finished(now, gpu, batch);
                self.answer_batch(now, done, busy, outputs);
            }
            Command::DeviceJoined { gpu, class, name, meter } => {
                self.devices.join(gpu, class, name, meter);
                self.shadow_feed.change(Event::GpuJoined { gpu, class });
                self.scheduler.join(now, gpu, class);
            }
            Command::DeviceLeft { gpu, settled } => {
                self.devices.leave(gpu);
                self.shadow_feed.change(Event::GpuLeft { gpu });
                let settled = move || {
                    // Nobody needs to wait for it.
                    let _ = settled.map(|settled| settled.send(()));
                };
                self.scheduler.leave(now, gpu, settled);
            }
            Command::DevicesFailed { gpus } => {
                for &gpu in &gpus {
                    self.devices.fail(gpu);
                    self.shadow_feed.change(Event::GpuFailed { gpu });
                }
                // Also of those that are not known here: one may be joining at this moment, on another thread.
                self.scheduler.fail(now, gpus);
            }
            Command::Deploy { instance, spec } => {
                if spec.profiles.len() > CLASSES_PER_MODEL {
                    let classes = spec.profiles.len();
                    tracing::warn!(
                        "a model is on {classes} classes of devices, and uses {CLASSES_PER_MODEL} of them"
                    );
                }
                let loaded = Arc::new(Instance::new(instance, spec));
                self.instances.write().unwrap_or_else(PoisonError::into_inner).insert(instance, loaded);
            }
            Command::Profile { instance, class, profile } => {
                if let Some(instance) = self.instance(instance) {
                    self.profile(&mut instance.lock(), class, &profile);
                }
            }
            Command::Withdraw { instance, done } => {
                if let Some(instance) = self.instance(instance) {
                    let mut state = instance.lock();
                    state.phase = Phase::Withdrawn(done);
                    self.drain(&state);
                    self.retire(&instance, &mut state);
                }
            }
            Command::Drain => self.all().iter().for_each(|instance| self.drain(&instance.lock())),
        }
    }

    /// Takes in a request, unless its model was withdrawn: then it is dropped, and who sent it may ask another.
    fn submit(&self, now: Time, id: RequestId, job: Job) {
        let Some(instance) = self.instance(job.instance) else { return };
        let mut state = instance.lock();
        if !matches!(state.phase, Phase::Serving) {
            return;
        }
        self.counts.arrived();
        self.shadow_feed.arrived(job.priority);
        match self.place(now, id, &job, &instance, &mut state) {
            Ok(model) => {
                let request = self.request(id, &job, model);
                state.jobs.insert(id, Held { job, model, running: false, lost: 0 });
                drop(state);
                self.shadow_feed.request(now, &request);
                self.scheduler.arrived(now, request);
            }
            Err(failure) => {
                drop(state);
                instance.meter.failed(failure.reason);
                self.answered(Err(failure.reason));
                job.answer(Err(failure));
            }
        }
    }

    fn cancel(&self, now: Time, instance: InstanceId, id: RequestId) {
        let Some(instance) = self.instance(instance) else { return };
        let state = instance.lock();
        if let Some(held) = state.jobs.get(&id) {
            self.scheduler.cancelled(now, self.request(id, &held.job, held.model));
        }
    }

    /// Sends a batch to its device. Says when to look for it, should the device not have finished by then. An error
    /// where nothing of it is left to run.
    pub(super) fn start(
        &self,
        now: Time,
        start: &Start,
        requests: &[RequestId],
    ) -> Result<Option<Time>, Empty> {
        let instance = self.numbers.owner(start.model).ok_or(Empty)?;
        let (mut ids, mut batch) = (Vec::with_capacity(requests.len()), Vec::with_capacity(requests.len()));
        let mut rows = 0;
        let mut state = instance.lock();
        for &request in requests {
            let Some(held) = state.held(request, start.model) else { continue };
            ids.push(request);
            rows += held.job.rows;
            batch.push((held.job.rows, Arc::clone(&held.job.inputs)));
            let priority = held.job.priority;
            if !std::mem::replace(&mut held.running, true) {
                instance.waits_no_longer(&mut state, priority);
            }
        }
        drop(state);
        if ids.is_empty() {
            return Err(Empty);
        }
        instance.meter.released(rows, start.reason);
        self.counts.started(rows);
        let id = start.batch;
        let sent = Sent {
            batch: id,
            instance: Arc::clone(&instance),
            model: start.model,
            rows,
            requests: ids,
            start_at: start.start_at,
            finish_at: start.finish_at,
            early: start.reason == Release::Early,
        };
        // Where the device has just failed, the scheduler is about to be told, and will start the batch elsewhere.
        let look_at = self.devices.send(start.gpu, sent);
        if look_at.is_none() {
            self.recall(&instance, start.model, requests);
        } else {
            let expected = start.finish_at.since(now);
            let batch = Batch { id, instance: instance.id, rows, expected, requests: batch };
            self.outbox.send(start.gpu, batch);
        }
        Ok(look_at)
    }

    /// Requests have not been sent to their device after all.
    fn recall(&self, instance: &Instance, model: ModelId, requests: &[RequestId]) {
        let mut state = instance.lock();
        for &request in requests {
            let Some(held) = state.held(request, model) else { continue };
            let priority = held.job.priority;
            if std::mem::take(&mut held.running) {
                instance.waits(&mut state, priority);
            }
        }
    }

    pub(super) fn request(&self, id: RequestId, job: &Job, model: ModelId) -> Request {
        // A tenth at most: a short deadline is not used up by the way back.
        let tenth = Span::from_nanos(job.due.since(job.arrived).as_nanos() / 10);
        let deadline = job.due - self.reserve.min(tenth);
        Request { id, model, deadline, priority: job.priority, rows: job.rows }
    }

    fn instance(&self, id: InstanceId) -> Option<Arc<Instance>> {
        self.instances.read().unwrap_or_else(PoisonError::into_inner).get(&id).cloned()
    }

    pub(super) fn forget(&self, id: InstanceId) {
        self.instances.write().unwrap_or_else(PoisonError::into_inner).remove(&id);
    }

    fn all(&self) -> Vec<Arc<Instance>> {
        self.instances.read().unwrap_or_else(PoisonError::into_inner).values().cloned().collect()
    }

    /// The devices of a class that the traffic needs, as far as the scheduler can tell.
    pub(crate) fn need(&self, class: ClassId) -> Need {
        self.scheduler.need(class)
    }

    /// Counts an answer: whether it came late, or why there is none.
    pub(super) fn answered(&self, late: Result<bool, Reason>) {
        if self.counts.answered(late) {
            self.shadow_feed.lost();
        }
    }

    /// Follows another rule on a class of devices from now on.
    pub(super) fn follow(&self, metrics: &Metrics, class: ClassId, rule: Rule) {
        let classes = metrics.classes();
        let name = classes.iter().find(|(of, _)| *of == class).map_or("?", |(_, name)| name);
        tracing::info!("class {name} follows the rule '{rule}' from now on");
        metrics.follows(name, rule);
        self.scheduler.follow(class, rule);
    }

    /// What happened since the last time this was asked.
    pub(crate) fn take_tally(&self) -> Tally {
        self.counts.take()
    }

    /// Requests that wait for a device.
    pub(crate) fn waiting(&self) -> u64 {
        self.all().iter().map(|instance| instance.lock().waiting() as u64).sum()
    }

    /// How long each device of a class that takes work was busy since the last time this was asked, in the order of
    /// rank.
    pub(crate) fn take_busy(&self, class: ClassId) -> Vec<Span> {
        self.devices.take_busy(class)
    }

    /// Divides the models anew among the shards, where their traffic has changed.
    pub(crate) fn rebalance(&self) {
        let moved = self.scheduler.rebalance();
        if moved > 0 {
            tracing::debug!(moved, "models were moved between the scheduler's threads");
        }
    }

    /// Ends the scheduler's threads.
    pub(super) fn stop(&self) {
        self.scheduler.stop();
    }

    /// Requests that are in the server.
    #[cfg(test)]
    pub(crate) fn jobs(&self) -> usize {
        self.all().iter().map(|instance| instance.lock().jobs.len()).sum()
    }

    /// Whether nobody waits for anything.
    #[cfg(test)]
    pub(crate) fn is_idle(&self) -> bool {
        self.jobs() == 0 && self.waiting() == 0
    }
}

/// Nothing of a batch is left to run.
pub(super) struct Empty;

/// What happened since that was last asked.
#[derive(Debug, Default)]
pub(super) struct Counts {
    arrivals: AtomicU64,
    answered: AtomicU64,
    bad: AtomicU64,
    batches: AtomicU64,
    rows: AtomicU64,
}

impl Counts {
    fn arrived(&self) {
        self.arrivals.fetch_add(1, Ordering::Relaxed);
    }

    fn started(&self, rows: u32) {
        self.batches.fetch_add(1, Ordering::Relaxed);
        self.rows.fetch_add(rows.into(), Ordering::Relaxed);
    }

    /// Counts an answer, and says whether it is bad. What its client got wrong, or gave up, says nothing about devices.
    fn answered(&self, late: Result<bool, Reason>) -> bool {
        let bad = match late {
            Ok(late) => late,
            Err(Reason::Expired | Reason::Overloaded) => true,
            Err(_) => return false,
        };
        self.answered.fetch_add(1, Ordering::Relaxed);
        self.bad.fetch_add(bad.into(), Ordering::Relaxed);
        bad
    }

    fn take(&self) -> Tally {
        let take = |count: &AtomicU64| count.swap(0, Ordering::Relaxed);
        Tally {
            arrivals: take(&self.arrivals),
            answered: take(&self.answered),
            bad: take(&self.bad),
            batches: take(&self.batches),
            rows: take(&self.rows),
        }
    }
}

#[cfg(test)]
mod tests;
