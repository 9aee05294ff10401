//! The control task with workers that do as a test says, over real connections.

mod moving;
mod puppet;

use std::fs;
use std::net::{SocketAddr, TcpListener};
use std::sync::atomic::AtomicBool;

use bytes::Bytes;
use downbeat_oip::{DataType, InferRequest, InferResponse, Parameter, Tensor};
use downbeat_sched::Delays;
use tempfile::TempDir;

use super::*;
use crate::admission::{Admission, Permit};
use crate::clock::Clock;
use crate::dispatch::SchedulerSettings;
use crate::link::message::{FromServer, FromWorker, Leaving};
use crate::link::{Hub, Switchboard};
use crate::server::Core;
use crate::service::Service;
use crate::settings::ModelControl;
use puppet::Puppet;

/// Longer than anything may take.
const HANG: Duration = Duration::from_secs(20);

/// A server without frontends.
struct Stage {
    core: Arc<Core>,
    workers_at: SocketAddr,
    _folder: TempDir,
}

impl Stage {
    /// With these models in its repository.
    fn with(models: &[&str]) -> Stage {
        Stage::with_silence(models, HANG)
    }

    /// With these models, some of which are in a sub-cluster.
    fn assigned(models: &[&str], assigned: &[(&str, &str)]) -> Stage {
        let assigned = assigned.iter().map(|(model, home)| ((*model).to_owned(), home.parse().unwrap()));
        Stage::set_up(models, HANG, assigned.collect())
    }

    /// With these models, and workers that may be silent for so long.
    fn with_silence(models: &[&str], silence_max: Duration) -> Stage {
        Stage::set_up(models, silence_max, Assignment::new())
    }

    fn set_up(models: &[&str], silence_max: Duration, assignment: Assignment) -> Stage {
        let folder = tempfile::tempdir().unwrap();
        for model in models {
            fs::create_dir_all(folder.path().join(model).join("1")).unwrap();
            let config = "backend: \"emulated\"\nmax_batch_size: 1\n\
                          input { name: \"x\" data_type: TYPE_UINT8 dims: 1 }\n\
                          output { name: \"y\" data_type: TYPE_UINT8 dims: 1 }\n\
                          parameters { key: \"slo_ms\" value { string_value: \"10000\" } }";
            fs::write(folder.path().join(model).join("config.pbtxt"), config).unwrap();
        }
        let metrics = Arc::new(Metrics::new().unwrap());
        let switchboard = Switchboard::default();
        // Models and devices on different threads, as on a large machine.
        let rule = downbeat_sched::Rule::ADAPTIVE;
        let scheduler =
            SchedulerSettings { rule, delays: Delays::default(), reserve: Span::ZERO, threads: 2 };
        let outbox = Box::new(switchboard.clone());
        let runtime = Runtime::start(Clock::start(), Arc::clone(&metrics), scheduler, outbox).unwrap();
        let (notices, heard) = mpsc::unbounded_channel();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let workers_at = listener.local_addr().unwrap();
        let hub = Hub::new(puppet::TOKEN, silence_max, runtime.clone(), switchboard, notices);
        hub.listen(listener).unwrap();
        let (orders, ordered) = mpsc::channel(64);
        let repository = Arc::new(Repository::open(folder.path()).unwrap());
        let catalogue = Arc::new(Catalogue::default());
        let settings = ControlSettings {
            default_slo: Span::from_millis(1_000),
            queue_limit: 100,
            max_wait: Span::ZERO,
            device_timeout: Duration::from_secs(60),
            open_size: 3,
            variant: String::new(),
            assignment,
        };
        let standing = Control::start(
            settings,
            Arc::clone(&repository),
            ProfileStore::new(Vec::new(), None),
            Arc::clone(&catalogue),
            Arc::clone(&metrics),
            runtime.clone(),
            heard,
            ordered,
        );
        let core = Core {
            runtime,
            catalogue,
            repository,
            metrics,
            admission: Admission::new(1 << 20),
            orders,
            standing,
            started: AtomicBool::new(true),
            draining: AtomicBool::new(false),
            model_control: ModelControl::Explicit,
        };
        Stage { core: Arc::new(core), workers_at, _folder: folder }
    }

    async fn connect(&self) -> Puppet {
        Puppet::connect(self.workers_at, "").await
    }

    /// Begins to load a model.
    fn load(&self, model: &'static str) -> tokio::task::JoinHandle<Result<(), Failure>> {
        let core = Arc::clone(&self.core);
        tokio::spawn(async move { core.load(model, None).await })
    }

    /// Begins to ask a model.
    fn infer(&self, model: &'static str) -> tokio::task::JoinHandle<Result<InferResponse, Failure>> {
        let core = Arc::clone(&self.core);
        tokio::spawn(async move {
            let data = Bytes::from_static(&[7]);
            let input = Tensor { name: "x".to_owned(), datatype: DataType::Uint8, shape: vec![1, 1], data };
            let request =
                InferRequest { model: model.to_owned(), inputs: vec![input], ..InferRequest::default() };
            core.infer(request, &Permit::default(), None).await
        })
    }

    /// Waits until a model is served.
    async fn await_ready(&self, model: &str) {
        let ready = async {
            while self.state(model).0 != State::Ready {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        soon(ready).await;
    }

    /// Waits until so many devices take batches.
    async fn await_devices(&self, devices: usize) {
        let mut standing = self.core.standing.clone();
        soon(standing.wait_for(|standing| standing.devices == devices)).await.unwrap();
    }

    fn state(&self, model: &str) -> (State, String) {
        let versions = self.core.catalogue.versions(model);
        versions.get(&1).map(|version| (version.state, version.reason.clone())).unwrap()
    }
}

async fn soon<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(HANG, future).await.expect("it hangs")
}

async fn ended<T>(task: tokio::task::JoinHandle<T>) -> T {
    soon(task).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_that_its_workers_die_of_is_given_up_and_the_others_are_served() {
    let stage = Stage::with(&["deadly", "good"]);
    let deadly = stage.load("deadly");
    for loads in [false, true, true] {
        let mut worker = stage.connect().await;
        let order = worker.load_order().await;
        assert!(order.name.starts_with("deadly"));
        if loads {
            worker.has_loaded(order.instance);
            assert!(matches!(worker.next().await, FromServer::Measure(_)));
        }
    }
    let failure = ended(deadly).await.unwrap_err();
    assert!(failure.message.contains("3 workers ended"), "{failure}");
    assert_eq!(stage.state("deadly").0, State::Unavailable);
    let mut worker = stage.connect().await;
    let good = stage.load("good");
    let order = worker.load_order().await;
    assert!(order.name.starts_with("good"), "{order:?}");
    worker.has_loaded(order.instance);
    worker.measure().await;
    ended(good).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn when_a_worker_dies_while_it_measures_another_does_it() {
    let stage = Stage::with(&["m"]);
    let mut workers = [stage.connect().await, stage.connect().await];
    stage.await_devices(2).await;
    let load = stage.load("m");
    for worker in &mut workers {
        let order = worker.load_order().await;
        worker.has_loaded(order.instance);
    }
    let [mut first, mut second] = workers;
    assert!(matches!(first.next().await, FromServer::Measure(_)));
    drop(first);
    second.measure().await;
    ended(load).await.unwrap();
    stage.await_devices(1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_comes_back_and_finds_a_model_broken_serves_the_others() {
    let stage = Stage::with(&["fine", "spoilt"]);
    let mut worker = stage.connect().await;
    worker.serve(&stage, &["fine", "spoilt"]).await;
    drop(worker);
    stage.await_devices(0).await;
    let mut worker = stage.connect().await;
    for _ in 0..2 {
        let order = worker.load_order().await;
        if order.name.starts_with("spoilt") {
            worker.cannot_load(order.instance, "the file is gone");
        } else {
            worker.has_loaded(order.instance);
        }
    }
    stage.await_devices(1).await;
    let answer = stage.infer("fine");
    worker.run().await;
    ended(answer).await.unwrap();
    assert_eq!(stage.state("spoilt"), (State::Unavailable, "the file is gone".to_owned()));
    assert_eq!(ended(stage.infer("spoilt")).await.unwrap_err().reason, Reason::Unavailable);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_dies_as_soon_as_it_has_loaded_leaves_no_device_behind() {
    let stage = Stage::with(&["m"]);
    let mut worker = stage.connect().await;
    worker.serve(&stage, &["m"]).await;
    drop(worker);
    for _ in 0..20 {
        stage.await_devices(0).await;
        let mut worker = stage.connect().await;
        let order = worker.load_order().await;
        worker.has_loaded(order.instance);
        drop(worker);
        let mut connected = stage.core.standing.clone();
        soon(connected.wait_for(|standing| standing.connected.is_empty())).await.unwrap();
        let failure = ended(stage.infer("m")).await.unwrap_err();
        assert_eq!(failure.reason, Reason::Unavailable, "{failure}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_worker_finishes_what_a_model_was_asked_before_it_was_unloaded() {
    let stage = Stage::with(&["m"]);
    let mut worker = stage.connect().await;
    worker.serve(&stage, &["m"]).await;
    let answer = stage.infer("m");
    assert!(matches!(worker.next().await, FromServer::Run(_)));
    let core = Arc::clone(&stage.core);
    let unload = tokio::spawn(async move { core.unload("m").await });
    while stage.state("m").0 != State::Unloading {
        tokio::task::yield_now().await;
    }
    drop(worker);
    let mut worker = stage.connect().await;
    let order = worker.load_order().await;
    worker.has_loaded(order.instance);
    worker.run().await;
    ended(answer).await.unwrap();
    ended(unload).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn the_only_worker_of_a_class_runs_batches_while_it_measures() {
    let stage = Stage::with(&["old", "new"]);
    let mut worker = stage.connect().await;
    worker.serve(&stage, &["old"]).await;
    let load = stage.load("new");
    let order = worker.load_order().await;
    worker.has_loaded(order.instance);
    let FromServer::Measure(measure) = worker.next().await else { panic!("it is to measure") };
    assert_eq!(measure.run_max_ns, 2_500_000_000, "a quarter of what the other's requests have");
    assert_eq!(measure.open_size, 3);
    let answer = stage.infer("old");
    worker.run().await;
    ended(answer).await.unwrap();
    worker.has_measured(measure.instance);
    ended(load).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_device_that_nobody_else_needs_is_measured_without_a_limit() {
    let stage = Stage::with(&["m"]);
    let mut worker = stage.connect().await;
    let load = stage.load("m");
    let order = worker.load_order().await;
    worker.has_loaded(order.instance);
    let FromServer::Measure(measure) = worker.next().await else { panic!("it is to measure") };
    assert_eq!(measure.run_max_ns, 0);
    worker.has_measured(measure.instance);
    ended(load).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn of_several_workers_the_one_that_measures_takes_no_batches() {
    let stage = Stage::with(&["old", "new"]);
    let mut busy = stage.connect().await;
    busy.serve(&stage, &["old"]).await;
    let mut other = stage.connect().await;
    let order = other.load_order().await;
    other.has_loaded(order.instance);
    stage.await_devices(2).await;
    let load = stage.load("new");
    for worker in [&mut busy, &mut other] {
        let order = worker.load_order().await;
        worker.has_loaded(order.instance);
    }
    stage.await_devices(1).await;
    busy.measure().await;
    ended(load).await.unwrap();
    stage.await_devices(2).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn only_the_servers_own_workers_can_tell_it_not_to_start() {
    let stage = Stage::with(&[]);
    Puppet::refused(stage.workers_at, |hello| hello.token = "wrong".to_owned()).await;
    Puppet::refused(stage.workers_at, |hello| hello.trouble = "no library".to_owned()).await;
    let _welcome = stage.connect().await;
    stage.await_devices(1).await;
    assert_eq!(stage.core.standing.borrow().trouble, None);
    let child = |hello: &mut crate::link::message::Hello| {
        (hello.is_child, hello.trouble) = (true, "no library".to_owned());
    };
    Puppet::refused(stage.workers_at, child).await;
    let mut standing = stage.core.standing.clone();
    soon(standing.wait_for(|standing| standing.trouble.as_deref() == Some("no library"))).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_falls_silent_is_given_up_and_another_runs_what_it_had() {
    let stage = Stage::with_silence(&["m"], Duration::from_secs(1));
    let mut hangs = stage.connect().await;
    let alive = hangs.keep_alive();
    hangs.serve(&stage, &["m"]).await;
    let answer = stage.infer("m");
    hangs.batch().await;
    alive.abort();
    stage.await_devices(0).await;
    let mut other = stage.connect().await;
    let _alive = other.keep_alive();
    let order = other.load_order().await;
    other.has_loaded(order.instance);
    other.run().await;
    ended(answer).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_is_ready_only_while_a_device_is_there_that_can_run_it() {
    let stage = Stage::with(&["m"]);
    let mut first = stage.connect().await;
    first.serve(&stage, &["m"]).await;
    assert!(stage.core.is_model_ready("m", "").unwrap());
    let mut other = Puppet::of_class(stage.workers_at, "other").await;
    let order = other.load_order().await;
    other.cannot_load(order.instance, "it does not fit");
    stage.await_devices(2).await;
    drop(first);
    stage.await_devices(1).await;
    assert!(stage.core.is_ready());
    assert!(!stage.core.is_model_ready("m", "").unwrap());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_finds_other_files_stays_aside_until_the_model_is_loaded_again() {
    let stage = Stage::with(&["m"]);
    let mut first = stage.connect().await;
    first.serve(&stage, &["m"]).await;
    let mut late = stage.connect().await;
    let order = late.load_order().await;
    late.finds_changed(order.instance);
    // Who has what was loaded goes on with it.
    for _ in 0..4 {
        let answer = stage.infer("m");
        first.run().await;
        ended(answer).await.unwrap();
    }
    assert_eq!(stage.core.standing.borrow().devices, 1);
    let load = stage.load("m");
    for worker in [&mut first, &mut late] {
        let order = worker.load_order().await;
        worker.has_loaded(order.instance);
    }
    first.measure().await;
    ended(load).await.unwrap();
    stage.await_devices(2).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_whose_files_changed_is_loaded_anew_when_no_worker_has_it_any_more() {
    let stage = Stage::with(&["m", "other"]);
    let mut worker = stage.connect().await;
    worker.serve(&stage, &["m", "other"]).await;
    drop(worker);
    stage.await_devices(0).await;
    let mut worker = stage.connect().await;
    let (changed, other) = (worker.load_order().await, worker.load_order().await);
    assert!(changed.name.starts_with("m ") && other.name.starts_with("other "));
    worker.finds_changed(changed.instance);
    worker.has_loaded(other.instance);
    let anew = worker.load_order().await;
    assert!(anew.name.starts_with("m ") && anew.instance != changed.instance, "{anew:?}");
    stage.await_devices(1).await;
    assert_eq!(stage.state("m").0, State::Loading, "meanwhile the other is served");
    worker.has_loaded(anew.instance);
    worker.measure().await;
    stage.await_ready("m").await;
    let answer = stage.infer("m");
    worker.run().await;
    ended(answer).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_leaves_finishes_what_it_has_and_gets_nothing_more() {
    let stage = Stage::with(&["m"]);
    let mut leaves = stage.connect().await;
    leaves.serve(&stage, &["m"]).await;
    let mut stays = stage.connect().await;
    let order = stays.load_order().await;
    stays.has_loaded(order.instance);
    stage.await_devices(2).await;
    let answer = stage.infer("m");
    let batch = leaves.batch().await;
    leaves.say(FromWorker::Leaving(Leaving {}));
    assert!(matches!(leaves.next().await, FromServer::Leave(_)), "no more batches, and it is told so");
    stage.await_devices(1).await;
    let next = stage.infer("m");
    stays.run().await;
    ended(next).await.unwrap();
    leaves.has_run(&batch);
    let answer = ended(answer).await.unwrap();
    assert_eq!(answer.parameters["downbeat_device"], Parameter::String("d".to_owned()));
    drop(leaves);
    let mut standing = stage.core.standing.clone();
    soon(standing.wait_for(|standing| standing.workers == 1)).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn devices_that_are_called_alike_get_names_of_their_own() {
    let stage = Stage::with(&["m"]);
    let mut first = stage.connect().await;
    first.serve(&stage, &["m"]).await;
    let mut second = stage.connect().await;
    let order = second.load_order().await;
    second.has_loaded(order.instance);
    stage.await_devices(2).await;
    let (one, other) = (stage.infer("m"), stage.infer("m"));
    // Both before either is done, or one device could run them in turn.
    let (on_first, on_second) = (first.batch().await, second.batch().await);
    first.has_run(&on_first);
    second.has_run(&on_second);
    let mut names = Vec::new();
    for answer in [one, other] {
        names.push(ended(answer).await.unwrap().parameters["downbeat_device"].clone());
    }
    assert!(names.contains(&Parameter::String("d".to_owned())), "{names:?}");
    assert!(names.contains(&Parameter::String("d#2".to_owned())), "{names:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_does_not_fit_the_others_is_told_why_and_not_to_come_back() {
    let stage = Stage::with(&[]);
    let _real = stage.connect().await;
    stage.await_devices(1).await;
    let mut emulated = Puppet::emulated(stage.workers_at).await;
    let FromServer::Welcome(farewell) = emulated.next().await else { panic!("it is told something else") };
    assert!(farewell.refusal.contains("emulated devices answer with zeros"), "{farewell:?}");
    assert!(!farewell.again);
}
