//! Where workers connect.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use bytes::Bytes;
use tokio::sync::mpsc;

use super::connection::{Files, UnderWay, write_all};
use super::message::{Device, Fetch, FromServer, FromWorker, Hello, Point, ToServer, VERSION, Welcome};
use super::{Frame, LinkError, Outgoing, Switchboard, Worker, WorkerDevice, WorkerId, read, write};
use crate::dispatch::{Command, InstanceId, Runtime};
use crate::files::Stamp;
use crate::subcluster::{Pool, SubclusterError};
use crate::vital::spawn_vital;

/// How long a worker may take to say who it is, and how many may be at it: whoever they are, they have shown no token.
const HELLO_WITHIN: Duration = Duration::from_secs(10);
const GREETING_MAX: usize = 64;

/// The longest payload taken from a worker.
const PAYLOAD_MAX: u64 = 4 << 30;

/// How much of a file is sent at once.
const PIECE: usize = 4 << 20;

/// What the hub reports of its workers.
#[derive(Debug)]
pub(crate) enum Notice {
    /// A worker came, and waits for models.
    Up(Worker),
    /// A worker came that cannot work, and says why.
    Unfit { name: String, is_child: bool, trouble: String },
    /// A worker takes no more batches, and goes when it has finished those it has.
    Leaving { worker: WorkerId },
    /// A worker is gone.
    Down { worker: WorkerId, why: String },
    /// A worker loaded a model, or could not.
    Loaded { worker: WorkerId, instance: InstanceId, result: Result<(), LoadTrouble> },
    /// A worker measured a model.
    Measured { worker: WorkerId, instance: InstanceId, result: Result<Measurement, String> },
}

/// Why a worker could not load a model.
#[derive(Debug)]
pub(crate) struct LoadTrouble {
    pub(crate) trouble: String,
    /// Whether its files are not those that were noted.
    pub(crate) changed: bool,
}

/// What a worker found out about a model.
#[derive(Debug)]
pub(crate) struct Measurement {
    pub(crate) points: Vec<Point>,
    /// Whether it was cut short.
    pub(crate) curtailed: bool,
}

/// Takes in workers and hears what they have to say, on threads of its own.
#[derive(Clone, Debug)]
pub(crate) struct Hub {
    token: Arc<str>,
    runtime: Runtime,
    switchboard: Switchboard,
    notices: mpsc::UnboundedSender<Notice>,
    /// A worker that says nothing for so long is gone.
    silence_max: Duration,
    next_worker: Arc<AtomicU32>,
    /// Held by every connection that has not said who it is.
    greeting: Arc<()>,
}

impl Hub {
    pub(crate) fn new(
        token: &str,
        silence_max: Duration,
        runtime: Runtime,
        switchboard: Switchboard,
        notices: mpsc::UnboundedSender<Notice>,
    ) -> Hub {
        Hub {
            token: token.into(),
            runtime,
            switchboard,
            notices,
            silence_max,
            next_worker: Arc::default(),
            greeting: Arc::default(),
        }
    }

    /// Takes in workers from now on.
    pub(crate) fn listen(&self, listener: TcpListener) -> io::Result<()> {
        let hub = self.clone();
        let accept = move || {
            for accepted in listener.incoming() {
                let stream = match accepted {
                    Ok(stream) => stream,
                    Err(error) => {
                        tracing::warn!(%error, "a worker's connection could not be accepted");
                        // Out of file descriptors, most likely: trying again at once would only burn a core.
                        thread::sleep(Duration::from_millis(10));
                        continue;
                    }
                };
                let (hub, greeting) = (hub.clone(), Arc::clone(&hub.greeting));
                // Two are the hub's own and this one.
                if Arc::strong_count(&greeting) > GREETING_MAX + 1 {
                    tracing::warn!(
                        "a worker was turned away: too many have connected and not said who they are"
                    );
                    continue;
                }
                let attend = move || hub.attend(stream, greeting);
                if let Err(error) = spawn_vital("link", attend) {
                    tracing::warn!(%error, "a worker was turned away: no thread for it");
                }
            }
        };
        spawn_vital("hub", accept)
    }

    /// Stays with a worker until it is gone.
    fn attend(&self, stream: TcpStream, greeting: Arc<()>) {
        let peer = stream.peer_addr().map_or_else(|_| "?".to_owned(), |peer| peer.to_string());
        let welcome = self.welcome(stream);
        drop(greeting);
        let worker = match welcome {
            Ok(Some(worker)) => worker,
            Ok(None) => return,
            // Somebody who looked whether the port is open, or a worker that was stopped: nothing is wrong here.
            Err(LinkError::Closed) => {
                tracing::debug!(%peer, "a connection was closed before it said who it is");
                return;
            }
            Err(error) => {
                tracing::warn!(%peer, %error, "a worker could not be taken in");
                return;
            }
        };
        self.notify(Notice::Up(worker.clone()));
        let error = self.listen_to(&worker);
        worker.cut();
        // At once, so that what it ran is retried.
        let gpus = worker.devices.iter().map(|device| device.gpu).collect();
        self.runtime.send(Command::DevicesFailed { gpus });
        self.notify(Notice::Down { worker: worker.id, why: error.to_string() });
        // Last: whoever gets the number next must not be heard of before this one's end is.
        for device in &worker.devices {
            self.switchboard.disconnect(device.gpu);
        }
    }

    fn welcome(&self, stream: TcpStream) -> Result<Option<Worker>, LinkError> {
        stream.set_nodelay(true)?;
        super::notice_death(&stream)?;
        let stream = Arc::new(stream);
        let mut greeting = Within { stream: &stream, until: Instant::now() + HELLO_WITHIN };
        let Frame { message: ToServer { body }, .. } = read(&mut greeting, 0)?;
        stream.set_read_timeout(Some(self.silence_max))?;
        let answer = |refusal: &str| {
            let welcome = FromServer::Welcome(Welcome { refusal: refusal.to_owned(), again: false });
            write(&mut &*stream, &super::message::ToWorker { body: Some(welcome) }, std::iter::empty())
        };
        let Some(FromWorker::Hello(hello)) = body else {
            answer("the first message was no greeting")?;
            return Ok(None);
        };
        let pools = match self.check(&hello) {
            Ok(pools) => pools,
            Err(refusal) => {
                tracing::warn!(worker = hello.name, "a worker was refused: {refusal}");
                answer(&refusal)?;
                return Ok(None);
            }
        };
        if !hello.trouble.is_empty() {
            let Hello { name, is_child, trouble, .. } = hello;
            self.notify(Notice::Unfit { name, is_child, trouble });
            // It may be gone already.
            let _ = answer("understood");
            return Ok(None);
        }
        // First: who was welcomed before another has the lower number.
        let id = WorkerId(self.next_worker.fetch_add(1, Ordering::Relaxed));
        answer("")?;
        let (outgoing, queue) = crossbeam_channel::unbounded();
        let under_way = UnderWay::default();
        let writer = (Arc::clone(&stream), under_way.clone());
        thread::Builder::new()
            .name("link-out".to_owned())
            .spawn(move || write_all(&writer.0, &queue, &writer.1))?;
        let connect = |(device, pool): (usize, Pool)| WorkerDevice {
            gpu: self.switchboard.connect(device as u32, &outgoing),
            name: hello.devices[device].name.as_str().into(),
            pool,
            emulated: hello.devices[device].emulated,
        };
        Ok(Some(Worker {
            id,
            name: hello.name.as_str().into(),
            devices: pools.into_iter().enumerate().map(connect).collect(),
            outgoing,
            under_way,
            stream,
            files: Files::default(),
        }))
    }

    /// Whether a worker can be taken in, and where its devices belong.
    fn check(&self, hello: &Hello) -> Result<Vec<Pool>, String> {
        if hello.version != VERSION {
            let theirs = hello.version;
            return Err(format!(
                "the worker speaks version {theirs}, the server {VERSION}: use the same release"
            ));
        }
        if !same(hello.token.as_bytes(), self.token.as_bytes()) {
            return Err("the token is wrong: give the worker the server's --worker-token".to_owned());
        }
        let pool = |device: &Device| {
            let class = device.class.parse().map_err(|error| format!("{error}"))?;
            let subcluster = Some(device.subcluster.as_str()).filter(|name| !name.is_empty());
            let subcluster = subcluster.map(str::parse).transpose();
            Ok(Pool { class, subcluster: subcluster.map_err(|error: SubclusterError| error.to_string())? })
        };
        hello.devices.iter().map(pool).collect()
    }

    fn listen_to(&self, worker: &Worker) -> LinkError {
        let mut from = BufReader::with_capacity(64 << 10, &*worker.stream);
        loop {
            match read::<ToServer>(&mut from, PAYLOAD_MAX) {
                Ok(Frame { message, payload }) => self.heard(worker, message.body, payload),
                Err(LinkError::Io(error)) if error.kind() == io::ErrorKind::WouldBlock => {
                    return LinkError::Silent(self.silence_max);
                }
                Err(error) => return error,
            }
        }
    }

    fn heard(&self, worker: &Worker, body: Option<FromWorker>, payload: Bytes) {
        let result = |trouble: String| if trouble.is_empty() { Ok(()) } else { Err(trouble) };
        match body {
            Some(FromWorker::Finished(finished)) => {
                let gpu = worker.devices.get(finished.device as usize).map(|device| device.gpu);
                if let Some(command) = gpu.and_then(|gpu| worker.under_way.finish(gpu, finished, payload)) {
                    self.runtime.send(command);
                }
            }
            Some(FromWorker::Loaded(loaded)) => self.notify(Notice::Loaded {
                worker: worker.id,
                instance: InstanceId(loaded.instance),
                result: result(loaded.trouble)
                    .map_err(|trouble| LoadTrouble { trouble, changed: loaded.changed }),
            }),
            Some(FromWorker::Measured(measured)) => self.notify(Notice::Measured {
                worker: worker.id,
                instance: InstanceId(measured.instance),
                result: result(measured.trouble)
                    .map(|()| Measurement { points: measured.points, curtailed: measured.curtailed }),
            }),
            Some(FromWorker::Fetch(fetch)) => {
                let data = piece(worker, &fetch).unwrap_or_else(|error| {
                    tracing::warn!(worker = %worker.name, %error, "a file that a worker asked for cannot be read");
                    Bytes::new()
                });
                // A connection that has just broken.
                let _ = worker.outgoing.send(Outgoing::Piece { of: fetch, data });
            }
            Some(FromWorker::Leaving(_)) => self.notify(Notice::Leaving { worker: worker.id }),
            Some(FromWorker::Hello(_) | FromWorker::Alive(_)) | None => {}
        }
    }

    fn notify(&self, notice: Notice) {
        // The server is about to end.
        let _ = self.notices.send(notice);
    }
}

/// Reads from a stream until a certain time, however many reads that takes.
struct Within<'a> {
    stream: &'a TcpStream,
    until: Instant,
}

impl Read for Within<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let left = self.until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        self.stream.set_read_timeout(Some(left))?;
        let mut stream = self.stream;
        stream.read(into)
    }
}

fn piece(worker: &Worker, fetch: &Fetch) -> io::Result<Bytes> {
    let noted = worker.files.get(fetch.instance, fetch.file).ok_or(io::ErrorKind::NotFound)?;
    let mut data = vec![0; PIECE];
    let mut length = 0;
    let file = File::open(&noted.path)?;
    while length < PIECE {
        match file.read_at(&mut data[length..], fetch.offset + length as u64)? {
            0 => break,
            read => length += read,
        }
    }
    data.truncate(length);
    // After it was read: it may be written right now.
    if Stamp::of(&file.metadata()?) != noted.stamp {
        let path = noted.path.display();
        return Err(io::Error::other(format!("{path} has changed since the model was loaded")));
    }
    Ok(data.into())
}

/// Whether two secrets are the same, in a time that does not tell how much of them is.
fn same(a: &[u8], b: &[u8]) -> bool {
    a.len() == b.len() && a.iter().zip(b).fold(0, |differ, (a, b)| differ | (a ^ b)) == 0
}
