//! Streams that open, learn and close. The instance is locked by the caller, who passes what the lock guards.

use std::sync::Arc;

use downbeat_oip::{Failure, Reason};
use downbeat_profile::{LatencyProfile, Span};
use downbeat_sched::{ClassId, Event, ModelId, RequestId, Time};
use downbeat_shards::RuntimeError;

use super::correction::{Correction, Trial};
use super::devices::Sent;
use super::dispatcher::Dispatcher;
use super::instance::{Instance, Phase, State};
use super::job::Job;
use super::stream::{Shape, Stream};

/// When so many requests of a shape have come too late in a row, what is known of it is doubted.
const EXPIRED_MAX: u32 = 32;

impl Dispatcher {
    /// Finds the stream of a request, or opens one, and counts the request in.
    pub(super) fn place(
        &self,
        now: Time,
        id: RequestId,
        job: &Job,
        instance: &Arc<Instance>,
        state: &mut State,
    ) -> Result<ModelId, Failure> {
        if !self.devices.has_any(state.classes()) {
            return Err(Failure::new(Reason::Unavailable, "no worker is there to run the model"));
        }
        if state.waiting_at(job.priority) >= instance.queue_limit {
            let message = format!("{} requests wait for the model, its limit", instance.queue_limit);
            return Err(Failure::new(Reason::Overloaded, message));
        }
        let shape = Shape::of(&job.inputs);
        let model = match state.led.get(&shape).copied() {
            Some(model) => model,
            None if self.makes_room(state) => self.open_stream(now, instance, state, shape)?,
            None => self.open_stream(now, instance, state, Shape::alone(id))?,
        };
        instance.waits(state, job.priority);
        if let Some(stream) = state.streams.get_mut(&model) {
            stream.jobs += 1;
            stream.used_at = now;
        }
        Ok(model)
    }

    pub(super) fn open_stream(
        &self,
        now: Time,
        instance: &Arc<Instance>,
        state: &mut State,
        shape: Shape,
    ) -> Result<ModelId, Failure> {
        let mut stream = Stream::new(shape, now);
        stream.trial = (instance.open && !stream.shape.is_alone()).then(Trial::default);
        self.add_stream(instance, state, stream)
    }

    fn add_stream(
        &self,
        instance: &Arc<Instance>,
        state: &mut State,
        stream: Stream,
    ) -> Result<ModelId, Failure> {
        let crowded = || {
            let message = "requests of too many different shapes wait at once";
            Failure::new(Reason::Overloaded, message)
        };
        let model =
            self.numbers.take(instance, |model| self.scheduler.is_vacant(model)).ok_or_else(crowded)?;
        let spec = stream.spec(&state.profiles, instance.max_wait);
        let added = Event::ModelAdded { model, spec: spec.clone() };
        if let Err(error) = self.scheduler.add_model(model, spec) {
            self.numbers.free(model);
            return Err(Failure::new(Reason::Failed, error.to_string()));
        }
        // Of those for a single request there can be as many as there are requests.
        if !stream.shape.is_alone() {
            self.shadow_feed.change(added);
        }
        state.lead(stream.shape.clone(), model);
        state.streams.insert(model, stream);
        Ok(model)
    }

    /// Whether another shape of a model can have a stream of its own; the one that was longest unused gives way.
    fn makes_room(&self, state: &mut State) -> bool {
        if state.takes_another_shape() {
            return true;
        }
        let unused = |(model, stream): (&ModelId, &Stream)| {
            (stream.jobs == 0 && state.leads(&stream.shape, *model)).then_some((stream.used_at, *model))
        };
        let Some((_, model)) = state.streams.iter().filter_map(unused).min() else { return false };
        self.close_stream(state, model);
        true
    }

    pub(super) fn close_stream(&self, state: &mut State, model: ModelId) {
        let Some(stream) = state.streams.remove(&model) else { return };
        state.forget(&stream.shape, model);
        self.scheduler.remove_model(model);
        if !stream.shape.is_alone() {
            self.shadow_feed.change(Event::ModelRemoved { model });
        }
        self.numbers.free(model);
    }

    /// A request leaves its stream. One to which no more can come, for it was for a single one or its shape has
    /// another, ends with its last.
    pub(super) fn depart(&self, state: &mut State, model: ModelId) {
        let Some(stream) = state.streams.get_mut(&model) else { return };
        stream.jobs -= 1;
        let unused = stream.jobs == 0;
        let alone = stream.shape.is_alone();
        let more_may_come =
            !alone && state.streams.get(&model).is_some_and(|stream| state.leads(&stream.shape, model));
        if unused && !more_may_come {
            self.close_stream(state, model);
        }
    }

    /// Corrects the prediction of a stream whose batches take longer or shorter than they should.
    pub(super) fn correct(&self, state: &mut State, sent: &Sent, class: ClassId, busy: Span) {
        let instance = &sent.instance;
        let Some(profile) = state.profile(class).cloned() else { return };
        let Some(stream) = state.streams.get_mut(&sent.model) else { return };
        stream.expired = 0;
        if let Some(trial) = &mut stream.trial {
            if let Some(learned) = trial.observe(profile.latency(sent.rows), busy) {
                instance.meter.corrected(learned.applied());
                self.end_trial(instance, state, sent.model, (class, learned));
            }
            return;
        }
        if let Some(factor) = stream.correction(class).observe(profile.latency(sent.rows), busy)
            && let Ok(profile) = profile.scaled(factor)
        {
            instance.meter.corrected(factor);
            self.set_profile(sent.model, class, profile);
        }
    }

    /// Opens a stream for a shape whose latency is known by now. The one of its first requests ends with the last of
    /// them.
    fn end_trial(
        &self,
        instance: &Arc<Instance>,
        state: &mut State,
        model: ModelId,
        learned: (ClassId, Correction),
    ) {
        let Some(trial) = state.streams.get(&model) else { return };
        let mut stream = Stream::new(trial.shape.clone(), trial.used_at);
        stream.corrections = vec![learned];
        // Only once: batches of it may be on several devices.
        if state.leads(&stream.shape, model) {
            // Where there are too many streams, it goes on as it is.
            let _ = self.add_stream(instance, state, stream);
        }
    }

    /// Where nothing of a shape runs any more, because it is thought to take too long, tries it anew.
    pub(super) fn doubt(&self, instance: &Instance, state: &mut State, model: ModelId) {
        let Some(stream) = state.streams.get_mut(&model) else { return };
        stream.expired += 1;
        if stream.expired < EXPIRED_MAX || !instance.open {
            return;
        }
        stream.expired = 0;
        stream.corrections.clear();
        for (class, profile) in &state.profiles {
            self.set_profile(model, *class, profile.clone());
        }
    }

    /// A model has come to a further class of devices, or was measured anew.
    pub(super) fn profile(&self, state: &mut State, class: ClassId, profile: &LatencyProfile) {
        state.profiles.retain(|(of, _)| *of != class);
        state.profiles.push((class, profile.clone()));
        for model in state.led.values() {
            if let Some(stream) = state.streams.get_mut(model) {
                *stream.correction(class) = Correction::default();
            }
            self.set_profile(*model, class, profile.clone());
        }
    }

    fn set_profile(&self, model: ModelId, class: ClassId, profile: LatencyProfile) {
        match self.scheduler.set_profile(model, class, profile.clone()) {
            Ok(()) => self.shadow_feed.change(Event::ProfileChanged { model, class, profile }),
            Err(error @ RuntimeError::Classes(_)) => {
                tracing::warn!("a model is not used on a further class of devices: {error}");
            }
            Err(_) => {}
        }
    }

    /// What waits is started as soon as a device is free: no more requests come that could join.
    pub(super) fn drain(&self, state: &State) {
        state.streams.keys().for_each(|model| self.scheduler.drain_model(*model));
    }

    /// Forgets a model that was withdrawn and has no requests left.
    pub(super) fn retire(&self, instance: &Instance, state: &mut State) {
        if !state.jobs.is_empty() || !matches!(state.phase, Phase::Withdrawn(_)) {
            return;
        }
        for model in state.streams.keys().copied().collect::<Vec<_>>() {
            self.close_stream(state, model);
        }
        self.forget(instance.id);
        if let Phase::Withdrawn(done) = std::mem::replace(&mut state.phase, Phase::Gone) {
            // Nobody needs to wait for it.
            let _ = done.send(());
        }
    }
}
