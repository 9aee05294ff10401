//! What a model is told is carried out in order, also while it moves between shards, whatever the threads do meanwhile.

#![allow(clippy::unwrap_used, reason = "a test fails where something does")]

use std::collections::{BTreeMap, VecDeque};

use downbeat_sched::{
    ALTERNATIVES, ClassId, GpuId, LatencyProfile, ModelId, ModelSpec, Outcome, Priority, Request, RequestId,
    Rule, Span, Time,
};
use downbeat_shards::{DomainId, Ensemble, Finished, Host, Inlet, Launch, Settings};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

const SHARDS: usize = 3;
const MODELS: u32 = 4;
const GPUS: u32 = 64;
const DOMAIN: DomainId = DomainId(0);
const CLASS: ClassId = ClassId(0);

/// Hands requests to its shard, and notes what becomes of them.
#[derive(Default)]
struct Desk {
    requests: VecDeque<Request>,
    started: Vec<Finished>,
    /// How long the batches of each request were expected to take.
    latencies: BTreeMap<RequestId, Span>,
    left: BTreeMap<RequestId, u32>,
}

impl Host for Desk {
    fn poll(&mut self, now: Time, inlet: &mut Inlet) {
        inlet.arrived.extend(self.requests.drain(..));
        inlet.finished.extend(self.started.drain(..).map(|finished| Finished { at: now, ..finished }));
    }

    fn wake_at(&self) -> Time {
        if self.started.is_empty() && self.requests.is_empty() { Time::NEVER } else { Time::ZERO }
    }

    fn start(&mut self, now: Time, launch: &Launch, requests: &[Request]) {
        let Launch { domain, gpu, batch, latency, .. } = *launch;
        self.latencies.extend(requests.iter().map(|request| (request.id, latency)));
        self.started.push(Finished { domain, gpu, batch, at: now });
    }

    fn answer(&mut self, _: Time, _: ModelId, request: RequestId, _: Outcome) {
        *self.left.entry(request).or_default() += 1;
    }

    fn finish(&mut self, _: Time, request: &Request) {
        *self.left.entry(request.id).or_default() += 1;
    }
}

struct Stage {
    ensemble: Ensemble<Desk>,
    random: Xoshiro256PlusPlus,
    now: Time,
    next: u64,
    /// The latency that each model was last told, where it is there.
    told: [Option<u64>; MODELS as usize],
}

fn profile(ms: u64) -> LatencyProfile {
    LatencyProfile::linear(0.0, ms as f64, 1).unwrap()
}

impl Stage {
    fn new(seed: u64) -> Stage {
        let hosts = (0..SHARDS).map(|_| Desk::default()).collect();
        let settings = Settings { models: MODELS, gpus: GPUS, ..Settings::default() };
        let ensemble = Ensemble::new(Rule::ADAPTIVE, &settings, hosts).unwrap();
        for gpu in (0..GPUS).map(GpuId) {
            ensemble.control().join(DOMAIN, gpu, CLASS).unwrap();
        }
        let random = Xoshiro256PlusPlus::seed_from_u64(seed);
        Stage { ensemble, random, now: Time::ZERO, next: 0, told: [None; MODELS as usize] }
    }

    /// Tells a model something, or lets one of the threads take a turn.
    fn step(&mut self) {
        let model = ModelId(self.random.random_range(0..MODELS));
        let known = &mut self.told[model.0 as usize];
        let control = self.ensemble.control();
        let ms = self.random.random_range(1..50);
        match self.random.random_range(0..20) {
            0..=1 => {
                control.add_model(DOMAIN, model, ModelSpec::new([(CLASS, profile(ms))]), 0.0).unwrap();
                *known = Some(ms);
            }
            2 => {
                control.remove_model(model);
                *known = None;
            }
            3..=4 => {
                control.set_profile(model, CLASS, profile(ms)).unwrap();
                *known = known.and(Some(ms));
            }
            5..=7 => drop(control.move_model(model, self.random.random_range(0..SHARDS))),
            8..=11 => drop(self.ask(model)),
            12 => control.drain_model(model),
            13..=14 => drop(self.ensemble.matchmaker_turn(0, self.now)),
            _ => {
                let shard = self.random.random_range(0..SHARDS);
                self.ensemble.shard_turn(shard, self.now);
            }
        }
        self.now = self.now + Span::from_micros(self.random.random_range(0..100));
    }

    /// Sends a request to any shard at all.
    fn ask(&mut self, model: ModelId) -> RequestId {
        let id = RequestId(self.next);
        self.next += 1;
        let deadline = self.now + Span::from_millis(100);
        let shard = self.random.random_range(0..SHARDS);
        let request = Request { id, model, deadline, priority: Priority(0), rows: 1 };
        self.ensemble.host(shard).requests.push_back(request);
        id
    }

    fn settle(&mut self) {
        for _ in 0..500 {
            self.now = self.now + Span::from_millis(1);
            self.ensemble.settle(self.now);
        }
    }
}

#[test]
fn what_a_model_is_told_holds_in_the_order_in_which_it_was_told() {
    for seed in 0..100 {
        let mut stage = Stage::new(seed);
        for _ in 0..300 {
            stage.step();
        }
        stage.settle();
        let asked: Vec<_> = (0..MODELS).map(|model| stage.ask(ModelId(model))).collect();
        stage.settle();
        for id in (0..stage.next).map(RequestId) {
            let left: u32 =
                (0..SHARDS).map(|shard| stage.ensemble.host(shard).left.get(&id).copied().unwrap_or(0)).sum();
            assert_eq!(left, 1, "seed {seed}: {id:?} leaves once");
        }
        for (model, id) in (0..).map(ModelId).zip(asked) {
            let ran = (0..SHARDS).find_map(|shard| stage.ensemble.host(shard).latencies.get(&id).copied());
            let told = stage.told[model.0 as usize].map(Span::from_millis);
            assert_eq!(ran, told, "seed {seed}: {model:?} has the profile that it was last told");
            assert_eq!(stage.ensemble.control().is_vacant(model), told.is_none(), "seed {seed}: {model:?}");
        }
    }
}

#[test]
fn a_device_that_leaves_says_so_after_the_batch_that_was_on_its_way_to_it() {
    let mut stage = Stage::new(0);
    for gpu in 1..GPUS {
        stage.ensemble.control().leave(DOMAIN, GpuId(gpu), || ()).unwrap();
    }
    let model = ModelId(0);
    let control = stage.ensemble.control().clone();
    control.add_model_on(DOMAIN, model, ModelSpec::new([(CLASS, profile(50))]), 0.0, 0).unwrap();
    stage.ensemble.settle(stage.now);
    stage.ask(model);
    while !stage.ensemble.has_orders(0) {
        stage.now = stage.now + Span::from_millis(1);
        for shard in 0..SHARDS {
            stage.ensemble.shard_turn(shard, stage.now);
        }
        stage.ensemble.matchmaker_turn(0, stage.now);
    }
    let (settled, is_settled) = std::sync::mpsc::channel();
    control.leave(DOMAIN, GpuId(0), move || settled.send(()).unwrap()).unwrap();
    stage.ensemble.matchmaker_turn(0, stage.now);
    assert!(is_settled.try_recv().is_err(), "a grant is under way");
    stage.ensemble.shard_turn(0, stage.now);
    assert_eq!(stage.ensemble.host(0).latencies.len(), 1, "it was sent a batch");
    stage.ensemble.matchmaker_turn(0, stage.now);
    assert!(is_settled.try_recv().is_ok());
}

#[test]
fn the_rule_that_a_class_is_to_follow_is_on_the_board() {
    let mut stage = Stage::new(3);
    let followed = |stage: &Stage| stage.ensemble.control().pressure(DOMAIN, CLASS).unwrap().rule;
    assert_eq!(followed(&stage), Rule::ADAPTIVE);
    for rule in ALTERNATIVES {
        stage.ensemble.control().follow(DOMAIN, CLASS, rule).unwrap();
        stage.settle();
        assert_eq!(followed(&stage), rule);
    }
}
