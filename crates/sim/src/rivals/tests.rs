//! A tiny cluster to drive the rivals with, and what must hold of every one of them.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use downbeat_sched::{
    Action, BatchId, ClassId, Delays, Event, GpuId, LatencyProfile, ModelId, Priority, Request, RequestId,
    Span, Start, Time,
};
use proptest::prelude::*;

use super::*;
use crate::{Cluster, ModelFacts, Outbox, Policy};

/// A batch that ran to its end, or was preempted.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Ran {
    pub(super) gpu: u32,
    pub(super) model: u32,
    pub(super) requests: Vec<u64>,
    pub(super) begin_ms: f64,
    pub(super) end_ms: f64,
    pub(super) preempted: bool,
}

/// What became of a sequence of arrivals.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Log {
    pub(super) ran: Vec<Ran>,
    /// Requests that were answered without running, with the time in ms.
    pub(super) dropped: Vec<(u64, f64)>,
}

impl Log {
    /// Every batch as (device, model, size, begin, end), in the order in which they ended.
    pub(super) fn batches(&self) -> Vec<(u32, u32, usize, f64, f64)> {
        self.ran
            .iter()
            .map(|ran| (ran.gpu, ran.model, ran.requests.len(), ran.begin_ms, ran.end_ms))
            .collect()
    }
}

/// One class of devices, models l(b) = alpha * b + beta with an SLO, all in ms, and a rate.
pub(super) fn cluster(gpus: usize, models: &[(f64, f64, u32, f64, f64)]) -> Cluster {
    let facts = models.iter().map(|&(alpha, beta, largest, slo_ms, rate_rps)| ModelFacts {
        profiles: vec![Some(LatencyProfile::linear(alpha, beta, largest).unwrap())],
        slo: Span::from_millis_f64(slo_ms),
        rate_rps,
    });
    Cluster { gpus: vec![ClassId(0); gpus], models: facts.collect(), delays: Delays::default() }
}

/// Runs `(ms, model)` arrivals, which must be in order of time, with every batch taking exactly what its profile says.
pub(super) fn run(cluster: &Cluster, policy: &mut dyn Policy, arrivals: &[(f64, u32)]) -> Log {
    Lab::new(cluster, Jitter::None).run(policy, arrivals)
}

#[derive(Clone, Copy, Debug)]
enum Jitter {
    None,
    /// Every batch takes 0.8 to 1.4 of its profile, by its number and this seed.
    Seeded(u64),
}

impl Jitter {
    fn of(self, batch: BatchId, run: Span) -> Span {
        match self {
            Jitter::None => run,
            Jitter::Seeded(seed) => {
                let scrambled = (batch.0 ^ seed).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40;
                Span::from_nanos(run.as_nanos() * (800 + scrambled % 600) / 1000)
            }
        }
    }
}

/// Devices that run what they are sent in order, one batch at a time.
struct Lab<'a> {
    cluster: &'a Cluster,
    jitter: Jitter,
    devices: Vec<VecDeque<(Start, Vec<u64>)>>,
    /// The batch each device runs: its begin and end.
    running: Vec<Option<(Time, Time)>>,
    timer: Time,
    /// Where each request is: waiting (`None`) or on a device. One that left is gone.
    inside: BTreeMap<u64, Option<GpuId>>,
    batches: u64,
    log: Log,
}

impl<'a> Lab<'a> {
    fn new(cluster: &'a Cluster, jitter: Jitter) -> Lab<'a> {
        let gpus = cluster.gpus.len();
        Lab {
            cluster,
            jitter,
            devices: vec![VecDeque::new(); gpus],
            running: vec![None; gpus],
            timer: Time::NEVER,
            inside: BTreeMap::new(),
            batches: 0,
            log: Log::default(),
        }
    }

    fn run(mut self, policy: &mut dyn Policy, arrivals: &[(f64, u32)]) -> Log {
        let mut arrivals = arrivals.iter().enumerate().peekable();
        let (mut out, mut now) = (Outbox::default(), Time::ZERO);
        while arrivals.peek().is_some() || !self.inside.is_empty() {
            let arrival =
                arrivals.peek().map_or(Time::NEVER, |(_, (ms, _))| Time::ZERO + Span::from_millis_f64(*ms));
            let ends = self.running.iter().map(|run| run.map_or(Time::NEVER, |run| run.1));
            let (end, gpu) = ends.zip(0..).min().unwrap_or((Time::NEVER, 0));
            let next = arrival.min(end).min(self.timer);
            assert!(next < Time::NEVER, "requests {:?} never leave", self.inside);
            now = now.max(next);
            let event = if end == next {
                self.end(now, gpu)
            } else if self.timer == next {
                self.timer = Time::NEVER;
                Event::Timer
            } else {
                let (id, &(_, model)) = arrivals.next().unwrap();
                self.arrive(now, id as u64, model)
            };
            policy.handle(now, event, &mut out);
            self.obey(now, &mut out);
        }
        self.log
    }

    fn arrive(&mut self, now: Time, id: u64, model: u32) -> Event {
        self.inside.insert(id, None);
        let deadline = now + self.cluster.models[model as usize].slo;
        Event::Arrived(Request {
            id: RequestId(id),
            model: ModelId(model),
            deadline,
            priority: Priority(0),
            rows: 1,
        })
    }

    fn end(&mut self, now: Time, gpu: usize) -> Event {
        let (start, requests) = self.devices[gpu].pop_front().unwrap();
        let (begin, _) = self.running[gpu].take().unwrap();
        for id in &requests {
            self.inside.remove(id);
        }
        self.record(&start, requests, begin, now, false);
        self.begin(now, gpu);
        Event::BatchFinished { gpu: start.gpu, batch: start.batch }
    }

    fn record(&mut self, start: &Start, requests: Vec<u64>, begin: Time, end: Time, preempted: bool) {
        let (begin_ms, end_ms) = (begin.since_origin().as_millis_f64(), end.since_origin().as_millis_f64());
        let (gpu, model) = (start.gpu.0, start.model.0);
        self.log.ran.push(Ran { gpu, model, requests, begin_ms, end_ms, preempted });
    }

    fn begin(&mut self, now: Time, gpu: usize) {
        if let (None, Some((start, requests))) = (self.running[gpu], self.devices[gpu].front()) {
            let profile = self.cluster.profile(start.model, start.gpu).unwrap();
            let begin = start.start_at.max(now);
            let run = self.jitter.of(start.batch, profile.latency(requests.len() as u32));
            self.running[gpu] = Some((begin, begin + run));
        }
    }

    fn obey(&mut self, now: Time, out: &mut Outbox) {
        for gpu in std::mem::take(&mut out.preempt) {
            let begun = self.running[gpu.0 as usize].take();
            for (start, requests) in std::mem::take(&mut self.devices[gpu.0 as usize]) {
                self.inside.extend(requests.iter().map(|id| (*id, None)));
                self.record(&start, requests, begun.map_or(now, |run| run.0), now, true);
            }
        }
        for action in out.actions.list() {
            match action {
                Action::Start(start) => self.send(now, start, out.actions.requests(start)),
                Action::Answer { request, .. } => {
                    assert_eq!(self.inside.remove(&request.0), Some(None), "{request:?} was not waiting");
                    self.log.dropped.push((request.0, now.since_origin().as_millis_f64()));
                }
                Action::ArmTimer { at } => self.timer = *at,
            }
        }
        out.actions.clear();
    }

    fn send(&mut self, now: Time, start: &Start, requests: &[RequestId]) {
        let profile = self.cluster.profile(start.model, start.gpu).expect("sent where it cannot run");
        assert!((1..=profile.max_batch() as usize).contains(&requests.len()), "{} requests", requests.len());
        assert_eq!(start.batch.0, self.batches, "batches are numbered in order");
        assert!(
            start.start_at >= now + self.cluster.delays.lead(requests.len() as u32),
            "faster than the network"
        );
        self.batches += 1;
        for request in requests {
            assert_eq!(
                self.inside.insert(request.0, Some(start.gpu)),
                Some(None),
                "{request:?} was not waiting"
            );
        }
        let gpu = start.gpu.0 as usize;
        self.devices[gpu].push_back((start.clone(), requests.iter().map(|request| request.0).collect()));
        self.begin(now, gpu);
    }
}

/// Every rival that can run the cluster, in several settings.
fn rivals(cluster: &Cluster) -> Vec<(String, Box<dyn Policy>)> {
    let mut all: Vec<(String, Box<dyn Policy>)> = Vec::new();
    let mut delayed = DelayedSettings::grid();
    let mut preferred = DelayedSettings::default();
    preferred.set("preferred", "2+5").unwrap();
    preferred.set("delay", "0.3slo").unwrap();
    preferred.set("timeout", "0.1slo").unwrap();
    preferred.set("cap", "model").unwrap();
    delayed.push(preferred);
    for settings in delayed {
        all.push((format!("delayed {settings}"), Box::new(Delayed::new(cluster, &settings))));
    }
    let mut clockwork = ClockworkSettings::grid();
    clockwork.push(ClockworkSettings::published());
    for settings in clockwork {
        all.push((format!("clockwork {settings}"), Box::new(Clockwork::new(cluster, &settings))));
    }
    // Shorter epochs than can be asked for: the arrivals here last a fraction of a second.
    let restless = NexusSettings {
        min_epoch: Span::from_millis(20),
        epoch: Span::from_millis(50),
        ..NexusSettings::default()
    };
    let mut published = restless.clone();
    published.set("headroom", "1").unwrap();
    published.set("batch", "planned").unwrap();
    for settings in NexusSettings::grid().into_iter().chain([restless, published]) {
        if let Ok(nexus) = Nexus::new(cluster, &settings) {
            all.push((format!("nexus {settings}"), Box::new(nexus)));
        }
    }
    let mut keen = ShepherdSettings::default();
    keen.set("lambda", "1.1").unwrap();
    for settings in [ShepherdSettings::default(), keen] {
        all.push((format!("shepherd {settings}"), Box::new(Shepherd::new(cluster, &settings))));
    }
    all
}

prop_compose! {
    fn any_profile()(alpha in 0.05..2.0, beta in 0.1..8.0, largest in 1u32..40) -> LatencyProfile {
        LatencyProfile::linear(alpha, beta, largest).unwrap()
    }
}

prop_compose! {
    /// Up to two classes; a model may be missing from one of them, or from both.
    fn any_cluster()(
        gpus in prop::collection::vec(0u16..2, 1..5),
        models in prop::collection::vec(
            (prop::option::weighted(0.8, any_profile()), prop::option::weighted(0.8, any_profile()), 3.0..60.0, 0.0..900.0),
            1..5,
        ),
        one_class: bool,
        control_us in prop_oneof![Just(0u64), 1..2_000u64],
        data_us in prop_oneof![Just(0u64), 1..50u64],
    ) -> Cluster {
        Cluster {
            gpus: gpus.into_iter().map(|class| ClassId(if one_class { 0 } else { class })).collect(),
            models: models
                .into_iter()
                .map(|(a, b, slo_ms, rate_rps)| ModelFacts {
                    profiles: vec![a, b],
                    slo: Span::from_millis_f64(slo_ms),
                    rate_rps,
                })
                .collect(),
            delays: Delays { control: Span::from_micros(control_us), data: Span::from_micros(data_us) },
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    /// The lab asserts that every batch is legal and that every request leaves exactly once; here the log is checked.
    #[test]
    fn every_request_leaves_exactly_once_and_a_replay_is_identical(
        cluster in any_cluster(),
        gaps in prop::collection::vec((prop_oneof![Just(0.0), 0.0..0.5, 0.0..6.0], any::<prop::sample::Index>()), 1..250),
        seed: u64,
    ) {
        let mut ms = 0.0;
        let arrivals: Vec<(f64, u32)> = gaps
            .iter()
            .map(|(gap, model)| {
                ms += gap;
                (ms, model.index(cluster.models.len()) as u32)
            })
            .collect();
        for jitter in [Jitter::None, Jitter::Seeded(seed)] {
            let replays = rivals(&cluster).into_iter().zip(rivals(&cluster));
            for ((name, mut policy), (_, mut again)) in replays {
                let log = Lab::new(&cluster, jitter).run(policy.as_mut(), &arrivals);
                let whole = log.ran.iter().filter(|ran| !ran.preempted).flat_map(|ran| &ran.requests);
                let left: BTreeSet<u64> = whole.chain(log.dropped.iter().map(|(id, _)| id)).copied().collect();
                prop_assert_eq!(left.len(), arrivals.len(), "{} lost requests", &name);
                let mut busy: BTreeMap<u32, f64> = BTreeMap::new();
                for ran in &log.ran {
                    let free = busy.insert(ran.gpu, ran.end_ms).unwrap_or(0.0);
                    prop_assert!(ran.begin_ms >= free || ran.preempted, "{} ran two at once on {}", &name, ran.gpu);
                }
                prop_assert_eq!(log, Lab::new(&cluster, jitter).run(again.as_mut(), &arrivals), "{}", &name);
            }
        }
    }
}

#[test]
fn an_unknown_key_is_answered_with_the_known_ones() {
    let delayed = DelayedSettings::default().set("dely", "1ms").unwrap_err();
    assert_eq!(delayed, "there is no setting 'dely'; known are delay, cap, max_batch, preferred, timeout");
    assert!(ClockworkSettings::default().set("x", "1").unwrap_err().contains("ahead, max_batch, max_exec"));
    assert!(NexusSettings::default().set("x", "1").unwrap_err().contains("epoch, min_epoch, headroom"));
    assert!(ShepherdSettings::default().set("x", "1").unwrap_err().contains("lambda"));
}

#[test]
fn what_is_displayed_can_be_set_again() {
    let texts =
        ["delay=0.25slo:cap=0.7slo:max_batch=9:preferred=4+8:timeout=2ms", "delay=0:cap=half:timeout=on"];
    for text in texts {
        let mut settings = DelayedSettings::default();
        text.split(':')
            .map(|pair| pair.split_once('=').unwrap())
            .for_each(|(k, v)| settings.set(k, v).unwrap());
        assert_eq!(settings.to_string(), text);
    }
    let texts =
        ["ahead=2ms:max_batch=16:max_exec=25ms:sizes=all:buffer=5ms:window=3", "ahead=10ms:sizes=pow2"];
    for text in texts {
        let mut settings = ClockworkSettings::default();
        text.split(':')
            .map(|pair| pair.split_once('=').unwrap())
            .for_each(|(k, v)| settings.set(k, v).unwrap());
        assert_eq!(settings.to_string(), text);
    }
}
