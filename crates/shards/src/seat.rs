//! A shard's place in one domain: its models there, and the way to the matchmaker.

use downbeat_sched::{
    ClassSet, Grant, LatencyProfile, ModelId, ModelSpec, Moving, Outcome, Request, Sent, Shard, Span, Taken,
    Time,
};

use crate::bell::Bell;
use crate::host::{DomainId, Finished, Host, Launch};
use crate::message::{Dirty, Order, Report};
use crate::posting::Cells;
use crate::pressure_table::{CachedPressure, PressureTable};
use crate::ring::{Consumer, Producer};
use crate::sync::Arc;

/// Models looked at in one turn after a class has got its first device or lost its last: there may be thousands, and
/// others must not wait for all of them.
const SWEEP: u32 = 64;

/// A shard's place in one domain.
pub(crate) struct Seat {
    pub(crate) domain: DomainId,
    /// The number of the shard's thread.
    index: u16,
    shard: Shard,
    pressure_cache: CachedPressure,
    wires: Wires,
    /// Models that are to make a new offer, each once.
    touched: Vec<ModelId>,
    is_touched: Vec<bool>,
    /// Which models have yet to hear of which classes.
    sweep: Option<(u32, ClassSet)>,
    /// Whether the matchmaker must be woken.
    news: bool,
    /// How long after its time an offer is made anew: a grant may be on its way for a request that would be given up.
    slack: Span,
}

/// What connects a seat to its matchmaker.
pub(crate) struct Wires {
    pub(crate) orders: Consumer<Order>,
    pub(crate) reports: Producer<Report>,
    pub(crate) dirty: Producer<Dirty>,
    pub(crate) bell: Arc<Bell>,
    pub(crate) table: Arc<PressureTable>,
    pub(crate) cells: Arc<Cells>,
}

impl Seat {
    pub(crate) fn new(domain: DomainId, index: u16, shard: Shard, wires: Wires, slack: Span) -> Seat {
        let is_touched = vec![false; wires.cells.len() as usize];
        Seat {
            domain,
            index,
            shard,
            pressure_cache: CachedPressure::default(),
            wires,
            touched: Vec::new(),
            is_touched,
            sweep: None,
            news: false,
            slack,
        }
    }

    pub(crate) fn add(&mut self, model: ModelId, spec: ModelSpec) {
        if self.shard.add(model, spec) {
            self.wires.cells.of(model).set_home(Some(self.index));
            self.touch(model);
        }
    }

    pub(crate) fn remove<H: Host>(&mut self, now: Time, model: ModelId, host: &mut H) {
        if self.shard.remove(model, |request| host.answer(now, model, request, Outcome::Removed)) {
            let cell = self.wires.cells.of(model);
            let listed = cell.post_gone(self.index);
            cell.set_home(None);
            self.list(listed, model);
        }
    }

    pub(crate) fn drain(&mut self, model: ModelId) {
        if self.shard.drain(model) {
            self.touch(model);
        }
    }

    pub(crate) fn set_profile(
        &mut self,
        model: ModelId,
        class: downbeat_sched::ClassId,
        profile: LatencyProfile,
    ) {
        if self.shard.set_profile(model, class, profile) {
            self.touch(model);
        }
    }

    pub(crate) fn give_away(&mut self, model: ModelId) -> Option<Moving> {
        self.shard.give_away(model)
    }

    pub(crate) fn adopt(&mut self, model: ModelId, moving: Moving) {
        self.shard.adopt(model, moving);
        self.wires.cells.of(model).set_home(Some(self.index));
        self.touch(model);
    }

    pub(crate) fn has_orders(&self) -> bool {
        !self.wires.orders.is_empty()
    }

    /// Whether the next order is there, and what it is.
    pub(crate) fn next_order(&mut self) -> Option<Order> {
        self.wires.orders.pop()
    }

    #[inline]
    pub(crate) fn arrive(&mut self, now: Time, request: &Request) -> Result<(), Outcome> {
        if self.shard.arrive(now, request)? {
            self.touch(request.model);
        }
        Ok(())
    }

    /// `true` where the request waited, and leaves.
    pub(crate) fn cancel(&mut self, request: &Request) -> bool {
        let waited = self.shard.cancel(request);
        if waited {
            self.touch(request.model);
        }
        waited
    }

    pub(crate) fn requeue(&mut self, request: &Request) -> bool {
        let known = self.shard.requeue(request);
        if known {
            self.touch(request.model);
        }
        known
    }

    /// Carries out a grant. The model has seen it then, whatever comes of it.
    /// It counts as carried out `at` that time, when it was decided.
    pub(crate) fn carry_out<H: Host>(&mut self, now: Time, at: Time, grant: &Grant, host: &mut H) {
        let Grant { model, gpu, life, class, reason, .. } = *grant;
        let report = match self.shard.take(at, grant) {
            Some(Taken { batch, rows, ready_at, start_at, finish_at, latency, requests }) => {
                let domain = self.domain;
                let launch = Launch {
                    domain,
                    batch,
                    model,
                    gpu,
                    class,
                    ready_at,
                    start_at,
                    finish_at,
                    latency,
                    rows,
                    reason,
                    decided_at: at,
                };
                host.start(now, &launch, requests);
                Report::Sent { gpu, life, sent: Sent { batch, ready_at, latency }, finish_at }
            }
            None => Report::Declined { gpu, life },
        };
        self.report(report);
        self.wires.cells.of(model).see_grant();
        // Where nothing is left, the grant has withdrawn what was posted, and the next offer tells that it was seen.
        if self.shard.waiting(model) > 0 {
            self.touch(model);
        }
    }

    /// A batch was lost; requests whose model is not here any more are told to `homeless`.
    pub(crate) fn lose<H: Host>(
        &mut self,
        now: Time,
        batch: downbeat_sched::BatchId,
        host: &mut H,
        homeless: impl FnMut(&Request),
    ) {
        let mut given_up = Vec::new();
        let again = |request: &Request| host.lost(now, request);
        let lost = self.shard.lose(batch, again, |request| given_up.push(*request), homeless);
        for request in given_up {
            host.answer(now, request.model, request.id, Outcome::Cancelled);
        }
        if let Some(model) = lost {
            self.touch(model);
        }
    }

    pub(crate) fn finish<H: Host>(&mut self, now: Time, finished: &Finished, host: &mut H) {
        let Finished { gpu, batch, at, .. } = *finished;
        let at = at.min(now);
        if self.shard.finish(at, batch, |request| host.finish(now, request)) {
            self.report(Report::Finished { gpu, batch, at });
        }
    }

    /// Makes all offers that are due, and wakes the matchmaker if it is told anything. `true` where there was anything
    /// to do.
    #[inline]
    pub(crate) fn settle<H: Host>(&mut self, now: Time, host: &mut H) -> bool {
        let quiet = self.touched.is_empty() && !self.news && self.wake_at() > now;
        if quiet && !self.pressure_cache.is_stale(now, &self.wires.table) {
            return false;
        }
        self.make_offers(now, host)
    }

    #[inline(never)]
    fn make_offers<H: Host>(&mut self, now: Time, host: &mut H) -> bool {
        if self.pressure_cache.is_stale(now, &self.wires.table) {
            self.pressure_cache.read(now, &self.wires.table);
            self.notice_classes();
        }
        if self.sweep.is_some() {
            self.sweep();
        }
        let mut worked = !self.touched.is_empty();
        while let Some(model) = self.touched.pop() {
            self.is_touched[model.0 as usize] = false;
            self.offer(now, model, host);
        }
        while let Some(model) = self.shard.due(now - self.slack) {
            worked = true;
            self.offer(now, model, host);
        }
        if self.news {
            self.news = false;
            self.wires.bell.ring();
        }
        worked
    }

    pub(crate) fn wake_at(&self) -> Time {
        if self.sweep.is_some() { Time::ZERO } else { self.shard.wake_at() + self.slack }
    }

    /// Looks whether a class has got its first device or lost its last: then models have to know, some in each turn.
    fn notice_classes(&mut self) {
        let changed = self.shard.set_present(self.pressure_cache.present());
        if changed.bits() != 0 {
            let so_far = self.sweep.map_or(ClassSet::default(), |(_, classes)| classes);
            // What changed before is told again from the beginning, which harms nobody.
            self.sweep = Some((0, ClassSet::from_bits(so_far.bits() | changed.bits())));
        }
    }

    /// Lets some more models make new offers.
    fn sweep(&mut self) {
        let Some((from, classes)) = self.sweep else { return };
        let end = self.shard.models_end().min(from + SWEEP);
        for model in (from..end).map(ModelId) {
            if self.shard.is_deployed_on(model, classes) {
                self.touch(model);
            }
        }
        self.sweep = (end < self.shard.models_end()).then_some((end, classes));
    }

    #[inline]
    fn touch(&mut self, model: ModelId) {
        let touched = &mut self.is_touched[model.0 as usize];
        if !*touched {
            *touched = true;
            self.touched.push(model);
        }
    }

    fn offer<H: Host>(&mut self, now: Time, model: ModelId, host: &mut H) {
        let lately = self.shard.lately(model);
        let Some(offer) = self.shard.offer(now - self.slack, model, &self.pressure_cache) else { return };
        for &request in &offer.expired {
            host.answer(now, model, request, Outcome::Expired);
        }
        let listed = self.wires.cells.of(model).post(self.index, offer, lately);
        self.list(listed, model);
    }

    #[inline]
    fn list(&mut self, listed: bool, model: ModelId) {
        if listed {
            // There is room: the list holds every model, and each is on it at most once.
            self.wires.dirty.push(Dirty(model));
            self.news = true;
        }
    }

    /// Reports to the matchmaker, which never waits for a shard: so room for it will be soon.
    #[inline]
    fn report(&mut self, report: Report) {
        while !self.wires.reports.push(report) {
            self.wires.bell.ring();
            std::thread::yield_now();
        }
        self.news = true;
    }
}
