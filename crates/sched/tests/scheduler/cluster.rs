//! A small cluster that does what the scheduler says and checks every word of it.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use downbeat_sched::*;

/// A cluster around a scheduler, with its own books.
///
/// It executes starts, fires timers, and asserts after every event what must always hold. Everything it knows, it
/// knows from the actions: it never looks inside the scheduler.
pub(crate) struct TestCluster {
    pub(crate) now: Time,
    scheduler: Scheduler,
    learns_margin: bool,
    delays: Delays,
    models: BTreeMap<ModelId, BTreeMap<ClassId, LatencyProfile>>,
    default_priorities: BTreeMap<ModelId, Priority>,
    gpus: BTreeMap<GpuId, TestGpu>,
    requests: BTreeMap<RequestId, (Request, State)>,
    /// Requests whose clients went away while they ran.
    unwanted: BTreeSet<RequestId>,
    timer: Time,
    next_batch: u64,
    /// Batches that finished after a deadline: what a margin may have been learned from.
    pub(crate) late: u32,
    out: Actions,
    /// Every action ever taken, to compare replays.
    pub(crate) log: Vec<(Time, Action, Vec<RequestId>)>,
}

struct TestGpu {
    class: ClassId,
    leaving: bool,
    /// What it runs takes longer than it has said.
    stalled: bool,
    sent: VecDeque<Sent>,
}

struct Sent {
    batch: BatchId,
    requests: Vec<RequestId>,
    /// When its requests are at the device.
    ready: Time,
    latency: Span,
    finish: Time,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Waiting,
    Running(GpuId),
    Finished,
    Answered(Outcome),
}

/// A batch that was started, in milliseconds, to be compared with one worked out by hand.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Started {
    /// When the scheduler gave it away.
    pub(crate) sent_ms: f64,
    /// When the device was to start it.
    pub(crate) start_ms: f64,
    pub(crate) finish_ms: f64,
    pub(crate) model: u32,
    pub(crate) gpu: u32,
    pub(crate) ids: Vec<u64>,
    pub(crate) rows: u32,
    pub(crate) reason: Release,
}

/// The point `ms` milliseconds after the origin of the clock.
pub(crate) fn at(ms: f64) -> Time {
    Time::ZERO + span(ms)
}

pub(crate) fn span(ms: f64) -> Span {
    Span::from_nanos((ms * 1e6).round() as u64)
}

/// l(b) = alpha * b + beta.
pub(crate) fn linear(alpha_ms: f64, beta_ms: f64, max_batch: u32) -> LatencyProfile {
    LatencyProfile::linear(alpha_ms, beta_ms, max_batch).expect("valid coefficients")
}

impl TestCluster {
    pub(crate) fn new(rule: Rule, delays: Delays) -> Self {
        TestCluster {
            now: Time::ZERO,
            scheduler: Scheduler::new(rule, delays),
            learns_margin: rule.margin,
            delays,
            models: BTreeMap::new(),
            default_priorities: BTreeMap::new(),
            gpus: BTreeMap::new(),
            requests: BTreeMap::new(),
            unwanted: BTreeSet::new(),
            timer: Time::NEVER,
            next_batch: 0,
            late: 0,
            out: Actions::new(),
            log: Vec::new(),
        }
    }

    /// The same cluster, whose models make an offer for every request.
    pub(crate) fn with_all_updates(self) -> Self {
        TestCluster { scheduler: self.scheduler.with_all_updates(), ..self }
    }

    pub(crate) fn add_model(&mut self, model: ModelId, spec: ModelSpec) {
        self.models.insert(model, spec.profiles.iter().cloned().collect());
        self.default_priorities.insert(model, spec.default_priority);
        self.tell(Event::ModelAdded { model, spec });
    }

    pub(crate) fn remove_model(&mut self, model: ModelId) {
        self.models.remove(&model);
        self.tell(Event::ModelRemoved { model });
    }

    pub(crate) fn change_profile(&mut self, model: ModelId, class: ClassId, profile: LatencyProfile) {
        if let Some(profiles) = self.models.get_mut(&model) {
            profiles.insert(class, profile.clone());
        }
        self.tell(Event::ProfileChanged { model, class, profile });
    }

    pub(crate) fn drain_model(&mut self, model: ModelId) {
        self.tell(Event::ModelDraining { model });
    }

    pub(crate) fn follow(&mut self, class: ClassId, rule: Rule) {
        self.tell(Event::RuleChanged { class, rule });
    }

    pub(crate) fn join(&mut self, gpu: GpuId, class: ClassId) {
        let device = self.gpus.entry(gpu).or_insert(TestGpu {
            class,
            leaving: false,
            stalled: false,
            sent: VecDeque::new(),
        });
        device.leaving &= device.class != class;
        self.tell(Event::GpuJoined { gpu, class });
    }

    pub(crate) fn leave(&mut self, gpu: GpuId) {
        if let Some(device) = self.gpus.get_mut(&gpu) {
            device.leaving = true;
        }
        self.forget_if_gone(gpu);
        self.tell(Event::GpuLeft { gpu });
    }

    pub(crate) fn fail(&mut self, gpu: GpuId) {
        let sent = self.gpus.remove(&gpu).into_iter().flat_map(|device| device.sent);
        let lost: Vec<_> = sent.flat_map(|sent| sent.requests).collect();
        lost.iter().for_each(|&id| self.move_to(id, State::Waiting));
        self.tell(Event::GpuFailed { gpu });
        for id in lost.iter().filter(|id| self.unwanted.contains(id)) {
            assert_eq!(self.requests[id].1, State::Answered(Outcome::Cancelled), "nobody waits for {id:?}");
        }
    }

    /// Delays what a device runs, and says nothing.
    pub(crate) fn stall(&mut self, gpu: GpuId, by: Span) {
        let Some(device) = self.gpus.get_mut(&gpu) else { return };
        device.stalled = true;
        let mut sent = device.sent.iter_mut();
        let Some(running) = sent.next() else { return };
        running.finish = running.finish + by;
        let mut free_at = running.finish;
        for next in sent {
            next.finish = next.ready.max(free_at) + next.latency;
            free_at = next.finish;
        }
    }

    /// Delays what a device runs, and says so.
    pub(crate) fn delay(&mut self, gpu: GpuId, by: Span) {
        self.stall(gpu, by);
        let Some(device) = self.gpus.get_mut(&gpu) else { return };
        device.stalled = false;
        let free_at = device.sent.back().map_or(self.now, |sent| sent.finish);
        self.tell(Event::GpuLate { gpu, free_at });
    }

    pub(crate) fn arrive(&mut self, request: Request) {
        self.requests.insert(request.id, (request, State::Waiting));
        self.tell(Event::Arrived(request));
        let profiles = self.models.get(&request.model);
        let largest = profiles.and_then(|profiles| profiles.values().map(LatencyProfile::max_batch).max());
        let too_large = largest.is_some_and(|largest| request.rows > largest);
        let answered_so = self.requests[&request.id].1 == State::Answered(Outcome::TooLarge);
        assert_eq!(answered_so, too_large, "{request:?} for batches of up to {largest:?}");
    }

    /// A request of the default priority, arriving now. Requests are numbered from 0.
    pub(crate) fn request(&mut self, model: u32, deadline_ms: f64) {
        self.request_at_level(model, deadline_ms, 0);
    }

    pub(crate) fn request_at_level(&mut self, model: u32, deadline_ms: f64, level: u8) {
        self.request_of(1, model, deadline_ms, level);
    }

    /// A request of several rows, of the default priority.
    pub(crate) fn request_rows(&mut self, rows: u32, model: u32, deadline_ms: f64) {
        self.request_of(rows, model, deadline_ms, 0);
    }

    pub(crate) fn request_of(&mut self, rows: u32, model: u32, deadline_ms: f64, level: u8) {
        let id = RequestId(self.requests.len() as u64);
        let (model, priority) = (ModelId(model), Priority(level));
        self.arrive(Request { id, model, deadline: at(deadline_ms), priority, rows });
    }

    pub(crate) fn cancel(&mut self, id: RequestId) {
        if let Some(&(request, state)) = self.requests.get(&id) {
            if matches!(state, State::Running(_)) {
                self.unwanted.insert(id);
            }
            self.tell(Event::Cancelled(request));
        }
    }

    /// Lets time pass: batches finish and timers fire on the way.
    pub(crate) fn run_until(&mut self, end: Time) {
        loop {
            let finish =
                self.gpus.iter().filter_map(|(&gpu, device)| Some((device.sent.front()?.finish, gpu))).min();
            match finish {
                Some((at, gpu)) if at <= self.timer && at <= end => {
                    self.now = self.now.max(at);
                    self.finish(gpu);
                }
                _ if self.timer <= end => {
                    self.now = self.now.max(self.timer);
                    self.timer = Time::NEVER;
                    self.tell(Event::Timer);
                }
                _ => break,
            }
        }
        self.now = self.now.max(end);
    }

    /// Lets all that runs finish and all that waits expire, then asserts that every request has left.
    pub(crate) fn drain(&mut self) {
        self.run_until(self.now + Span::from_millis(3_600_000));
        for (id, (_, state)) in &self.requests {
            assert!(!matches!(state, State::Waiting | State::Running(_)), "{id:?} never left: {state:?}");
        }
    }

    /// How many requests finished; all of them in time, unless a device was delayed.
    pub(crate) fn finished(&self) -> usize {
        self.requests.values().filter(|(_, state)| *state == State::Finished).count()
    }

    pub(crate) fn needed(&self, class: ClassId) -> f64 {
        self.scheduler.needed(class)
    }

    pub(crate) fn state(&self, id: u64) -> State {
        self.requests[&RequestId(id)].1
    }

    /// Every batch started so far, in order.
    pub(crate) fn started(&self) -> Vec<Started> {
        let started = |(now, action, requests): &(Time, Action, Vec<RequestId>)| {
            let Action::Start(start) = action else { return None };
            Some(Started {
                sent_ms: in_ms(*now),
                start_ms: in_ms(start.start_at),
                finish_ms: in_ms(start.finish_at),
                model: start.model.0,
                gpu: start.gpu.0,
                ids: requests.iter().map(|id| id.0).collect(),
                rows: start.rows,
                reason: start.reason,
            })
        };
        self.log.iter().filter_map(started).collect()
    }

    /// When each batch started, on which device, and with which requests.
    pub(crate) fn batches(&self) -> Vec<(f64, u32, Vec<u64>)> {
        self.started().into_iter().map(|batch| (batch.start_ms, batch.gpu, batch.ids)).collect()
    }

    fn finish(&mut self, gpu: GpuId) {
        let device = self.gpus.get_mut(&gpu).expect("the device runs something");
        let sent = device.sent.pop_front().expect("the device runs something");
        device.stalled = false;
        let is_late = |id: &RequestId| self.requests[id].0.deadline < self.now;
        self.late += u32::from(sent.requests.iter().any(is_late));
        for id in sent.requests {
            self.move_to(id, State::Finished);
        }
        self.forget_if_gone(gpu);
        self.tell(Event::BatchFinished { gpu, batch: sent.batch });
    }

    fn forget_if_gone(&mut self, gpu: GpuId) {
        if self.gpus.get(&gpu).is_some_and(|device| device.leaving && device.sent.is_empty()) {
            self.gpus.remove(&gpu);
        }
    }

    fn move_to(&mut self, id: RequestId, to: State) {
        let (_, state) = self.requests.get_mut(&id).expect("only known requests are spoken of");
        match (*state, to) {
            (State::Waiting, State::Running(_) | State::Answered(_))
            | (State::Running(_), State::Finished | State::Waiting) => *state = to,
            (from, to) => panic!("{id:?} went from {from:?} to {to:?}"),
        }
    }

    /// Tells the scheduler anything, true or not, and does what it answers.
    pub(crate) fn tell(&mut self, event: Event) {
        let mut out = std::mem::take(&mut self.out);
        self.scheduler.handle(self.now, event, &mut out);
        for action in out.list() {
            let mut requests = Vec::new();
            match action {
                Action::Start(start) => {
                    requests = out.requests(start).to_vec();
                    self.check_start(start, &requests);
                }
                Action::Answer { request, outcome, .. } => self.move_to(*request, State::Answered(*outcome)),
                Action::ArmTimer { at } => self.timer = *at,
            }
            self.log.push((self.now, action.clone(), requests));
        }
        out.clear();
        self.out = out;
        self.check_nothing_hopeless_waits();
        for model in self.models.keys() {
            let waiting =
                |(request, state): &(Request, State)| request.model == *model && *state == State::Waiting;
            assert_eq!(self.scheduler.waiting(*model), self.requests.values().filter(|r| waiting(r)).count());
        }
    }

    fn level(&self, request: &Request) -> Priority {
        if request.priority == Priority(0) {
            self.default_priorities[&request.model]
        } else {
            request.priority
        }
    }

    fn check_start(&mut self, start: &Start, ids: &[RequestId]) {
        assert_eq!(start.batch, BatchId(self.next_batch), "batches are counted");
        self.next_batch += 1;
        let device = self.gpus.get(&start.gpu).expect("nothing starts on a device that is gone");
        assert!(!device.leaving, "nothing starts on a device that leaves");
        assert!(device.sent.len() < 2, "a device is sent at most one batch ahead");
        let size = ids.iter().map(|id| self.rows(id)).sum();
        assert_eq!(start.rows, size);
        let profile = self.models[&start.model].get(&device.class).expect("only where the model is deployed");
        assert!((1..=profile.max_batch()).contains(&size), "a batch of {size}");
        assert!(
            start.start_at >= self.now + self.delays.lead(size),
            "a batch needs time to get to its device"
        );
        assert_eq!(start.finish_at, start.start_at + profile.latency(size));
        if let Some(previous) = device.sent.back() {
            assert!(self.delays.lead(size) > Span::ZERO, "sending ahead gains nothing here");
            assert!(
                device.stalled || start.start_at >= previous.finish,
                "the device runs something else until {:?}",
                previous.finish
            );
        }
        let mut before = None;
        for id in ids {
            let (request, _) = self.requests[id];
            assert!(!self.unwanted.contains(id), "nobody waits for {id:?}");
            assert_eq!(request.model, start.model);
            assert!(start.finish_at <= request.deadline, "{id:?} would be late from the start");
            let place = Some((self.level(&request), request.deadline, request.id));
            assert!(before < place, "a batch is in order of priority and deadline");
            before = place;
        }
        // A stalled device begins later than the scheduler could know.
        let begin = device.sent.back().map_or(start.start_at, |sent| start.start_at.max(sent.finish));
        let ready = self.now + self.delays.lead(size);
        let latency = profile.latency(size);
        let sent =
            Sent { batch: start.batch, requests: ids.to_vec(), ready, latency, finish: begin + latency };
        self.gpus.get_mut(&start.gpu).expect("found above").sent.push_back(sent);
        for &id in ids {
            self.move_to(id, State::Running(start.gpu));
        }
        self.check_overtaken(start, ids);
    }

    /// The longest that a batch may be expected to take.
    fn stretch(&self, latency: Span) -> Span {
        let margin = if self.learns_margin { 0.05 * f64::from(self.late) } else { 0.0 };
        latency + Span::from_millis_f64(margin * latency.as_millis_f64())
    }

    fn rows(&self, id: &RequestId) -> u32 {
        self.requests[id].0.rows.max(1)
    }

    /// A request that is left waiting while a later one of its model and priority starts must be one that this class of
    /// device can no longer serve: in this batch, where the model has no other class, and what is given up leaves at
    /// once; in its largest one, where what is given up here goes on waiting for another class, or requests have
    /// several rows, and what a head is given up for need not fit together.
    fn check_overtaken(&self, start: &Start, ids: &[RequestId]) {
        let class = self.gpus[&start.gpu].class;
        let profiles = &self.models[&start.model];
        let profile = &profiles[&class];
        let largest = profile.max_batch();
        let lost_before = if profiles.len() > 1 || self.requests.values().any(|(request, _)| request.rows > 1)
        {
            start.start_at.max(self.now + self.delays.lead(largest)) + self.stretch(profile.latency(largest))
        } else {
            start.start_at + self.stretch(profile.latency(start.rows))
        };
        let started: Vec<Request> = ids.iter().map(|id| self.requests[id].0).collect();
        for (waiting, _) in self
            .requests
            .values()
            .filter(|(request, state)| request.model == start.model && *state == State::Waiting)
        {
            let overtaken = started.iter().any(|later| {
                self.level(later) == self.level(waiting)
                    && (later.deadline, later.id) > (waiting.deadline, waiting.id)
            });
            let lost = waiting.rows > largest || waiting.deadline < lost_before;
            assert!(!overtaken || lost, "{waiting:?} was overtaken");
        }
    }

    /// What waits can still finish somewhere, were it sent alone right now: to a device of a class that is there, or of
    /// any if none is. One of several rows may wait in vain until it is the head.
    fn check_nothing_hopeless_waits(&self) {
        let mut heads = BTreeMap::new();
        for (request, _) in self.requests.values().filter(|(_, state)| *state == State::Waiting) {
            if self.models.contains_key(&request.model) {
                let head = heads.entry((request.model, self.level(request))).or_insert(request);
                if (request.deadline, request.id) < (head.deadline, head.id) {
                    *head = request;
                }
            }
        }
        let present: BTreeSet<ClassId> =
            self.gpus.values().filter(|device| !device.leaving).map(|device| device.class).collect();
        for (request, _) in self.requests.values().filter(|(_, state)| *state == State::Waiting) {
            let Some(profiles) = self.models.get(&request.model) else { continue };
            let is_head = heads[&(request.model, self.level(request))].id == request.id;
            let rows = if is_head { request.rows.max(1) } else { 1 };
            let none_present = !profiles.keys().any(|class| present.contains(class));
            let fastest = profiles
                .iter()
                .filter(|(class, profile)| {
                    (none_present || present.contains(class)) && profile.max_batch() >= rows
                })
                .map(|(_, profile)| profile.latency(rows))
                .min();
            let finish = fastest.map_or(Time::NEVER, |fastest| self.now + self.delays.lead(rows) + fastest);
            assert!(
                finish <= request.deadline,
                "{request:?} is kept waiting although it is lost at {:?}",
                self.now
            );
        }
    }
}

fn in_ms(time: Time) -> f64 {
    time.since_origin().as_millis_f64()
}
