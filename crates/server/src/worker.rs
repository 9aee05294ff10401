//! A worker: a process that owns one device, or many emulated ones, and runs what the server sends.
//!
//! One thread listens to the server, one loads models, and each device has one that runs batches: loading a model does
//! not hold up those that are loaded.

mod departure;
mod device;
mod engines;
mod loader;

use std::io::{self, BufReader, BufWriter};
use std::net::TcpStream;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crossbeam_channel::Sender;

use crate::device::{DeviceKind, DeviceSpec};
use crate::link::message::{
    self, Alive, FromServer, FromWorker, Hello, ToServer, ToWorker, VERSION, Welcome,
};
use crate::link::{Frame, LinkError, notice_death, read, tensors, write};
pub use departure::Departure;
use device::{DeviceThread, Task};
use engines::Engines;
use loader::{Loader, Order};

/// The longest payload taken from a server.
const PAYLOAD_MAX: u64 = 4 << 30;

/// How a worker is started.
#[derive(Clone, Debug)]
pub struct WorkerSettings {
    /// The server's address for workers, `HOST:PORT`.
    pub connect: String,
    /// What the server asks of those it lets in.
    pub token: String,
    /// The devices to own.
    pub devices: DeviceSpec,
    /// The number of the first of them, for its name.
    pub first: u32,
    /// The library of ONNX Runtime, where it is not to be looked for.
    pub onnxruntime: Option<PathBuf>,
    /// Threads that share the work of one operator; 0 for one per core.
    pub threads: u32,
    /// Whether the server is on this host, with the same files, and has started this worker.
    pub is_child: bool,
}

/// Why a worker ends.
#[derive(Debug, thiserror::Error)]
pub enum WorkerError {
    /// The device or the engine cannot be used.
    #[error("{0}")]
    Unfit(String),
    /// The server cannot be reached.
    #[error("no server answers at {address}: {error}")]
    Unreachable {
        /// Where it was looked for.
        address: String,
        /// What came back.
        error: io::Error,
    },
    /// The server does not want this worker.
    #[error("the server at {address} refused the worker: {refusal}")]
    Refused {
        /// The server.
        address: String,
        /// What it said.
        refusal: String,
    },
    /// The server does not want this worker any more, or not now.
    #[error("the server at {address} sent the worker away: {why}")]
    Dismissed {
        /// The server.
        address: String,
        /// What it said.
        why: String,
    },
    /// The connection broke.
    #[error("the connection to the server at {address} ended: {why}")]
    Lost {
        /// The server.
        address: String,
        /// What happened.
        why: String,
    },
}

/// Works for a server until the connection ends, or until the worker has left as it was told to.
pub fn work(settings: &WorkerSettings, departure: &Departure) -> Result<(), WorkerError> {
    let result = work_until(settings, departure);
    departure.connected(None);
    // Whatever came in between: it was to end.
    result.or_else(|error| if departure.is_wanted() { Ok(()) } else { Err(error) })
}

fn work_until(settings: &WorkerSettings, departure: &Departure) -> Result<(), WorkerError> {
    let engines = Engines::start(settings);
    let address = settings.connect.clone();
    let lost = |error: LinkError| WorkerError::Lost { address: address.clone(), why: error.to_string() };
    let stream = TcpStream::connect(&address)
        .map_err(|error| WorkerError::Unreachable { address: address.clone(), error })?;
    stream.set_nodelay(true).and_then(|()| notice_death(&stream)).map_err(|error| lost(error.into()))?;
    let line = Line::new(stream.try_clone().map_err(|error| lost(error.into()))?);
    line.say(FromWorker::Hello(hello(settings, engines.as_ref().err())));
    let mut from = BufReader::with_capacity(64 << 10, stream);
    let greeting = read::<ToWorker>(&mut from, 0);
    // Only now: the server must have heard why.
    let engines = engines.map_err(WorkerError::Unfit)?;
    let Frame { message: ToWorker { body }, .. } = greeting.map_err(lost)?;
    match body {
        Some(FromServer::Welcome(welcome)) if welcome.refusal.is_empty() => {}
        Some(FromServer::Welcome(welcome)) => {
            return Err(WorkerError::Refused { address, refusal: welcome.refusal });
        }
        _ => return Err(WorkerError::Refused { address, refusal: "it is no Downbeat server".to_owned() }),
    }
    // The server itself says it of those it has started.
    if !settings.is_child {
        let devices: Vec<String> = devices(settings).collect();
        tracing::info!(
            "joined the server at {address} as {}, with {}",
            name(std::process::id()),
            devices.join(", ")
        );
    }

    let failed = |error: io::Error| lost(error.into());
    let devices: Vec<Sender<Task>> = (0..settings.devices.count)
        .map(|index| DeviceThread::start(index, line.clone()))
        .collect::<io::Result<_>>()
        .map_err(failed)?;
    keep_saying_alive(line.clone()).map_err(failed)?;
    let orders = Loader::start(engines, devices.clone(), line.clone(), settings.is_child).map_err(failed)?;
    departure.connected(Some(line));
    loop {
        let Frame { message, payload } = read::<ToWorker>(&mut from, PAYLOAD_MAX).map_err(lost)?;
        match message.body {
            Some(FromServer::Run(mut run)) => {
                let inputs = tensors::tensors(std::mem::take(&mut run.inputs), payload);
                if let Some(device) = devices.get(run.device as usize) {
                    let _ = device.send(Task::Run { run, inputs });
                }
            }
            Some(FromServer::Load(load)) => drop(orders.send(Order::Load(load))),
            Some(FromServer::Unload(unload)) => drop(orders.send(Order::Unload(unload.instance))),
            Some(FromServer::Measure(measure)) => {
                if let Some(device) = devices.first() {
                    let _ = device.send(Task::Measure(measure));
                }
            }
            Some(FromServer::Piece(fetch)) => drop(orders.send(Order::Piece(fetch, payload))),
            Some(FromServer::Leave(_)) => {
                finish_all(&devices);
                return Ok(());
            }
            Some(FromServer::Welcome(Welcome { refusal, again: false })) if !refusal.is_empty() => {
                return Err(WorkerError::Refused { address, refusal });
            }
            Some(FromServer::Welcome(Welcome { refusal, .. })) if !refusal.is_empty() => {
                return Err(WorkerError::Dismissed { address, why: refusal });
            }
            Some(FromServer::Welcome(_)) | None => {}
        }
    }
}

/// Waits until every device has done what it was sent.
fn finish_all(devices: &[Sender<Task>]) {
    let (done, all_done) = crossbeam_channel::bounded::<()>(0);
    for device in devices {
        let _ = device.send(Task::Leave(done.clone()));
    }
    drop(done);
    // Nothing is ever sent: it ends when the last device has let go.
    let _ = all_done.recv();
}

/// How often a worker says that it is there: several times within the shortest silence that a server may be set to.
const ALIVE_EVERY: Duration = Duration::from_millis(100);

/// Says so until the connection ends. From a thread of its own, since all others may be busy for long; a process that
/// hangs as a whole falls silent, and a thread that hangs is noticed by what it leaves undone.
fn keep_saying_alive(line: Line) -> io::Result<()> {
    let say = move || {
        while line.say_with(FromWorker::Alive(Alive {}), std::iter::empty()).is_ok() {
            thread::sleep(ALIVE_EVERY);
        }
    };
    thread::Builder::new().name("alive".to_owned()).spawn(say).map(drop)
}

/// Works for a server, and looks for it again whenever the connection is lost. Ends when there is no point in trying,
/// or when it was told to.
pub fn work_on(settings: &WorkerSettings, departure: &Departure) -> Result<(), WorkerError> {
    const FIRST: Duration = Duration::from_millis(200);
    const LAST: Duration = Duration::from_secs(10);
    let mut pause = FIRST;
    while !departure.is_wanted() {
        let started = Instant::now();
        match work(settings, departure) {
            Err(
                error @ (WorkerError::Unreachable { .. }
                | WorkerError::Lost { .. }
                | WorkerError::Dismissed { .. }),
            ) => {
                // A server that takes it in and drops it at once is no better than one that is not there.
                pause = if started.elapsed() > LAST { FIRST } else { (pause * 2).min(LAST) };
                tracing::warn!("{error}; the next try is in {:.1} s", pause.as_secs_f64());
                departure.pause(pause);
            }
            result => return result,
        }
    }
    Ok(())
}

/// What the worker calls its devices: with its host, unless that is the server's.
fn devices(settings: &WorkerSettings) -> impl Iterator<Item = String> {
    (0..settings.devices.count).map(|index| match settings.devices.device_name(settings.first + index) {
        name if settings.is_child => name,
        name => format!("{}/{name}", host()),
    })
}

fn hello(settings: &WorkerSettings, trouble: Option<&String>) -> Hello {
    let device = |name| message::Device {
        name,
        class: settings.devices.class.to_string(),
        emulated: settings.devices.kind == DeviceKind::Emulated,
        subcluster: settings.devices.subcluster.as_ref().map(ToString::to_string).unwrap_or_default(),
    };
    Hello {
        version: VERSION,
        token: settings.token.clone(),
        name: name(std::process::id()),
        devices: devices(settings).map(device).collect(),
        trouble: trouble.cloned().unwrap_or_default(),
        is_child: settings.is_child,
    }
}

/// What the worker in this process of this host is called.
pub(crate) fn name(process: u32) -> String {
    format!("{}/{process}", host())
}

fn host() -> String {
    std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default().trim().to_owned()
}

/// The way to the server, shared by all threads of a worker.
#[derive(Clone, Debug)]
struct Line {
    to: Arc<Mutex<BufWriter<TcpStream>>>,
}

impl Line {
    fn new(stream: TcpStream) -> Line {
        Line { to: Arc::new(Mutex::new(BufWriter::with_capacity(64 << 10, stream))) }
    }

    /// A broken connection is noticed by the thread that listens.
    fn say(&self, body: FromWorker) {
        let _ = self.say_with(body, std::iter::empty());
    }

    fn say_with<'a>(
        &self,
        body: FromWorker,
        payload: impl Iterator<Item = &'a [u8]> + Clone,
    ) -> io::Result<()> {
        let mut to = self.to.lock().unwrap_or_else(PoisonError::into_inner);
        write(&mut *to, &ToServer { body: Some(body) }, payload)
    }
}
