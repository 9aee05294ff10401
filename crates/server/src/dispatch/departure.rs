//! How requests leave: with an answer of a device, or with the reason why there is none.

use std::sync::Arc;

use downbeat_oip::{Failure, Reason};
use downbeat_profile::Span;
use downbeat_sched::{GpuId, ModelId, Outcome, Request, RequestId, Time};

use super::Outputs;
use super::devices::{Done, Sent};
use super::dispatcher::Dispatcher;
use super::instance::{Instance, State};
use super::job::{Completed, Held, Job};
use super::stream::Shape;

/// A request that has been on so many devices that failed is not tried on another: it may be why they did.
const LOST_MAX: u32 = 3;

impl Dispatcher {
    /// A batch has finished; its requests leave, unless it failed and they are to be tried again.
    pub(super) fn answer_batch(&self, now: Time, done: Done, busy: Span, outputs: Outputs) {
        let Done { sent, device, class } = done;
        let instance = Arc::clone(&sent.instance);
        instance.meter.executed(sent.rows, busy, now.since(sent.finish_at));
        let mut state = instance.lock();
        if outputs.is_ok() {
            self.correct(&mut state, &sent, class, busy);
        }
        let Sent { requests, rows, .. } = sent;
        let together = requests.len() > 1;
        let mut outputs = outputs.map(Vec::into_iter);
        for id in requests {
            let outputs = match &mut outputs {
                Ok(each) => Ok(each.next().unwrap_or_default()),
                Err(trouble) if together => {
                    self.try_alone(now, &instance, &mut state, id, trouble);
                    continue;
                }
                Err(trouble) => Err(Failure::new(Reason::Failed, trouble.clone())),
            };
            let Some(held) = state.jobs.remove(&id) else { continue };
            let completed = outputs.map(|outputs| Completed {
                outputs,
                queue: now.since(held.job.arrived) - busy,
                compute: busy,
                batch_rows: rows,
                device: Arc::clone(&device),
            });
            self.leave(now, &instance, &mut state, held, completed);
        }
        self.retire(&instance, &mut state);
    }

    /// Runs a request again by itself whose batch failed: one bad value must not fail everybody it happened to meet.
    fn try_alone(
        &self,
        now: Time,
        instance: &Arc<Instance>,
        state: &mut State,
        id: RequestId,
        trouble: &str,
    ) {
        let Some(mut held) = state.jobs.remove(&id) else { return };
        if held.job.reply.is_closed() {
            let failure = Failure::new(Reason::Cancelled, "the client went away");
            return self.leave(now, instance, state, held, Err(failure));
        }
        let Ok(model) = self.open_stream(now, instance, state, Shape::alone(id)) else {
            let failure = Failure::new(Reason::Failed, trouble);
            return self.leave(now, instance, state, held, Err(failure));
        };
        self.depart(state, held.model);
        if let Some(stream) = state.streams.get_mut(&model) {
            stream.jobs += 1;
        }
        instance.waits(state, held.job.priority);
        (held.model, held.running) = (model, false);
        let request = self.request(id, &held.job, model);
        state.jobs.insert(id, held);
        self.scheduler.arrived(now, request);
    }

    /// A request's device failed. Whether it is to run on another.
    pub(super) fn lost(&self, request: &Request) -> bool {
        let Request { model, id, .. } = *request;
        let Some(instance) = self.numbers.owner(model) else { return false };
        let mut state = instance.lock();
        let Some(held) = state.held(id, model) else { return false };
        // It may have been on its way to a device that was gone already.
        let was_there = std::mem::take(&mut held.running);
        held.lost += u32::from(was_there);
        // Nor is it, where nobody waits for it any more.
        let again = held.lost < LOST_MAX && !held.job.reply.is_closed();
        let priority = held.job.priority;
        if was_there {
            instance.waits(&mut state, priority);
        }
        again
    }

    /// A request leaves without an answer of a device.
    pub(super) fn refuse(&self, now: Time, model: ModelId, id: RequestId, outcome: Outcome) {
        let Some(instance) = self.numbers.owner(model) else { return };
        let mut state = instance.lock();
        if state.held(id, model).is_none() {
            return;
        }
        let Some(held) = state.jobs.remove(&id) else { return };
        if outcome == Outcome::Expired {
            self.doubt(&instance, &mut state, model);
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
        self.leave(now, &instance, &mut state, held, Err(failure));
        self.retire(&instance, &mut state);
    }

    /// Looks whether a device should have finished what it runs. Says when to look again.
    ///
    /// Requests on it whose time has passed twice over are answered: it may hang, and whoever waits for them should
    /// know before that is certain. What it makes of them after all is dropped.
    pub(super) fn look_after(&self, now: Time, gpu: GpuId) -> Option<Time> {
        let overdue = self.devices.overdue(gpu, now)?;
        self.scheduler.late(now, gpu, overdue.free_at);
        for (instance, requests) in overdue.requests {
            let mut state = instance.lock();
            for id in requests {
                let hopeless = |held: &Held| now > held.job.due + held.job.due.since(held.job.arrived);
                if !state.jobs.get(&id).is_some_and(hopeless) {
                    continue;
                }
                let Some(held) = state.jobs.remove(&id) else { continue };
                // Should the device fail, it is not to run elsewhere.
                let request = self.request(id, &held.job, held.model);
                self.scheduler.cancelled(now, request);
                let failure = expired(now, &held.job);
                self.leave(now, &instance, &mut state, held, Err(failure));
            }
            self.retire(&instance, &mut state);
        }
        Some(overdue.look_at)
    }

    /// The one way out for a request that was taken in.
    fn leave(
        &self,
        now: Time,
        instance: &Instance,
        state: &mut State,
        held: Held,
        result: Result<Completed, Failure>,
    ) {
        let Held { job, model, running, .. } = held;
        if !running {
            instance.waits_no_longer(state, job.priority);
        }
        let meter = &instance.meter;
        match &result {
            Ok(_) if job.reply.is_closed() => meter.failed(Reason::Cancelled),
            Ok(completed) => {
                let total = now.since(job.arrived);
                meter.completed(job.rows, total, completed.queue, completed.compute, now > job.due);
            }
            Err(failure) => meter.failed(failure.reason),
        }
        if !job.reply.is_closed() {
            self.answered(result.as_ref().map(|_| now > job.due).map_err(|failure| failure.reason));
        }
        self.depart(state, model);
        job.answer(result);
    }
}

fn expired(now: Time, job: &Job) -> Failure {
    let (given, waited) =
        (job.due.since(job.arrived).as_millis_f64(), now.since(job.arrived).as_millis_f64());
    let message = format!("the deadline of {given:.1} ms cannot be met; known after {waited:.1} ms");
    Failure::new(Reason::Expired, message)
}
