//! Connections to the server.
//!
//! Both protocols are spoken through hyper's own connections, without a client on top: a request costs the client as
//! little as it can, since client and server often share a machine.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use http_body_util::Full;
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::TcpStream;
use tokio::sync::Semaphore;

use crate::target::{Protocol, Target};
use crate::wire::{Letter, Reply};

/// What a large answer may have on its way before the client must say that it read it: flow control is not what is
/// measured.
const WINDOW_BYTES: u32 = 16 << 20;

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TransportError {
    #[error("cannot connect to {authority}: {error}")]
    Connect { authority: String, error: std::io::Error },
    #[error("the connection failed: {0}")]
    Broken(#[from] hyper::Error),
}

/// Connections that are kept and used again.
#[derive(Debug)]
pub(crate) struct Connections {
    authority: String,
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    /// At most as many connections as there are permits, opened when needed; the last one used is used first.
    Http { free: Semaphore, idle: Mutex<Vec<http1::SendRequest<Full<Bytes>>>> },
    /// So many connections, each for many requests at a time, taken in turn.
    Grpc { slots: Vec<Slot>, turn: AtomicUsize },
}

/// A connection that is made when it is first needed, and again when it broke. Those who come meanwhile wait.
type Slot = tokio::sync::Mutex<Option<http2::SendRequest<Full<Bytes>>>>;

impl Connections {
    pub(crate) fn new(target: &Target, count: usize) -> Connections {
        let kind = match target.protocol {
            Protocol::Http => Kind::Http { free: Semaphore::new(count), idle: Mutex::new(Vec::new()) },
            Protocol::Grpc => {
                let slots = (0..count).map(|_| Slot::default()).collect();
                Kind::Grpc { slots, turn: AtomicUsize::new(0) }
            }
        };
        Connections { authority: target.authority.clone(), kind }
    }

    /// Sends a request and reads the answer. `on_sent` is called when the request is handed to a connection: until then
    /// it is the client that takes time.
    pub(crate) async fn exchange(
        &self,
        letter: &Letter,
        on_sent: impl FnOnce(),
    ) -> Result<Reply, TransportError> {
        match &self.kind {
            Kind::Http { free, idle } => self.exchange_http(free, idle, letter, on_sent).await,
            Kind::Grpc { slots, turn } => {
                let slot = &slots[turn.fetch_add(1, Ordering::Relaxed) % slots.len()];
                let mut sender = self.grpc_connection(slot).await?;
                on_sent();
                Ok(Reply::read(sender.send_request(letter.request()).await?).await?)
            }
        }
    }

    pub(crate) fn protocol(&self) -> Protocol {
        match self.kind {
            Kind::Http { .. } => Protocol::Http,
            Kind::Grpc { .. } => Protocol::Grpc,
        }
    }

    /// Opens the connections that every run needs, so that the first requests do not wait for them.
    pub(crate) async fn open(&self) -> Result<(), TransportError> {
        if let Kind::Grpc { slots, .. } = &self.kind {
            for slot in slots {
                self.grpc_connection(slot).await?;
            }
        }
        Ok(())
    }

    async fn exchange_http(
        &self,
        free: &Semaphore,
        idle: &Mutex<Vec<http1::SendRequest<Full<Bytes>>>>,
        letter: &Letter,
        on_sent: impl FnOnce(),
    ) -> Result<Reply, TransportError> {
        // It is never closed.
        let _permit = free.acquire().await;
        let kept = std::iter::from_fn(|| lock(idle).pop()).find(http1::SendRequest::is_ready);
        let mut sender = match kept {
            Some(sender) => sender,
            None => {
                let (sender, connection) = http1::handshake(TokioIo::new(self.connect().await?)).await?;
                // How it ends, its requests are told.
                tokio::spawn(connection);
                sender
            }
        };
        on_sent();
        let reply = Reply::read(sender.send_request(letter.request()).await?).await?;
        if sender.ready().await.is_ok() {
            lock(idle).push(sender);
        }
        Ok(reply)
    }

    async fn grpc_connection(&self, slot: &Slot) -> Result<http2::SendRequest<Full<Bytes>>, TransportError> {
        let mut slot = slot.lock().await;
        if let Some(sender) = slot.as_ref().filter(|sender| !sender.is_closed()) {
            return Ok(sender.clone());
        }
        let (sender, connection) = http2::Builder::new(TokioExecutor::new())
            .initial_stream_window_size(WINDOW_BYTES)
            .initial_connection_window_size(WINDOW_BYTES)
            .handshake(TokioIo::new(self.connect().await?))
            .await?;
        tokio::spawn(connection);
        *slot = Some(sender.clone());
        Ok(sender)
    }

    async fn connect(&self) -> Result<TcpStream, TransportError> {
        let failed = |error| TransportError::Connect { authority: self.authority.clone(), error };
        let stream = TcpStream::connect(&self.authority).await.map_err(failed)?;
        stream.set_nodelay(true).map_err(failed)?;
        Ok(stream)
    }
}

/// What is behind these locks is whole at all times, also where somebody panicked.
fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}
