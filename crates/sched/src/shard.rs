//! A shard: some models with their requests, waiting and running.

use downbeat_profile::{LARGEST_BATCH, LatencyProfile, Span};

use crate::heap::KeyedHeap;
use crate::ledger::{Ledger, Outstanding};
use crate::matchmaker::Grant;
use crate::model::{Cluster, Model, Offer};
use crate::{
    BatchId, CLASS_LIMIT, ClassId, ClassSet, Delays, ID_LIMIT, ModelId, ModelSpec, Outcome, Outlook, Request,
    RequestId, Time,
};

/// Deadlines past this, 292 years from the origin, count as this, so that no feasible batch is near the end of the
/// clock, where sums saturate and an impossible batch would look possible.
const LAST_DEADLINE: Time = Time::from_nanos(1 << 63);

/// Some models with their requests, waiting and running: the half of the scheduler that requests touch.
///
/// Its counterpart is the [`Matchmaker`](crate::Matchmaker), which has the devices. The two know each other only by
/// what one says and the other is told, so that they can be on one thread, as in [`Scheduler`](crate::Scheduler), or on
/// several.
///
/// After anything that changes what a model has waiting, its [`offer`](Self::offer) is to be asked for and told to the
/// matchmaker; for several changes of one model at one time, once is enough.
#[derive(Clone, Debug)]
pub struct Shard {
    models: Vec<Option<Box<Model>>>,
    /// When each model's offer is out of date.
    alarms: KeyedHeap<Time>,
    ledger: Ledger,
    delays: Delays,
    /// The classes of which there is a device.
    present: ClassSet,
    /// See [`suppress_updates`](Self::suppress_updates).
    update_lead: Option<Span>,
    next_batch: u64,
    batches_apart: u64,
    /// Kept to be filled again.
    offer: Offer,
    /// [`Rule::margin`](crate::Rule::margin).
    learns_margin: bool,
}

/// A model on its way from one shard to another.
#[derive(Clone, Debug)]
pub struct Moving(Box<Model>);

/// A batch taken out of a model's queue, with what was predicted of it.
#[derive(Clone, Copy, Debug)]
pub struct Taken<'a> {
    /// Its number.
    pub batch: BatchId,
    /// The rows of all its requests.
    pub rows: u32,
    /// When the requests will be at the device.
    pub ready_at: Time,
    /// When the device is expected to start it.
    pub start_at: Time,
    /// When the device is expected to finish it.
    pub finish_at: Time,
    /// How long it is expected to take.
    pub latency: Span,
    /// Its requests, in deadline order within each priority.
    pub requests: &'a [Request],
}

impl Shard {
    /// A shard without models; where it `learns_margin`, deadlines are kept with one. It is number `index` of `shards`: so the batches of all shards have different numbers.
    pub fn new(delays: Delays, learns_margin: bool, index: u32, shards: u32) -> Self {
        Shard {
            models: Vec::new(),
            alarms: KeyedHeap::default(),
            ledger: Ledger::default(),
            delays,
            present: ClassSet::default(),
            update_lead: None,
            next_batch: index.into(),
            batches_apart: shards.max(1).into(),
            offer: Offer::default(),
            learns_margin,
        }
    }

    /// Adds a model, or gives one that is here another specification: what waits goes on waiting. `false` for a number
    /// that is refused.
    pub fn add(&mut self, model: ModelId, mut spec: ModelSpec) -> bool {
        if model.0 >= ID_LIMIT {
            return false;
        }
        spec.profiles.retain(|(class, _)| class.0 < CLASS_LIMIT);
        let index = model.0 as usize;
        if self.models.len() <= index {
            self.models.resize_with(index + 1, || None);
        }
        match &mut self.models[index] {
            Some(known) => known.respecify(spec),
            unknown => *unknown = Some(Box::new(Model::new(spec))),
        }
        true
    }

    /// Removes a model; the requests that wait are told to `removed`. What runs, finishes.
    pub fn remove(&mut self, model: ModelId, removed: impl FnMut(RequestId)) -> bool {
        let Some(known) = self.models.get_mut(model.0 as usize).and_then(Option::take) else { return false };
        known.waiting_requests().for_each(removed);
        self.alarms.remove(model.0);
        true
    }

    /// Lets what waits for a model wait for no more requests; `false` where there is no such model.
    pub fn drain(&mut self, model: ModelId) -> bool {
        self.model_mut(model).map(Model::drain).is_some()
    }

    /// Deploys a model on a class, or corrects its profile there; `false` where there is no such model or class.
    pub fn set_profile(&mut self, model: ModelId, class: ClassId, profile: LatencyProfile) -> bool {
        let known = self.model_mut(model).filter(|_| class.0 < CLASS_LIMIT);
        known.map(|known| known.set_profile(class, profile)).is_some()
    }

    /// Learns of which classes there is a device. Returns those that have changed: models deployed on one of them are
    /// to make a new offer.
    pub fn set_present(&mut self, present: ClassSet) -> ClassSet {
        let changed = self.present.difference(present);
        self.present = present;
        changed
    }

    /// Models have numbers below this.
    pub fn models_end(&self) -> u32 {
        self.models.len() as u32
    }

    /// Whether there is such a model, deployed on one of these classes.
    pub fn is_deployed_on(&self, model: ModelId, classes: ClassSet) -> bool {
        self.model(model).is_some_and(|known| known.is_deployed_on(classes))
    }

    /// Requests of `model` that wait.
    pub fn waiting(&self, model: ModelId) -> usize {
        self.model(model).map_or(0, Model::waiting)
    }

    /// Asks for fewer offers from now on: a request that joins others `update_lead` and more
    /// before their window opens, asks for none. What is granted is the same, since a batch is formed anew when it is. The matchmaker sees
    /// the smaller batch meanwhile.
    pub fn suppress_updates(&mut self, update_lead: Span) {
        self.update_lead = Some(update_lead);
    }

    /// Asks for an offer with every request.
    pub fn send_all_updates(&mut self) {
        self.update_lead = None;
    }

    /// Queues a request that has just arrived. `true` where its model is to make a new offer.
    #[inline]
    pub fn arrive(&mut self, now: Time, request: &Request) -> Result<bool, Outcome> {
        let Some(model) = self.model_mut(request.model) else { return Err(Outcome::UnknownModel) };
        // Hardly any needs a copy.
        if is_bounded(request) { model.arrive(now, request) } else { model.arrive(now, &bounded(request)) }
    }

    /// Takes a request whose client has gone out of its queue; `false` where it does not wait. If it runs, that is
    /// noted.
    pub fn cancel(&mut self, request: &Request) -> bool {
        let request = bounded(request);
        let waited = self.model_mut(request.model).is_some_and(|model| model.cancel(&request));
        if !waited {
            self.ledger.cancel(&request);
        }
        waited
    }

    /// Lets a model form its batches anew; `None` where there is no such model.
    pub fn offer(&mut self, now: Time, model: ModelId, outlook: &impl Outlook) -> Option<&Offer> {
        let known = self.models.get_mut(model.0 as usize)?.as_mut()?;
        let cluster =
            Cluster { delays: &self.delays, present: self.present, update_lead: self.update_lead, outlook };
        known.offer(now, &cluster, &mut self.offer);
        if self.offer.stale_at == Time::NEVER {
            self.alarms.remove(model.0);
        } else {
            // Never now: an offer made now is good for now.
            self.alarms.set(model.0, self.offer.stale_at.max(now.next()));
        }
        Some(&self.offer)
    }

    /// A model whose offer is out of date.
    pub fn due(&self, now: Time) -> Option<ModelId> {
        self.alarms.peek().filter(|&(at, _)| at <= now).map(|(_, model)| ModelId(model))
    }

    /// When an offer will be out of date although nothing happens before.
    pub fn wake_at(&self) -> Time {
        self.alarms.peek().map_or(Time::NEVER, |(at, _)| at)
    }

    /// Carries out a grant: forms the batch again for this very device, with what has arrived meanwhile. `None` where
    /// nothing can run on it.
    pub fn take(&mut self, now: Time, grant: &Grant) -> Option<Taken<'_>> {
        let Grant { model, class, free_at, .. } = *grant;
        let known = self.models.get_mut(model.0 as usize)?.as_mut()?;
        let mut requests = self.ledger.blank_list();
        let taken = known.take(now, class, free_at, &self.delays, |ticket, priority, rows| {
            requests.push(Request { id: ticket.id, model, deadline: ticket.deadline, priority, rows });
        });
        let Some(candidate) = taken else {
            self.ledger.recycle(requests);
            return None;
        };
        let batch = BatchId(self.next_batch);
        self.next_batch += self.batches_apart;
        let sent = self.ledger.enter(Outstanding { batch, model, class, requests, cancelled: Vec::new() });
        let ready_at = now + self.delays.lead(candidate.size);
        let start_at = ready_at.max(free_at);
        Some(Taken {
            batch,
            rows: candidate.size,
            ready_at,
            start_at,
            finish_at: start_at + candidate.latency,
            latency: candidate.latency,
            requests: &sent.requests,
        })
    }

    /// A batch has finished: its requests are told to `each`, and leave. `false` where it is not here.
    pub fn finish(&mut self, now: Time, batch: BatchId, mut each: impl FnMut(&Request)) -> bool {
        let Some(finished) = self.ledger.strike(batch) else { return false };
        let mut earliest = Time::NEVER;
        for request in &finished.requests {
            earliest = earliest.min(request.deadline);
            each(request);
        }
        if self.learns_margin
            && let Some(Some(model)) = self.models.get_mut(finished.model.0 as usize)
        {
            model.observe(now, finished.class, now > earliest, &self.delays);
        }
        self.ledger.recycle(finished.requests);
        true
    }

    /// A batch was lost with its device: those of its requests that are to run `again` go back into their queue. Those
    /// that are not, or that nobody waits for any more, are told to `cancelled`, those whose model is not here to
    /// `homeless`. Returns the model, which is to make a new offer; `None` where the batch is not here.
    pub fn lose(
        &mut self,
        batch: BatchId,
        mut again: impl FnMut(&Request) -> bool,
        mut cancelled: impl FnMut(&Request),
        homeless: impl FnMut(&Request),
    ) -> Option<ModelId> {
        let mut lost = self.ledger.strike(batch)?;
        let gone = lost.cancelled;
        lost.requests.retain(|request| {
            let runs_again = again(request) && !gone.contains(&request.id);
            if !runs_again {
                cancelled(request);
            }
            runs_again
        });
        match self.model_mut(lost.model) {
            Some(known) => {
                known.stopped_on(lost.class);
                lost.requests.iter().for_each(|request| known.requeue(request));
            }
            None => lost.requests.iter().for_each(homeless),
        }
        self.ledger.recycle(lost.requests);
        Some(lost.model)
    }

    /// Queues a request again that had been started; `false` where its model is not here.
    pub fn requeue(&mut self, request: &Request) -> bool {
        self.model_mut(request.model).map(|known| known.requeue(request)).is_some()
    }

    /// Takes a model out, with all that waits, to be [adopted](Self::adopt) by another shard. What runs, finishes here.
    pub fn give_away(&mut self, model: ModelId) -> Option<Moving> {
        let mut known = self.models.get_mut(model.0 as usize)?.take()?;
        known.forget_running();
        self.alarms.remove(model.0);
        Some(Moving(known))
    }

    /// Takes in a model that another shard gave away; it is to make a new offer.
    pub fn adopt(&mut self, model: ModelId, moving: Moving) {
        let index = model.0 as usize;
        if self.models.len() <= index {
            self.models.resize_with(index + 1, || None);
        }
        self.models[index] = Some(moving.0);
    }

    /// The rows that came for a model in about the last second.
    pub fn lately(&self, model: ModelId) -> u64 {
        self.model(model).map_or(0, Model::lately)
    }

    fn model(&self, model: ModelId) -> Option<&Model> {
        self.models.get(model.0 as usize)?.as_deref()
    }

    fn model_mut(&mut self, model: ModelId) -> Option<&mut Model> {
        self.models.get_mut(model.0 as usize)?.as_deref_mut()
    }
}

#[inline]
fn is_bounded(request: &Request) -> bool {
    request.rows.wrapping_sub(1) <= LARGEST_BATCH && request.deadline <= LAST_DEADLINE
}

#[cold]
fn bounded(request: &Request) -> Request {
    // One row more than any profile describes is too many like any other number.
    let rows = request.rows.clamp(1, LARGEST_BATCH + 1);
    Request { deadline: request.deadline.min(LAST_DEADLINE), rows, ..*request }
}
