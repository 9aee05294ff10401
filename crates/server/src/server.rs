//! The server as a whole: what is started, in which order, and how it ends.

use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use downbeat_profile::{ProfileFile, ProfileFileError, Span};
use downbeat_repository::{ModelError, Repository};
use downbeat_sched::Delays;
use tokio::sync::{mpsc, oneshot, watch};

use crate::admission::Admission;
use crate::catalogue::{Catalogue, State};
use crate::clock::Clock;
use crate::control::{Control, ControlSettings, Order, Standing};
use crate::device::{DeviceKind, DeviceSpec};
use crate::dispatch::{Command, Runtime, SchedulerSettings};
use crate::frontend;
use crate::link::{Hub, Switchboard};
use crate::metrics::{Metrics, serve_metrics};
use crate::profiles::ProfileStore;
use crate::settings::{ModelControl, Settings};
use crate::subcluster::{Assignment, AssignmentError, read_assignment};
use crate::supervisor::Supervisor;

/// Why a server does not start.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// A port cannot be had.
    #[error(
        "cannot listen on {address} for {what}: {error}; choose another with --{flag}, or 0 for a free one"
    )]
    Listen {
        /// What for.
        what: &'static str,
        /// Where.
        address: SocketAddr,
        /// The flag that changes it.
        flag: &'static str,
        /// Why not.
        error: io::Error,
    },
    /// The model repository cannot be used.
    #[error(transparent)]
    Repository(#[from] ModelError),
    /// A file of profiles cannot be used.
    #[error(transparent)]
    Profile(#[from] ProfileFileError),
    /// The assignment to sub-clusters cannot be used.
    #[error(transparent)]
    Subclusters(#[from] AssignmentError),
    /// A part of the server has ended that must not.
    #[error(
        "the server can no longer load models or look after its workers: this is a bug in Downbeat; see the log"
    )]
    Control,
    /// A worker cannot work.
    #[error("{0}")]
    Worker(String),
    /// The operating system does not give what is needed.
    #[error("cannot start: {0}")]
    System(#[from] io::Error),
    /// The scheduler's threads cannot be started.
    #[error("cannot start: {0}")]
    Scheduler(#[from] downbeat_shards::RuntimeError),
    /// A metric cannot be made.
    #[error("cannot start: {0}")]
    Metrics(#[from] prometheus::Error),
}

/// What the frontends talk to.
pub(crate) struct Core {
    pub(crate) runtime: Runtime,
    pub(crate) catalogue: Arc<Catalogue>,
    pub(crate) repository: Arc<Repository>,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) admission: Admission,
    pub(crate) orders: mpsc::Sender<Order>,
    pub(crate) standing: watch::Receiver<Standing>,
    /// All that was to be loaded at the start is, or cannot be.
    pub(crate) started: AtomicBool,
    /// A signal has come: unready, but still serving.
    pub(crate) draining: AtomicBool,
    /// Whether clients may load and unload models.
    pub(crate) model_control: ModelControl,
}

/// Serves until a signal comes.
pub async fn serve(settings: Settings) -> Result<(), ServerError> {
    let repository = Arc::new(Repository::open(&settings.model_repository)?);
    let given = settings.profile.iter().map(ProfileFile::read).collect::<Result<Vec<_>, _>>()?;
    let assignment = match &settings.subclusters {
        path if path.as_os_str().is_empty() => Assignment::new(),
        path => read_assignment(path)?,
    };
    // Before anybody can know that the server is there.
    let mut signals = Signals::new()?;
    let [http, grpc, metrics_listener, workers] = listen(&settings)?;
    let metrics = Arc::new(Metrics::new()?);
    let (stop, stopped) = watch::channel(false);
    let (dismiss, dismissed) = watch::channel(false);

    let switchboard = Switchboard::default();
    let delays = Delays { control: Span::from_micros(settings.control_delay_us), data: Span::ZERO };
    let reserve = Span::from_micros(settings.response_reserve_us);
    let rule = settings.spare_devices.rule();
    let scheduler = SchedulerSettings { rule, delays, reserve, threads: scheduler_threads(&settings) };
    let outbox = Box::new(switchboard.clone());
    let runtime = Runtime::start(Clock::start(), Arc::clone(&metrics), scheduler, outbox)?;

    let (notices, heard) = mpsc::unbounded_channel();
    let token = if settings.worker_token.is_empty() { secret()? } else { settings.worker_token.clone() };
    let workers_at = workers.local_addr()?;
    Hub::new(
        &token,
        Duration::from_secs_f64(settings.worker_timeout_s),
        runtime.clone(),
        switchboard,
        notices,
    )
    .listen(workers)?;

    let threads = threads(&settings);
    let catalogue = Arc::new(Catalogue::default());
    let awaited = at_start(&settings, &repository)?;
    for model in &awaited {
        // From now on they are on their way, though no worker is there yet to load them.
        catalogue.set(model, 0, State::Loading, "");
    }
    let (orders, ordered) = mpsc::channel(64);
    let standing = Control::start(
        ControlSettings {
            default_slo: Span::from_millis_f64(settings.default_slo_ms),
            queue_limit: settings.queue_limit,
            max_wait: Span::from_millis_f64(settings.max_wait_ms),
            device_timeout: Duration::from_secs_f64(settings.device_timeout_s),
            open_size: settings.open_size,
            variant: format!("t{threads}"),
            assignment,
        },
        Arc::clone(&repository),
        ProfileStore::new(given, Some(settings.cache_dir.clone())),
        Arc::clone(&catalogue),
        Arc::clone(&metrics),
        runtime.clone(),
        heard,
        ordered,
    );
    let core = Arc::new(Core {
        runtime,
        catalogue,
        repository,
        metrics: Arc::clone(&metrics),
        admission: Admission::new(settings.pending_max_mib << 20),
        orders,
        standing: standing.clone(),
        started: AtomicBool::new(false),
        draining: AtomicBool::new(false),
        model_control: settings.model_control_mode,
    });

    tracing::info!(
        "HTTP on {}, gRPC on {}, metrics on {}, workers on {workers_at}",
        http.local_addr()?,
        grpc.local_addr()?,
        metrics_listener.local_addr()?
    );
    let frontends = start_frontends(&core, &settings, [http, grpc, metrics_listener], &stopped)?;
    let supervisor = Supervisor {
        program: std::env::current_exe()?,
        connect: SocketAddr::new(reachable(workers_at.ip()), workers_at.port()).to_string(),
        token,
        onnxruntime: settings.onnxruntime.clone(),
        threads,
        log: [settings.log_format.name().to_owned(), settings.log_level.clone()],
        metrics,
        standing: standing.clone(),
        stop: dismissed,
    };
    let children = start_workers(&settings, &supervisor);

    let mut result = tokio::select! {
        started = start_models(&core, awaited, children.len(), standing) => started,
        () = signals.next() => Ok(()),
    };
    if result.is_ok() && !signals.came {
        tokio::select! {
            () = signals.next() => {}
            () = control_ended(core.standing.clone()) => result = Err(ServerError::Control),
        }
    }
    if result.is_ok() {
        tokio::select! {
            () = drain(&core, &settings, &stop, frontends) => {}
            () = signals.next() => tracing::warn!("a second signal: stopping at once"),
        }
    }
    // What ran is answered, or nobody waits for it any more.
    let _ = stop.send(true);
    let _ = dismiss.send(true);
    for child in children {
        let _ = tokio::time::timeout(Duration::from_secs(5), child).await;
    }
    result
}

type Frontends = Vec<tokio::task::JoinHandle<()>>;

fn start_frontends(
    core: &Arc<Core>,
    settings: &Settings,
    listeners: [TcpListener; 3],
    stopped: &watch::Receiver<bool>,
) -> Result<Frontends, ServerError> {
    let until_stopped = || {
        let mut stopped = stopped.clone();
        async move {
            // An error says that the server is gone.
            let _ = stopped.wait_for(|stop| *stop).await;
        }
    };
    let [http, grpc, metrics] = listeners;
    let message_max = usize::try_from(settings.message_max_mib << 20).unwrap_or(usize::MAX);
    let http_settings = frontend::HttpSettings {
        body_bytes_max: message_max,
        connections_max: settings.connections_max,
        admission: core.admission.clone(),
        ..frontend::HttpSettings::default()
    };
    let grpc_settings = frontend::GrpcSettings {
        message_bytes_max: message_max,
        connections_max: settings.connections_max,
        admission: core.admission.clone(),
        ..frontend::GrpcSettings::default()
    };
    let http = frontend::serve_http(listener(http)?, Arc::clone(core), http_settings, until_stopped());
    let grpc = frontend::serve_grpc(listener(grpc)?, Arc::clone(core), grpc_settings, until_stopped());
    let text = Arc::clone(&core.metrics);
    let metrics = serve_metrics(listener(metrics)?, text, until_stopped());
    let metrics = async move {
        if let Err(error) = metrics.await {
            tracing::error!("metrics are no longer served: {error}");
        }
    };
    // Nobody is waited for who reads metrics.
    tokio::spawn(metrics);
    Ok(vec![tokio::spawn(http), tokio::spawn(grpc)])
}

fn start_workers(settings: &Settings, supervisor: &Supervisor) -> Vec<tokio::task::JoinHandle<()>> {
    let mut children = Vec::new();
    let mut first = 0;
    for device in settings.device.iter().flat_map(DeviceSpec::workers) {
        let count = device.count;
        children.push(supervisor.keep(device, first));
        first += count;
    }
    children
}

/// The models that are loaded at the start.
fn at_start(settings: &Settings, repository: &Repository) -> Result<Vec<String>, ServerError> {
    if settings.model_control_mode == ModelControl::None && !settings.load_model.is_empty() {
        tracing::warn!(
            "--load-model is not used: all models are loaded; it is for --model-control-mode explicit"
        );
    }
    let all = settings.model_control_mode == ModelControl::None
        || settings.load_model.iter().any(|name| name == "*");
    Ok(if all { repository.models()? } else { settings.load_model.clone() })
}

/// Waits for the server's own workers and loads what is to be loaded.
async fn start_models(
    core: &Core,
    names: Vec<String>,
    workers: usize,
    standing: watch::Receiver<Standing>,
) -> Result<(), ServerError> {
    await_workers(workers, standing).await?;
    let mut loads = Vec::new();
    for model in names {
        let (reply, loaded) = oneshot::channel();
        if core.orders.send(Order::Load { model, config: None, reply }).await.is_ok() {
            loads.push(loaded);
        }
    }
    let mut ready = 0;
    let total = loads.len();
    for loaded in loads {
        // The reason was logged where it arose.
        ready += usize::from(matches!(loaded.await, Ok(Ok(()))));
    }
    core.started.store(true, Ordering::Relaxed);
    let devices = core.standing.borrow().devices;
    tracing::info!("serving {ready} of {total} models on {devices} devices");
    Ok(())
}

/// How long workers may take to connect before that is worth a line, and how often it is said again.
const WORKERS_LATE: Duration = Duration::from_secs(10);

/// How many such lines there are before models are loaded on the workers that are there, if any is.
const WORKERS_GIVEN_UP: u32 = 3;

/// Waits until the server's own workers have connected. One that never does is said, and in the end not waited for:
/// when it comes, it loads what the others have.
async fn await_workers(workers: usize, mut standing: watch::Receiver<Standing>) -> Result<(), ServerError> {
    let settled = |standing: &Standing| standing.workers >= workers || standing.trouble.is_some();
    for lines in 1.. {
        let waited = tokio::time::timeout(WORKERS_LATE, async {
            // An error says that the server ends.
            standing.wait_for(settled).await.ok().and_then(|standing| standing.trouble.clone())
        });
        match waited.await {
            Ok(Some(trouble)) => return Err(ServerError::Worker(with_flag(&trouble))),
            Ok(None) => return Ok(()),
            Err(_) => {}
        }
        let connected = standing.borrow().workers;
        tracing::warn!(
            "{connected} of {workers} workers have connected after {:?}: models are loaded when all have",
            WORKERS_LATE * lines
        );
        if connected > 0 && lines >= WORKERS_GIVEN_UP {
            tracing::warn!("models are loaded on the workers that are there");
            return Ok(());
        }
    }
    Ok(())
}

/// What a worker says of a library that it does not find, with the flag that names it.
fn with_flag(trouble: &str) -> String {
    let names_it = !trouble.contains("ONNX Runtime") || trouble.contains("--onnxruntime");
    let flag = if names_it { "" } else { "; --onnxruntime FILE names it, too" };
    format!("{trouble}{flag}")
}

/// Unready at once; serves on for a while; then lets what runs finish.
async fn drain(core: &Core, settings: &Settings, stop: &watch::Sender<bool>, frontends: Frontends) {
    core.draining.store(true, Ordering::Relaxed);
    tracing::info!(
        "unready; serving on for {} s, then stopping; a second signal stops at once",
        settings.drain_s
    );
    tokio::time::sleep(Duration::from_secs_f64(settings.drain_s)).await;
    tracing::info!("stopping");
    let _ = stop.send(true);
    core.runtime.send(Command::Drain);
    // Bounded by the deadlines of what is still under way; a client that does not read its answer is not waited for.
    let finished = async {
        for frontend in frontends {
            let _ = frontend.await;
        }
    };
    if tokio::time::timeout(FINISH_WITHIN, finished).await.is_err() {
        tracing::warn!("some clients have not taken their answers after {FINISH_WITHIN:?}: they are left");
    }
}

/// How long clients may take to read what was answered, when the server stops.
const FINISH_WITHIN: Duration = Duration::from_secs(30);

/// Waits until the control task is gone, which must never be: better no server than one that looks ready and is not.
async fn control_ended(mut standing: watch::Receiver<Standing>) {
    while standing.changed().await.is_ok() {}
}

/// SIGINT and SIGTERM.
struct Signals {
    interrupt: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
    came: bool,
}

impl Signals {
    fn new() -> io::Result<Signals> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Signals {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            came: false,
        })
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
        self.came = true;
    }
}

fn listen(settings: &Settings) -> Result<[TcpListener; 4], ServerError> {
    let listen = |what, ip, port, flag| {
        let address = SocketAddr::new(ip, port);
        TcpListener::bind(address).map_err(|error| ServerError::Listen { what, address, flag, error })
    };
    Ok([
        listen("HTTP", settings.address, settings.http_port, "http-port")?,
        listen("gRPC", settings.address, settings.grpc_port, "grpc-port")?,
        listen("metrics", settings.address, settings.metrics_port, "metrics-port")?,
        listen("workers", settings.worker_address, settings.worker_port, "worker-port")?,
    ])
}

fn listener(listener: TcpListener) -> io::Result<tokio::net::TcpListener> {
    listener.set_nonblocking(true)?;
    tokio::net::TcpListener::from_std(listener)
}

/// Where a process of this host reaches a listener.
fn reachable(ip: IpAddr) -> IpAddr {
    match ip {
        IpAddr::V4(ip) if ip.is_unspecified() => std::net::Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => std::net::Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    }
}

/// Among how many threads the scheduler divides the models. One that does everything is enough for what the frontends
/// of some dozens of cores can take in, and costs less than several that hand things to each other.
fn scheduler_threads(settings: &Settings) -> usize {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    match settings.scheduler_threads {
        0 => (cores / 32).clamp(1, 8),
        threads => threads,
    }
}

/// Threads per operator: the cores divided among the workers that compute on them.
fn threads(settings: &Settings) -> u32 {
    if settings.intra_op_threads > 0 {
        return settings.intra_op_threads;
    }
    let workers = settings.device.iter().filter(|device| device.kind == DeviceKind::Cpu);
    let workers: u32 = workers.map(|device| device.count).sum();
    let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get() as u32);
    (cores / workers.max(1)).max(1)
}

/// A secret that only this server and its children know.
fn secret() -> io::Result<String> {
    use std::io::Read;
    let mut bytes = [0; 16];
    std::fs::File::open(PathBuf::from("/dev/urandom"))?.read_exact(&mut bytes)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}
