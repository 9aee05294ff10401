//! One model: its queues, and the candidates it offers to the matchmaker.

use downbeat_profile::{LatencyProfile, Span};

use crate::candidate::{Candidate, Finish};
use crate::deployment::Deployment;
use crate::lane::Lane;
use crate::queue::{Entry, Ticket};
use crate::rate::ArrivalRate;
use crate::{
    ClassId, ClassSet, Delays, ModelSpec, Need, Outcome, Outlook, Priority, Request, RequestId, Time,
};

/// The waiting requests of one model, and the rule by which its next batch is formed.
///
/// Knows nothing of devices or of other models; the matchmaker knows nothing of requests. The two talk in
/// [`Candidate`]s and grants, so that they can live on different threads.
#[derive(Clone, Debug)]
pub(crate) struct Model {
    /// The slowest class first, so that fast devices stay free for what needs them.
    deployments: Vec<Deployment>,
    /// The highest priority first; hardly ever more than one.
    lanes: Vec<Lane>,
    default_priority: Priority,
    queue_limit: usize,
    max_wait: Span,
    /// The most rows that any class takes; of any number where the model is deployed on none.
    largest: u32,
    arrivals: ArrivalRate,
    /// Running share of requests that were lost, among those that left.
    loss: f64,
    silent: SilentGrowth,
    /// No more requests come.
    drains: bool,
}

/// Which requests may join what was offered without a new offer.
#[derive(Clone, Copy, Debug, Default)]
struct SilentGrowth {
    /// Those due no earlier than the head,
    from: Time,
    /// while fewer rows wait than this,
    rows: u32,
    /// before this.
    until: Time,
}

/// What a model is told of the cluster when it makes an offer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cluster<'a, O> {
    pub(crate) delays: &'a Delays,
    /// The classes of which there is a device.
    pub(crate) present: ClassSet,
    /// How long before a window opens the matchmaker must know; `None` where it must know everything at once.
    pub(crate) update_lead: Option<Span>,
    pub(crate) outlook: &'a O,
}

/// How much one request counts in the share of those lost: it is told from the last few hundred.
const LOSS_WEIGHT: f64 = 1.0 / 256.0;

/// How soon a model without requests plans again, until it needs nothing any more.
const REPLAN_IDLE: Span = Span::from_millis(250);

/// What a model offers at one instant.
#[derive(Clone, Debug, Default)]
pub struct Offer {
    /// One for each class on which something can run, the slowest class first.
    pub candidates: Vec<Candidate>,
    /// When the offer is out of date even if nothing happens.
    pub stale_at: Time,
    /// Requests that can no longer run anywhere.
    pub expired: Vec<RequestId>,
    /// The devices of each class that the model's traffic needs, for all classes on which it is deployed.
    pub needs: Vec<(ClassId, Need)>,
}

impl Model {
    pub(crate) fn new(spec: ModelSpec) -> Self {
        let mut model = Model {
            deployments: Vec::new(),
            lanes: Vec::new(),
            default_priority: Priority(1),
            queue_limit: 0,
            max_wait: Span::MAX,
            largest: u32::MAX,
            arrivals: ArrivalRate::new(),
            loss: 0.0,
            silent: SilentGrowth::default(),
            drains: false,
        };
        model.respecify(spec);
        model
    }

    /// Takes on a new specification; what waits goes on waiting.
    pub(crate) fn respecify(&mut self, spec: ModelSpec) {
        self.deployments.clear();
        self.largest = u32::MAX;
        for (class, profile) in spec.profiles {
            self.set_profile(class, profile);
        }
        let classes = self.deployments.len();
        self.lanes.iter_mut().for_each(|lane| lane.reset_views(classes));
        self.default_priority = spec.default_priority;
        self.queue_limit = spec.queue_limit;
        self.max_wait = spec.max_wait;
        self.drains = false;
    }

    /// Learns that no more requests come.
    pub(crate) fn drain(&mut self) {
        self.drains = true;
    }

    /// Deploys the model on a class, or corrects its profile there.
    pub(crate) fn set_profile(&mut self, class: ClassId, profile: LatencyProfile) {
        self.deployments.retain(|deployment| deployment.class != class);
        let slower = |other: &Deployment| other.profile.latency(1) > profile.latency(1);
        let at = self.deployments.partition_point(slower);
        self.deployments.insert(at, Deployment::new(class, profile));
        let sizes = self.deployments.iter().map(|deployment| deployment.profile.max_batch());
        self.largest = sizes.max().unwrap_or(u32::MAX);
        let classes = self.deployments.len();
        self.deployments.iter_mut().for_each(|deployment| deployment.set_share(1.0 / classes as f64));
        self.lanes.iter_mut().for_each(|lane| lane.reset_views(classes));
    }

    /// Whether the model is deployed on any of these classes.
    pub(crate) fn is_deployed_on(&self, classes: ClassSet) -> bool {
        self.deployments.iter().any(|deployment| classes.contains(deployment.class))
    }

    /// Queues a request that has just arrived. `false` where it joins what was offered and nobody needs to know yet.
    #[inline]
    pub(crate) fn arrive(&mut self, now: Time, request: &Request) -> Result<bool, Outcome> {
        // Where the model is deployed on no class, nobody can tell.
        if request.rows > self.largest {
            return Err(Outcome::TooLarge);
        }
        let waiting = self.waiting();
        if waiting >= self.queue_limit {
            return Err(Outcome::Overloaded);
        }
        let time = request.deadline.since(now);
        self.arrivals.count(now, time, request.rows);
        self.queue(request, time - self.max_wait);
        let SilentGrowth { from, rows, until } = self.silent;
        let joins = waiting < rows as usize && request.rows == 1 && self.lanes.len() == 1;
        Ok(!(joins && request.deadline >= from && now < until))
    }

    /// Queues a request again that had been started on a device that failed. Where waits are bounded, it has waited.
    pub(crate) fn requeue(&mut self, request: &Request) {
        self.queue(request, if self.max_wait == Span::MAX { Span::ZERO } else { Span::MAX });
    }

    #[inline(always)]
    fn queue(&mut self, request: &Request, leeway: Span) {
        let priority = self.level(request.priority);
        let ticket = Ticket { deadline: request.deadline, id: request.id };
        let leeway_us = (leeway.as_nanos() / 1_000).min(u32::MAX.into()) as u32;
        let entry = Entry { ticket, rows: request.rows, leeway_us };
        // Hardly ever is there more than one.
        if let [lane] = &mut self.lanes[..]
            && lane.priority == priority
        {
            lane.insert(entry);
            return;
        }
        self.queue_among(priority, entry);
    }

    #[inline(never)]
    fn queue_among(&mut self, priority: Priority, entry: Entry) {
        let at = self.lanes.partition_point(|lane| lane.priority < priority);
        if self.lanes.get(at).is_none_or(|lane| lane.priority != priority) {
            self.lanes.insert(at, Lane::new(priority, self.deployments.len()));
        }
        self.lanes[at].insert(entry);
    }

    /// Takes a waiting request out of its queue; `false` where it does not wait.
    pub(crate) fn cancel(&mut self, request: &Request) -> bool {
        // In every lane: the default priority may have been another one when the request arrived.
        let ticket = Ticket { deadline: request.deadline, id: request.id };
        self.lanes.iter_mut().any(|lane| lane.remove(ticket).is_some())
    }

    #[inline]
    pub(crate) fn waiting(&self) -> usize {
        if let [lane] = &self.lanes[..] { lane.len() } else { self.lanes.iter().map(Lane::len).sum() }
    }

    /// The rows that came in about the last second.
    pub(crate) fn lately(&self) -> u64 {
        self.arrivals.lately()
    }

    pub(crate) fn waiting_requests(&self) -> impl Iterator<Item = RequestId> + '_ {
        self.lanes.iter().flat_map(Lane::iter).map(|entry| entry.ticket.id)
    }

    /// Forms the next batch for every class anew, and drops what can no longer run on any of those that are present.
    #[inline]
    pub(crate) fn offer(&mut self, now: Time, cluster: &Cluster<'_, impl Outlook>, offer: &mut Offer) {
        offer.candidates.clear();
        offer.expired.clear();
        offer.needs.clear();
        offer.stale_at = Time::NEVER;
        self.silent.rows = 0;
        if !self.offer_whole(now, cluster, offer) {
            self.offer_any(now, cluster, offer);
        }
    }

    /// The same for all other cases.
    #[inline(never)]
    fn offer_any(&mut self, now: Time, cluster: &Cluster<'_, impl Outlook>, offer: &mut Offer) {
        let Cluster { delays, present, outlook, .. } = *cluster;
        let mut none_present = true;
        // Of the lowest that waits: what is planned for all must not be at the cost of those who can least afford it.
        let lowest = self.lanes.iter().rev().find(|lane| lane.len() > 0).map(|lane| lane.priority);
        let level = lowest.unwrap_or(self.default_priority);
        for deployment in &mut self.deployments {
            deployment.plan(now, level, &mut self.arrivals, delays, outlook);
            offer.needs.push((deployment.class, deployment.need));
            // What is said to be needed must be taken back when the traffic has stopped, and nothing else happens.
            if deployment.need != Need::default() {
                offer.stale_at = offer.stale_at.min(now + REPLAN_IDLE);
            }
            none_present &= !present.contains(deployment.class);
        }
        if self.waiting() == 0 {
            // Nothing has come for a while: what an empty lane remembers says nothing about a newcomer.
            if offer.stale_at == Time::NEVER {
                self.lanes = Vec::new();
            }
            return;
        }
        // Without any device a request waits for one to join, until it would be too late even then.
        let counts = |class| none_present || present.contains(class);
        for index in 0..self.deployments.len() {
            let class = self.deployments[index].class;
            if !counts(class) {
                continue;
            }
            let candidate = self.compose(index, now, Time::ZERO, delays, &mut offer.stale_at);
            if let Some(mut candidate) = candidate
                && present.contains(class)
            {
                candidate.loss_permille = (1_000.0 * self.loss) as u16;
                offer.candidates.push(candidate);
            }
        }
        let Model { deployments, lanes, loss, .. } = self;
        for lane in lanes {
            while let Some(lost) = lane.take_lost(|index| counts(deployments[index].class)) {
                *loss += LOSS_WEIGHT * (1.0 - *loss);
                offer.expired.push(lost.id);
            }
        }
    }

    /// The same for the most common case: one class, one priority, and time for all that waits. `false` where that is
    /// not so; nothing but the plan is changed then.
    #[inline]
    fn offer_whole(&mut self, now: Time, cluster: &Cluster<'_, impl Outlook>, offer: &mut Offer) -> bool {
        let Cluster { delays, present, update_lead, outlook } = *cluster;
        let ([deployment], [lane], false) = (&mut self.deployments[..], &mut self.lanes[..], self.drains)
        else {
            return false;
        };
        let Some(whole) = lane.whole().filter(|_| present.contains(deployment.class)) else { return false };
        deployment.plan(now, lane.priority, &mut self.arrivals, delays, outlook);
        let Some((mut candidate, head_lost_after)) = deployment.candidate_of(&whole, now, delays) else {
            return false;
        };
        candidate.frontrun = candidate.frontrun.min(whole.held_until);
        candidate.loss_permille = (1_000.0 * self.loss) as u16;
        offer.stale_at = head_lost_after.min(candidate.latest).next();
        if deployment.need != Need::default() {
            offer.stale_at = offer.stale_at.min(now + REPLAN_IDLE);
        }
        offer.needs.push((deployment.class, deployment.need));
        offer.candidates.push(candidate);
        if let Some(update_lead) = update_lead
            && whole.held_until == whole.deadline
            && let Some((rows, until)) = deployment.silent_growth(&whole, now, delays, update_lead, outlook)
        {
            self.silent = SilentGrowth { from: whole.deadline, rows, until };
            offer.stale_at = offer.stale_at.min(until);
        }
        true
    }

    /// Takes out the best batch for a device of `class` that is free at `free_at`; `None` where nothing can run there.
    pub(crate) fn take(
        &mut self,
        now: Time,
        class: ClassId,
        free_at: Time,
        delays: &Delays,
        mut each: impl FnMut(Ticket, Priority, u32),
    ) -> Option<Candidate> {
        // What was offered is withdrawn with the grant: whoever comes next joins nothing.
        self.silent.rows = 0;
        let index = self.deployments.iter().position(|deployment| deployment.class == class)?;
        let candidate = match self.whole_on_idle(now, free_at, delays) {
            Some(candidate) => candidate,
            None => self.compose(index, now, free_at, delays, &mut Time::NEVER.clone())?,
        };
        self.deployments[index].running += 1;
        if self.deployments.len() > 1 {
            for (other, deployment) in self.deployments.iter_mut().enumerate() {
                deployment.divide(other == index);
            }
        }
        let mut taken = 0;
        for lane in &mut self.lanes {
            let priority = lane.priority;
            lane.take_share(index, |ticket, rows| {
                taken += 1;
                each(ticket, priority, rows);
            });
        }
        if self.loss > 0.0 {
            (0..taken).for_each(|_| self.loss -= LOSS_WEIGHT * self.loss);
        }
        Some(candidate)
    }

    /// What [`compose`](Self::compose) gives in the most common case: one class, one priority, a device that is idle,
    /// and time for all that waits.
    fn whole_on_idle(&mut self, now: Time, free_at: Time, delays: &Delays) -> Option<Candidate> {
        let ([deployment], [lane]) = (&self.deployments[..], &mut self.lanes[..]) else { return None };
        let whole = lane.whole().filter(|_| free_at <= now)?;
        let (candidate, _) = deployment.candidate_of(&whole, now, delays)?;
        lane.share = candidate.size;
        Some(candidate)
    }

    /// Composes a batch over the priorities: each lane forms its own, the highest non-empty one leads, and lower ones
    /// join while that makes nobody above them late and there is nobody above them who would have to be split to join.
    /// Notes in each lane how many rows it contributes.
    fn compose(
        &mut self,
        index: usize,
        now: Time,
        free_at: Time,
        delays: &Delays,
        stale_at: &mut Time,
    ) -> Option<Candidate> {
        let Model { deployments, lanes, .. } = self;
        let deployment = &deployments[index];
        let Deployment { class, profile, margin, target, .. } = deployment;
        let only_lane = lanes.len() == 1;
        let finish = Finish { profile, margin: *margin, delays, now, free_at };
        let mut composed: Option<Candidate> = None;
        let (mut deadline, mut held_until) = (Time::NEVER, Time::NEVER);
        let mut blocked = false;
        for at in 0..lanes.len() {
            lanes[at].share = 0;
            let Some(mut batch) = lanes[at].form(index, &finish, *target) else { continue };
            if only_lane {
                // A request is never split: where the first has more rows than that, it runs with all that can.
                let pays = lanes[at].fit(index, deployment.size_that_pays(batch.rows));
                batch.rows = if pays > 0 { pays } else { batch.rows };
            }
            *stale_at = (*stale_at).min(batch.head_lost_after.next());
            let priority = lanes[at].priority;
            let candidate = |size, reach, deadline, priority| {
                Candidate::new(*class, &finish, size, reach, deadline, priority)
            };
            let alone = candidate(batch.rows, batch.reach, batch.deadline, priority);
            let Some(lead) = composed else {
                lanes[at].share = batch.rows;
                (deadline, held_until, blocked) = (batch.deadline, batch.held_until, batch.blocked);
                composed = Some(alone);
                continue;
            };
            let alive = lanes[at].alive(index);
            let reach = finish.largest_by(deadline.min(batch.deadline), lead.size.saturating_add(alive));
            let room = reach.saturating_sub(lead.size);
            let joining = if blocked { 0 } else { lanes[at].fit(index, room) };
            if joining > 0 {
                lanes[at].share = joining;
                deadline = deadline.min(batch.deadline);
                held_until = held_until.min(batch.held_until);
                blocked = joining < alive;
                composed = Some(candidate(lead.size + joining, reach, deadline, lead.priority));
            } else if alone.latest < lead.frontrun {
                // It cannot join what goes before it, and would be lost while that still waits for more: it goes alone.
                lanes[..at].iter_mut().for_each(|lane| lane.share = 0);
                lanes[at].share = batch.rows;
                (deadline, held_until, blocked) = (batch.deadline, batch.held_until, batch.blocked);
                composed = Some(alone);
            } else {
                // Its head has too many rows, and not too little time, if there is any room at all.
                blocked |= room > 0;
            }
        }
        let mut candidate = composed?;
        candidate.drains = self.drains;
        let waits = !candidate.full && !candidate.drains;
        candidate.frontrun = if waits { candidate.frontrun.min(held_until) } else { Time::ZERO };
        *stale_at = (*stale_at).min(candidate.latest.next());
        Some(candidate)
    }

    /// Learns that a batch finished, and whether too late for one of its requests.
    pub(crate) fn observe(&mut self, now: Time, class: ClassId, late: bool, delays: &Delays) {
        if let Some(deployment) = self.stopped_on(class) {
            deployment.observe(now, late, delays);
        }
    }

    /// Learns that a batch runs no longer on a class.
    pub(crate) fn stopped_on(&mut self, class: ClassId) -> Option<&mut Deployment> {
        let deployment = self.deployments.iter_mut().find(|deployment| deployment.class == class)?;
        deployment.running = deployment.running.saturating_sub(1);
        Some(deployment)
    }

    /// Forgets the batches that run: another shard will learn of them.
    pub(crate) fn forget_running(&mut self) {
        self.deployments.iter_mut().for_each(|deployment| deployment.running = 0);
    }

    fn level(&self, priority: Priority) -> Priority {
        if priority == Priority(0) { self.default_priority } else { priority }
    }
}
