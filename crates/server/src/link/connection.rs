//! One connection to a worker.

#![allow(clippy::disallowed_types, reason = "batches under way are looked up by id")]

use std::collections::HashMap;
use std::io::{BufWriter, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use crossbeam_channel::{Receiver, Sender};
use downbeat_profile::Span;
use downbeat_sched::{BatchId, GpuId};

use super::message::{Fetch, Finished, FromServer, Load, Run, ToWorker, Unload, Welcome};
use super::{rows, tensors, write};
use crate::dispatch::{Batch, Command, InstanceId};
use crate::files::NotedFile;
use crate::subcluster::Pool;

/// A worker process; one that comes back is another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct WorkerId(pub(super) u32);

/// A device of a worker.
#[derive(Clone, Debug)]
pub(crate) struct WorkerDevice {
    pub(crate) gpu: GpuId,
    pub(crate) name: Arc<str>,
    pub(crate) pool: Pool,
    pub(crate) emulated: bool,
}

/// A worker that is connected.
#[derive(Clone, Debug)]
pub(crate) struct Worker {
    pub(crate) id: WorkerId,
    pub(crate) name: Arc<str>,
    pub(crate) devices: Vec<WorkerDevice>,
    pub(super) outgoing: Sender<Outgoing>,
    pub(super) under_way: UnderWay,
    pub(super) stream: Arc<TcpStream>,
    pub(super) files: Files,
}

/// What is to be written to a worker.
#[derive(Debug)]
#[allow(clippy::large_enum_variant, reason = "orders to load are few, and moved once or twice")]
pub(crate) enum Outgoing {
    Message(FromServer),
    Batch {
        device: u32,
        batch: Batch,
    },
    Piece {
        of: Fetch,
        data: Bytes,
    },
    /// The last thing that is said.
    Dismissal(Welcome),
}

/// The batches that a worker was sent and has not finished: the rows of each request, and when it should be done.
#[derive(Clone, Debug, Default)]
pub(crate) struct UnderWay {
    batches: Arc<Mutex<Batches>>,
}

/// No time where it lies past all clocks.
type Batches = HashMap<u64, (Vec<u32>, Option<Instant>)>;

impl UnderWay {
    fn lock(&self) -> MutexGuard<'_, Batches> {
        self.batches.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, batch: &Batch) {
        let rows = batch.requests.iter().map(|(rows, _)| *rows).collect();
        let expected = Duration::from_nanos(batch.expected.as_nanos());
        let due = Instant::now().checked_add(expected);
        self.lock().insert(batch.id.0, (rows, due));
    }

    /// What the dispatcher is to know of a batch that a device has finished; nothing where it was not sent that.
    pub(crate) fn finish(&self, gpu: GpuId, finished: Finished, payload: Bytes) -> Option<Command> {
        let (rows, _) = self.lock().remove(&finished.batch)?;
        let outputs = if finished.trouble.is_empty() {
            tensors::tensors(finished.outputs, payload)
                .ok_or_else(|| "the worker's answer is not understood".to_owned())
                .and_then(|outputs| rows::part(outputs, &rows))
        } else {
            Err(finished.trouble)
        };
        let (batch, busy) = (BatchId(finished.batch), Span::from_nanos(finished.busy_ns));
        Some(Command::Finished { gpu, batch, busy, outputs })
    }

    fn first_due(&self) -> Option<Instant> {
        self.lock().values().filter_map(|(_, due)| *due).min()
    }
}

/// The files that a worker may ask for, by model.
#[derive(Clone, Debug, Default)]
pub(super) struct Files {
    by_instance: Arc<Mutex<HashMap<u32, Vec<NotedFile>>>>,
}

impl Files {
    pub(super) fn get(&self, instance: u32, file: u32) -> Option<NotedFile> {
        let files = self.by_instance.lock().unwrap_or_else(PoisonError::into_inner);
        files.get(&instance)?.get(file as usize).cloned()
    }

    fn set(&self, instance: u32, files: Vec<NotedFile>) {
        self.by_instance.lock().unwrap_or_else(PoisonError::into_inner).insert(instance, files);
    }

    fn forget(&self, instance: u32) {
        self.by_instance.lock().unwrap_or_else(PoisonError::into_inner).remove(&instance);
    }
}

impl Worker {
    /// Tells the worker to load a model, of which it may ask for these files.
    pub(crate) fn load(&self, load: Load, files: Vec<NotedFile>) {
        self.files.set(load.instance, files);
        self.tell(FromServer::Load(load));
    }

    pub(crate) fn unload(&self, instance: InstanceId) {
        self.files.forget(instance.0);
        self.tell(FromServer::Unload(Unload { instance: instance.0 }));
    }

    pub(crate) fn tell(&self, message: FromServer) {
        // A connection that has just broken is reported by its reader.
        let _ = self.outgoing.send(Outgoing::Message(message));
    }

    /// How late the latest of its batches is by now.
    pub(crate) fn behind(&self) -> Duration {
        self.under_way.first_due().map_or(Duration::ZERO, |due| due.elapsed())
    }

    /// Ends the connection with a reason; the reader reports the worker as gone. `again` tells it to come back.
    pub(crate) fn dismiss(&self, why: &str, again: bool) {
        // A connection that has just broken is reported by its reader.
        let _ = self.outgoing.send(Outgoing::Dismissal(Welcome { refusal: why.to_owned(), again }));
    }

    /// Cuts the connection; the reader reports the worker as gone.
    pub(crate) fn cut(&self) {
        // It may be cut already.
        let _ = self.stream.shutdown(Shutdown::Both);
    }
}

/// Writes to a worker until the connection breaks or nobody is left who could send.
pub(super) fn write_all(stream: &TcpStream, outgoing: &Receiver<Outgoing>, under_way: &UnderWay) {
    let mut to = BufWriter::with_capacity(64 << 10, stream);
    for next in outgoing {
        let last = matches!(next, Outgoing::Dismissal(_));
        if write_one(&mut to, next, under_way).is_err() {
            let _ = stream.shutdown(Shutdown::Both);
            return;
        }
        if last {
            // Only this half: with what the worker says unread, the other end would not get to read why.
            let _ = stream.shutdown(Shutdown::Write);
            return;
        }
    }
}

pub(crate) fn write_one(to: &mut impl Write, next: Outgoing, under_way: &UnderWay) -> std::io::Result<()> {
    let message = |body| ToWorker { body: Some(body) };
    match next {
        Outgoing::Message(body) => write(to, &message(body), std::iter::empty()),
        Outgoing::Dismissal(why) => write(to, &message(FromServer::Welcome(why)), std::iter::empty()),
        Outgoing::Piece { of, data } => {
            write(to, &message(FromServer::Piece(of)), std::iter::once(data.as_ref()))
        }
        Outgoing::Batch { device, batch } => {
            under_way.add(&batch);
            let run = Run {
                batch: batch.id.0,
                device,
                instance: batch.instance.0,
                rows: batch.rows,
                inputs: rows::describe_joined(&batch),
            };
            write(to, &message(FromServer::Run(run)), rows::joined(&batch))
        }
    }
}
