//! The world around the server, and what happens in it.

use std::collections::BTreeMap;
use std::fs;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, Wake, Waker};

use axum::Router;
use axum::body::Body;
use axum::http::Request;
use bytes::Bytes;
use downbeat_profile::{LatencyProfile, Span};
use downbeat_repository::{ModelDefinition, Repository};
use downbeat_sched::{ClassId, Delays, Rule, Time};
use downbeat_shards::forgiven;
use hyper::service::Service as _;
use hyper_util::service::TowerToHyperService;
use rand::RngExt;
use rand_xoshiro::Xoshiro256PlusPlus;
use tempfile::TempDir;
use tokio::sync::{mpsc, oneshot, watch};

use super::Play;
use super::client::{Question, Told};
use super::worker::{Connection, Device};
use crate::admission::Admission;
use crate::catalogue::{Catalogue, Served};
use crate::clock::Clock;
use crate::control::Standing;
use crate::dispatch::{Command, GRACE, InstanceId, InstanceSpec, Rehearsed, Runtime};
use crate::frontend::{GrpcSettings, HttpSettings, grpc_router, http_router};
use crate::link::Switchboard;
use crate::metrics::Metrics;
use crate::server::Core;
use crate::settings::ModelControl;

const CLASS: ClassId = ClassId(0);

/// Longer than that, no request may take: SLOs, standstills and hanging workers together are shorter.
const PATIENCE: Span = Span::from_millis(20_000);

/// Something that is to happen.
enum Happening {
    Ask(usize),
    /// A client goes away.
    Leave(usize),
    Arrive {
        connection: u64,
        wire: Bytes,
    },
    Finish {
        connection: u64,
        device: usize,
        busy: Span,
        fails: bool,
    },
    Return {
        connection: u64,
        wire: Bytes,
    },
    Die(usize),
    Hang(usize),
    Connect(usize),
    /// A worker takes no more batches, and takes some again.
    Pause(usize),
    Resume(usize, u64),
    Reload(&'static str),
    StandStill,
}

/// A client that waits.
struct Conversation {
    since: Time,
    told: Pin<Box<dyn Future<Output = Told>>>,
    /// Whether it is worth a look.
    woken: Arc<Woken>,
}

struct Woken(AtomicBool);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

pub(super) struct Stage {
    play: Play,
    random: Xoshiro256PlusPlus,
    now: Time,
    clock: &'static AtomicU64,
    agenda: BTreeMap<(Time, u64), Happening>,
    next: u64,
    scheduler: Rehearsed,
    runtime: Runtime,
    switchboard: Switchboard,
    core: Arc<Core>,
    routers: [Router; 2],
    workers: Vec<Option<Connection>>,
    questions: Vec<Question>,
    /// By number of the question.
    conversations: BTreeMap<usize, Conversation>,
    instances: BTreeMap<&'static str, InstanceId>,
    withdrawn: Vec<oneshot::Receiver<()>>,
    told: Vec<String>,
    gone: usize,
}

/// The models: one whose shape is fixed, one whose rows are of any length, one that takes no batches.
const MODELS: [(&str, u32, &str); 3] = [("fixed", 8, "4"), ("free", 4, "-1"), ("single", 0, "-1")];

fn repository() -> &'static (Arc<Repository>, Vec<Arc<ModelDefinition>>, TempDir) {
    static REPOSITORY: OnceLock<(Arc<Repository>, Vec<Arc<ModelDefinition>>, TempDir)> = OnceLock::new();
    REPOSITORY.get_or_init(|| {
        let folder = tempfile::tempdir().unwrap();
        for (model, max_batch, dims) in MODELS {
            fs::create_dir_all(folder.path().join(model).join("1")).unwrap();
            let config = format!(
                "backend: \"emulated\"\nmax_batch_size: {max_batch}\n\
                 input {{ name: \"x\" data_type: TYPE_UINT8 dims: {dims} }}\n\
                 output {{ name: \"y\" data_type: TYPE_UINT8 dims: {dims} }}"
            );
            fs::write(folder.path().join(model).join("config.pbtxt"), config).unwrap();
        }
        let repository = Arc::new(Repository::open(folder.path()).unwrap());
        let models =
            MODELS.iter().map(|(model, ..)| Arc::new(repository.read(model, None).unwrap())).collect();
        (repository, models, folder)
    })
}

/// l(b) = b + 4 ms.
fn profile(max_batch: u32) -> LatencyProfile {
    LatencyProfile::linear(1.0, 4.0, max_batch.max(1)).unwrap()
}

impl Stage {
    pub(super) fn new(play: Play, mut random: Xoshiro256PlusPlus) -> Stage {
        // A few bytes for each run of a test.
        let clock: &'static AtomicU64 = Box::leak(Box::default());
        let switchboard = Switchboard::default();
        let delays = Delays { control: Span::from_micros(play.network_us), data: Span::ZERO };
        let shards = random.random_range(1..=3);
        let rule =
            if random.random_bool(0.5) { Rule::ADAPTIVE } else { Rule::ADAPTIVE.without_early_starts() };
        let scheduler = Rehearsed::new(rule, delays, shards, Box::new(switchboard.clone()));
        let runtime = scheduler.runtime(Clock::played(clock));
        let (_, standing) = watch::channel(Standing::default());
        let core = Arc::new(Core {
            runtime: runtime.clone(),
            catalogue: Arc::new(Catalogue::default()),
            repository: Arc::clone(&repository().0),
            metrics: Arc::new(Metrics::new().unwrap()),
            admission: Admission::new(1 << 20),
            orders: mpsc::channel(1).0,
            standing,
            started: AtomicBool::new(true),
            draining: AtomicBool::new(false),
            model_control: ModelControl::Explicit,
        });
        let http = HttpSettings { admission: core.admission.clone(), ..HttpSettings::default() };
        let grpc = GrpcSettings { admission: core.admission.clone(), ..GrpcSettings::default() };
        Stage {
            questions: (0..play.requests).map(|_| Question::draw(&mut random)).collect(),
            routers: [http_router(Arc::clone(&core), http), grpc_router(Arc::clone(&core), &grpc)],
            workers: (0..play.workers).map(|_| None).collect(),
            play,
            random,
            now: Time::ZERO,
            clock,
            agenda: BTreeMap::new(),
            next: 0,
            scheduler,
            runtime,
            switchboard,
            core,
            conversations: BTreeMap::new(),
            instances: BTreeMap::new(),
            withdrawn: Vec::new(),
            told: Vec::new(),
            gone: 0,
        }
    }

    /// Plays until everybody has been told something. Says what was told to whom.
    pub(super) fn run(mut self) -> Vec<String> {
        self.prepare();
        loop {
            self.settle();
            let next = self.agenda.first_key_value().map_or(Time::NEVER, |((at, _), _)| *at);
            let wake_at = self.scheduler.wake_at();
            if next == Time::NEVER && (wake_at == Time::NEVER || self.conversations.is_empty()) {
                break;
            }
            if wake_at <= next {
                let late = self.up_to_us(self.play.timers_us);
                self.set_clock(wake_at + late);
                self.scheduler.settle(forgiven(wake_at, self.now, GRACE));
            } else if let Some(((at, _), happening)) = self.agenda.pop_first() {
                self.set_clock(at);
                self.happen(happening);
            }
            let waits = |conversation: &Conversation| self.now.since(conversation.since) > PATIENCE;
            assert!(!self.conversations.values().any(waits), "a client waits for too long");
        }
        self.check();
        self.told
    }

    fn prepare(&mut self) {
        for worker in 0..self.play.workers {
            self.happen(Happening::Connect(worker));
        }
        for (model, ..) in MODELS {
            self.deploy(model);
        }
        for question in 0..self.play.requests {
            self.somewhen(|_, _| Happening::Ask(question));
        }
        let workers = self.play.workers;
        for _ in 0..self.play.deaths {
            self.somewhen(|_, random| Happening::Die(random.random_range(0..workers)));
        }
        for _ in 0..self.play.hangs {
            self.somewhen(|_, random| Happening::Hang(random.random_range(0..workers)));
        }
        for _ in 0..self.play.leaves {
            self.somewhen(|_, random| Happening::Pause(random.random_range(0..workers)));
        }
        for _ in 0..self.play.reloads {
            self.somewhen(|_, random| Happening::Reload(MODELS[random.random_range(0..MODELS.len())].0));
        }
        for _ in 0..self.play.standstills {
            self.somewhen(|_, _| Happening::StandStill);
        }
    }

    fn happen(&mut self, happening: Happening) {
        match happening {
            Happening::Ask(question) => self.ask(question),
            Happening::Leave(question) => {
                if self.conversations.remove(&question).is_some() {
                    self.gone += 1;
                    self.told.push(format!("{:?} {question} has gone", self.now));
                }
            }
            Happening::Arrive { connection, wire } => {
                if let Some(worker) = self.connected(connection) {
                    let device = worker.hear(&wire);
                    self.begin(connection, device);
                }
            }
            Happening::Finish { connection, device, busy, fails } => {
                self.finish(connection, device, busy, fails);
            }
            Happening::Return { connection, wire } => {
                if let Some(command) = self.connected(connection).and_then(|worker| worker.heard(&wire)) {
                    self.runtime.send(command);
                }
            }
            Happening::Die(worker) => self.die(worker),
            Happening::Hang(worker) => {
                if let Some(connection) = &mut self.workers[worker] {
                    connection.hangs = true;
                    // The server notices that it is silent.
                    self.later(Span::from_millis(2_000), Happening::Die(worker));
                }
            }
            Happening::Connect(worker) => self.connect(worker),
            Happening::Pause(worker) => {
                if let Some(connection) = &self.workers[worker] {
                    let number = connection.number;
                    for &gpu in &connection.gpus {
                        self.runtime.send(Command::DeviceLeft { gpu, settled: None });
                    }
                    self.later(Span::from_millis(50), Happening::Resume(worker, number));
                }
            }
            Happening::Resume(worker, number) => {
                if self.workers[worker].as_ref().is_some_and(|connection| connection.number == number) {
                    self.join(worker);
                }
            }
            Happening::Reload(model) => self.deploy(model),
            Happening::StandStill => {
                let still = self.up_to_us(2_000_000);
                self.set_clock(self.now + still);
            }
        }
    }

    fn ask(&mut self, number: usize) {
        let question = self.questions[number].clone();
        let router = self.routers[usize::from(question.is_grpc())].clone();
        let told = async move {
            let request: Request<Body> = question.request();
            let Ok(response) = TowerToHyperService::new(router).call(request).await;
            question.read(response).await
        };
        let woken = Arc::new(Woken(AtomicBool::new(true)));
        self.conversations.insert(number, Conversation { since: self.now, told: Box::pin(told), woken });
        if self.random.random_bool(self.play.leaving) {
            let after = self.up_to_us(100_000);
            self.later(after, Happening::Leave(number));
        }
    }

    /// Lets everything go on that can without time passing.
    fn settle(&mut self) {
        loop {
            let mut idle = true;
            self.conversations.retain(|number, conversation| {
                if !conversation.woken.0.swap(false, Ordering::Relaxed) {
                    return true;
                }
                let waker = Waker::from(Arc::clone(&conversation.woken));
                let Poll::Ready(told) = conversation.told.as_mut().poll(&mut Context::from_waker(&waker))
                else {
                    return true;
                };
                idle = false;
                let took = self.now.since(conversation.since);
                self.told.push(format!("{:?} {number} after {took:?}: {told:?}", self.now));
                false
            });
            idle &= !self.scheduler.settle(self.now);
            for worker in 0..self.workers.len() {
                let Some(connection) = &self.workers[worker] else { continue };
                let number = connection.number;
                while let Some(wire) = self.workers[worker].as_ref().and_then(Connection::next_outgoing) {
                    idle = false;
                    let on_the_way = self.up_to_us(self.play.network_us);
                    let Some(connection) = &mut self.workers[worker] else { break };
                    connection.there_at = connection.there_at.max(self.now + on_the_way);
                    let at = connection.there_at;
                    self.at(at, Happening::Arrive { connection: number, wire });
                }
            }
            if idle {
                return;
            }
        }
    }

    fn connect(&mut self, worker: usize) {
        if self.workers[worker].is_some() {
            return;
        }
        let (sender, outgoing) = crossbeam_channel::unbounded();
        let devices = self.play.devices_per_worker;
        self.next += 1;
        self.workers[worker] = Some(Connection {
            number: self.next,
            gpus: (0..devices).map(|device| self.switchboard.connect(device as u32, &sender)).collect(),
            outgoing,
            under_way: crate::link::UnderWay::default(),
            devices: (0..devices).map(|_| Device::default()).collect(),
            hangs: false,
            there_at: self.now,
            back_at: self.now,
        });
        self.join(worker);
    }

    fn join(&mut self, worker: usize) {
        let Some(connection) = &self.workers[worker] else { return };
        for &gpu in &connection.gpus {
            let name = format!("d{}", gpu.0);
            let meter = self.core.metrics.device(&name, &"d".parse().unwrap(), gpu.0);
            self.runtime.send(Command::DeviceJoined { gpu, class: CLASS, name: name.into(), meter });
        }
    }

    /// The server loses the connection to a worker, which comes back after a while.
    fn die(&mut self, worker: usize) {
        let Some(connection) = self.workers[worker].take() else { return };
        let gpus = connection.gpus.clone();
        self.runtime.send(Command::DevicesFailed { gpus });
        connection.gpus.into_iter().for_each(|gpu| self.switchboard.disconnect(gpu));
        let away = self.up_to_us(500_000);
        self.later(away, Happening::Connect(worker));
    }

    fn begin(&mut self, number: u64, device: usize) {
        let slow = self.random.random_bool(self.play.slow);
        let factor = if slow { self.random.random_range(1.0..10.0) } else { 1.0 };
        let fails = self.random.random_bool(self.play.failing);
        let Some(rows) = self.connected(number).and_then(|worker| worker.begin(device)) else { return };
        let busy = Span::from_millis_f64(profile(rows).latency(rows).as_millis_f64() * factor);
        self.later(busy, Happening::Finish { connection: number, device, busy, fails });
    }

    fn finish(&mut self, number: u64, device: usize, busy: Span, fails: bool) {
        let on_the_way = self.up_to_us(self.play.network_us);
        let now = self.now;
        let Some(worker) = self.connected(number).filter(|worker| !worker.hangs) else { return };
        let wire = worker.finish(device, busy, fails);
        worker.back_at = worker.back_at.max(now + on_the_way);
        let at = worker.back_at;
        self.at(at, Happening::Return { connection: number, wire });
        self.begin(number, device);
    }

    /// Loads a model, in place of the one of that name.
    fn deploy(&mut self, model: &'static str) {
        let instance = InstanceId(self.next as u32);
        self.next += 1;
        let definition = repository().1.iter().find(|definition| definition.name == model).unwrap();
        let slo = Span::from_millis(100);
        let meter = self.core.metrics.model(model, "1", slo);
        let spec = InstanceSpec {
            profiles: vec![(CLASS, profile(definition.max_batch))],
            open: definition.has_open_shapes(),
            queue_limit: 30,
            max_wait: Span::MAX,
            meter: Arc::clone(&meter),
        };
        self.runtime.send(Command::Deploy { instance, spec });
        let definition = Arc::clone(definition);
        self.core.catalogue.serve(Served { instance, version: 1, definition, slo, meter });
        if let Some(old) = self.instances.insert(model, instance) {
            let (done, withdrawn) = oneshot::channel();
            self.runtime.send(Command::Withdraw { instance: old, done });
            self.withdrawn.push(withdrawn);
        }
    }

    /// What must be true of every run.
    fn check(&mut self) {
        assert!(self.conversations.is_empty(), "clients that nobody answers");
        assert!(self.scheduler.dispatcher.is_idle(), "requests that nobody waits for");
        assert!(self.core.admission.admit(1 << 20).is_ok(), "room that was not given back");
        for withdrawn in &mut self.withdrawn {
            withdrawn.try_recv().expect("a model that is never unloaded");
        }
        let counted: f64 = self.count("downbeat_requests_total") + self.count("downbeat_rejected_total");
        assert_eq!(counted, self.play.requests as f64, "requests that were not counted once");
        if self.play.timers_us == 0 && self.play.network_us == 0 && self.is_calm() {
            assert_eq!(self.count("outcome=\"late\""), 0.0, "late although nothing went wrong");
            assert_eq!(self.count("outcome=\"failed\""), 0.0, "failed although nothing went wrong");
        }
    }

    fn is_calm(&self) -> bool {
        let Play { deaths, hangs, leaves, reloads, standstills, failing, slow, .. } = self.play;
        deaths + hangs + leaves + reloads + standstills == 0 && failing == 0.0 && slow == 0.0
    }

    /// The sum of all metrics whose line holds `part`.
    fn count(&self, part: &str) -> f64 {
        let text = self.core.metrics.render();
        let lines = text.lines().filter(|line| !line.starts_with('#') && line.contains(part));
        lines.map(|line| line.rsplit(' ').next().unwrap().parse::<f64>().unwrap()).sum()
    }

    fn connected(&mut self, number: u64) -> Option<&mut Connection> {
        self.workers.iter_mut().flatten().find(|worker| worker.number == number)
    }

    fn set_clock(&mut self, at: Time) {
        self.now = self.now.max(at);
        self.clock.store(self.now.as_nanos(), Ordering::Relaxed);
    }

    fn up_to_us(&mut self, most: u64) -> Span {
        Span::from_nanos(self.random.random_range(0..=most * 1_000))
    }

    fn somewhen(&mut self, what: impl FnOnce(&Play, &mut Xoshiro256PlusPlus) -> Happening) {
        let at = Time::ZERO + self.up_to_us(self.play.over_ms * 1_000);
        let happening = what(&self.play, &mut self.random);
        self.at(at, happening);
    }

    fn later(&mut self, after: Span, happening: Happening) {
        self.at(self.now + after, happening);
    }

    fn at(&mut self, at: Time, happening: Happening) {
        self.next += 1;
        self.agenda.insert((at, self.next), happening);
    }
}
