//! Every request leaves exactly once, whatever happens to devices, models and shards meanwhile.

#![allow(clippy::unwrap_used, reason = "a test fails where something does")]
#![expect(clippy::disallowed_methods, reason = "the test waits for the threads that it disturbs")]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use downbeat_sched::{
    ClassId, Delays, GpuId, LatencyProfile, ModelId, ModelSpec, Outcome, Priority, Request, RequestId, Rule,
    Span, Time,
};
use downbeat_shards::{Clock, DomainId, Finished, Host, Inlet, Launch, Runtime, Settings};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

const MODELS: u32 = 12;
const GPUS: u32 = 16;
const DOMAINS: u16 = 2;

/// How often each request has left, by its number.
#[derive(Default)]
struct Books {
    arrived: u64,
    left: BTreeMap<u64, u32>,
    finished: u64,
    outcomes: BTreeMap<Outcome, u64>,
}

/// Sends requests to any model at all, cancels some, and runs batches on devices that fail behind its back.
struct Chaos {
    random: Xoshiro256PlusPlus,
    next_at: Time,
    stop: Arc<AtomicBool>,
    next_id: Arc<AtomicU64>,
    recent: Vec<Request>,
    running: Vec<(Time, Finished)>,
    books: Arc<Mutex<Books>>,
}

impl Host for Chaos {
    fn poll(&mut self, now: Time, inlet: &mut Inlet) {
        let due = |(at, _): &mut (Time, Finished)| *at <= now;
        // Now and then word of a batch comes twice, and of one that was lost.
        for (at, finished) in self.running.extract_if(.., due) {
            inlet.finished.push(Finished { at, ..finished });
            if self.random.random_bool(0.05) {
                inlet.finished.push(Finished { at, ..finished });
            }
        }
        while self.next_at <= now && !self.stop.load(Ordering::Relaxed) {
            self.next_at = self.next_at + Span::from_micros(self.random.random_range(0..200));
            let request = Request {
                id: RequestId(self.next_id.fetch_add(1, Ordering::Relaxed)),
                model: ModelId(self.random.random_range(0..MODELS + 1)),
                deadline: now + Span::from_micros(self.random.random_range(1_000..40_000)),
                priority: Priority(self.random.random_range(0..3)),
                rows: self.random.random_range(0..4),
            };
            self.books.lock().unwrap().arrived += 1;
            inlet.arrived.push(request);
            self.recent.push(request);
            if self.recent.len() > 50 {
                let at = self.random.random_range(0..self.recent.len());
                let request = self.recent.swap_remove(at);
                if self.random.random_bool(0.3) {
                    inlet.cancelled.push(request);
                }
            }
        }
    }

    fn wake_at(&self) -> Time {
        let batches = self.running.iter().map(|(at, _)| *at).min().unwrap_or(Time::NEVER);
        if self.stop.load(Ordering::Relaxed) { batches } else { batches.min(self.next_at) }
    }

    fn start(&mut self, _: Time, launch: &Launch, requests: &[Request]) {
        assert!(!requests.is_empty() && requests.iter().all(|request| request.model == launch.model));
        let Launch { domain, gpu, batch, finish_at, .. } = *launch;
        assert_eq!(u32::from(domain.0), gpu.0 % u32::from(DOMAINS), "a device of another domain");
        self.running.push((finish_at, Finished { domain, gpu, batch, at: finish_at }));
    }

    fn answer(&mut self, _: Time, _: ModelId, request: RequestId, outcome: Outcome) {
        let mut books = self.books.lock().unwrap();
        *books.left.entry(request.0).or_default() += 1;
        *books.outcomes.entry(outcome).or_default() += 1;
    }

    fn finish(&mut self, _: Time, request: &Request) {
        let mut books = self.books.lock().unwrap();
        *books.left.entry(request.id.0).or_default() += 1;
        books.finished += 1;
    }
}

fn spec(random: &mut Xoshiro256PlusPlus) -> ModelSpec {
    let profile = |random: &mut Xoshiro256PlusPlus| {
        LatencyProfile::linear(0.1, random.random_range(0.3..3.0), random.random_range(4..32)).unwrap()
    };
    let mut profiles = vec![(ClassId(0), profile(random))];
    if random.random_bool(0.5) {
        profiles.push((ClassId(1), profile(random)));
    }
    ModelSpec { queue_limit: 500, ..ModelSpec::new(profiles) }
}

fn stress(seed: u64, shards: usize, arrange: impl FnOnce(&mut Settings)) {
    let clock = Clock::start();
    let (stop, next_id, books) =
        (Arc::<AtomicBool>::default(), Arc::<AtomicU64>::default(), Arc::<Mutex<Books>>::default());
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    let hosts = (0..shards).map(|_| Chaos {
        random: Xoshiro256PlusPlus::seed_from_u64(random.random()),
        next_at: clock.now(),
        stop: Arc::clone(&stop),
        next_id: Arc::clone(&next_id),
        recent: Vec::new(),
        running: Vec::new(),
        books: Arc::clone(&books),
    });
    let hosts = hosts.collect();
    let mut settings = Settings {
        delays: Delays { control: Span::from_micros(100), data: Span::from_micros(10) },
        domains: DOMAINS,
        models: MODELS,
        gpus: GPUS,
        ..Settings::default()
    };
    arrange(&mut settings);
    let runtime = Runtime::start(Rule::ADAPTIVE, &settings, clock, hosts).unwrap();
    let domain_of = |number: u32| DomainId((number % u32::from(DOMAINS)) as u16);
    for model in 0..MODELS {
        runtime.add_model(domain_of(model), ModelId(model), spec(&mut random), 0.0).unwrap();
    }
    for gpu in 0..GPUS {
        runtime.join(domain_of(gpu), GpuId(gpu), ClassId((gpu / 2 % 2) as u16)).unwrap();
    }
    for _ in 0..1_500 {
        thread::sleep(Duration::from_micros(random.random_range(0..2_000)));
        let gpu = random.random_range(0..GPUS);
        let (domain, gpu, class) = (domain_of(gpu), GpuId(gpu), ClassId((gpu / 2 % 2) as u16));
        let model = ModelId(random.random_range(0..MODELS));
        match random.random_range(0..100) {
            0..=24 => runtime.fail(domain, vec![gpu]).unwrap(),
            25..=29 => runtime.leave(domain, gpu, || ()).unwrap(),
            30..=64 => runtime.join(domain, gpu, class).unwrap(),
            65..=69 => runtime.late(domain, gpu, clock.now() + Span::from_micros(500)).unwrap(),
            70..=84 => drop(runtime.move_model(model, random.random_range(0..shards))),
            85..=89 => runtime.remove_model(model),
            90..=94 => {
                runtime.add_model(domain_of(model.0), model, spec(&mut random), 0.0).unwrap();
            }
            95..=97 => {
                let profile = LatencyProfile::linear(0.2, 1.0, 16).unwrap();
                runtime.set_profile(model, ClassId(0), profile).unwrap();
            }
            _ => drop(runtime.rebalance()),
        }
    }
    stop.store(true, Ordering::Relaxed);
    // Each deadline is at most 40 ms away; nothing is left long after that.
    for _ in 0..200 {
        thread::sleep(Duration::from_millis(50));
        let books = books.lock().unwrap();
        if books.left.len() as u64 == books.arrived {
            break;
        }
    }
    runtime.stop().unwrap();
    let books = books.lock().unwrap();
    let often: Vec<_> = books.left.iter().filter(|(_, times)| **times != 1).collect();
    assert!(often.is_empty(), "seed {seed}: left more than once: {often:?}");
    let missing: Vec<_> = (0..books.arrived).filter(|id| !books.left.contains_key(id)).take(20).collect();
    let all = books.arrived;
    assert!(missing.is_empty(), "seed {seed}: of {all}, never left: {missing:?}; {:?}", books.outcomes);
    assert!(books.finished > 0, "seed {seed}: nothing ran of {all}");
}

#[test]
fn every_request_leaves_exactly_once_while_devices_and_models_come_go_and_fail() {
    stress(1, 3, |_| ());
}

#[test]
fn every_request_leaves_exactly_once_on_a_single_shard() {
    stress(2, 1, |_| ());
}

#[test]
fn every_request_leaves_exactly_once_with_threads_that_never_sleep() {
    stress(3, 2, |settings| settings.spin = true);
}

#[test]
fn every_request_leaves_exactly_once_where_late_threads_are_forgiven() {
    stress(5, 3, |settings| settings.grace = Span::from_millis(20));
}
