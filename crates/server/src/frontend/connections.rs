//! Connections: accepted up to a limit, told apart by protocol, finished gracefully.

use std::future::Future;
use std::io::Write;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::Request;
use hyper::body::Incoming;
use hyper::server::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};

use super::outgoing::Progress;

/// What every HTTP/2 connection starts with.
const HTTP2_PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// How often a connection is asked whether it is still there, and how long it may take to answer.
const PING: Duration = Duration::from_secs(20);

/// Requests that one HTTP/2 connection may have open.
const STREAMS_MAX: u32 = 1024;

/// Bytes that a client may send ahead: of one request, and on a connection. Tensors are large, and round trips long.
const STREAM_WINDOW_BYTES: u32 = 2 << 20;
const CONNECTION_WINDOW_BYTES: u32 = 16 << 20;

/// Which connections are served, and how.
#[derive(Clone, Debug)]
pub(super) struct Connections {
    /// How many there may be at once. One more is refused.
    pub(super) max: usize,
    /// How long one may take to send a request's headers, and stay idle between two requests (HTTP/1.1).
    pub(super) idle_timeout: Duration,
    /// How long one may take nothing of an answer.
    pub(super) answer_timeout: Duration,
    /// Whether HTTP/1.1 is served besides HTTP/2.
    pub(super) http1: bool,
}

impl Connections {
    /// Serves `app` until `shutdown` is over and every request that was begun is answered. Dropping the future ends all
    /// connections at once.
    pub(super) async fn serve(self, listener: TcpListener, app: Router, shutdown: impl Future<Output = ()>) {
        let permits = Arc::new(Semaphore::new(self.max));
        let graceful = GracefulShutdown::new();
        let (closing, _) = watch::channel(());
        let mut tasks = JoinSet::new();
        let mut refusals = Refusals::default();
        let mut shutdown = pin!(shutdown);
        loop {
            let stream = tokio::select! {
                biased;
                () = &mut shutdown => break,
                Some(_) = tasks.join_next() => continue,
                accepted = listener.accept() => match accepted {
                    Ok((stream, _)) => stream,
                    Err(error) => {
                        tracing::warn!(%error, "a connection could not be accepted");
                        // Out of file descriptors, most likely: trying again at once would only burn a core.
                        sleep(Duration::from_millis(10)).await;
                        continue;
                    }
                },
            };
            let Ok(permit) = Arc::clone(&permits).try_acquire_owned() else {
                if let Some(refused) = refusals.count(Instant::now()) {
                    tracing::warn!(
                        max = self.max,
                        refused,
                        "connections were refused: there are as many as allowed"
                    );
                }
                self.refuse(stream);
                continue;
            };
            let (connections, app, watcher) = (self.clone(), app.clone(), graceful.watcher());
            let mut closing = closing.subscribe();
            tasks.spawn(async move {
                let _permit = permit;
                let protocol = tokio::select! {
                    protocol = detect(&stream, connections.idle_timeout) => protocol,
                    // Nothing was asked yet, so nothing is owed.
                    _ = closing.changed() => None,
                };
                if let Some(protocol) = protocol {
                    connections.drive(stream, protocol, app, watcher).await;
                }
            });
        }
        drop(listener);
        closing.send_replace(());
        graceful.shutdown().await;
    }

    async fn drive(&self, stream: TcpStream, protocol: Protocol, app: Router, watcher: Watcher) {
        // Answers are written whole: holding back a last small packet only adds latency.
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%error, "TCP_NODELAY could not be set");
        }
        let progress = Progress::default();
        let app = Watched { app: TowerToHyperService::new(app), progress: progress.clone() };
        tokio::select! {
            () = self.serve_connection(TokioIo::new(stream), protocol, app, watcher) => {}
            () = progress.stalled(self.answer_timeout) => {
                tracing::debug!("a connection was closed: its client does not take its answers");
            }
        }
    }

    async fn serve_connection(
        &self,
        io: TokioIo<TcpStream>,
        protocol: Protocol,
        app: Watched,
        watcher: Watcher,
    ) {
        let end = match protocol {
            Protocol::Http1 if !self.http1 => Ok(()),
            Protocol::Http1 => {
                let connection = http1::Builder::new()
                    .timer(TokioTimer::new())
                    .header_read_timeout(self.idle_timeout)
                    .serve_connection(io, app);
                watcher.watch(connection).await
            }
            Protocol::Http2 => {
                let connection = http2::Builder::new(TokioExecutor::new())
                    .timer(TokioTimer::new())
                    .keep_alive_interval(PING)
                    .keep_alive_timeout(PING)
                    .max_concurrent_streams(STREAMS_MAX)
                    .initial_stream_window_size(STREAM_WINDOW_BYTES)
                    .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
                    .serve_connection(io, app);
                watcher.watch(connection).await
            }
        };
        if let Err(error) = end {
            tracing::debug!(%error, "a connection ended early");
        }
    }

    /// Ends a connection that is one too many, with a word where the protocol has one for it.
    fn refuse(&self, stream: TcpStream) {
        const BODY: &str = r#"{"error":"the server has as many connections as it takes"}"#;
        if self.http1
            && let Ok(mut stream) = stream.into_std()
        {
            // It is the first thing written: it fits the socket's buffer, or the client is gone.
            let _ = write!(
                stream,
                "HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/json\r\n\
                 content-length: {}\r\nconnection: close\r\n\r\n{BODY}",
                BODY.len()
            );
        }
    }
}

/// How often it is said that connections are refused: whoever knocks again and again does not fill the log.
const REFUSALS_EVERY: Duration = Duration::from_secs(10);

/// Connections that were refused since that was said last.
#[derive(Debug, Default)]
struct Refusals {
    unsaid: u64,
    said: Option<Instant>,
}

impl Refusals {
    /// Counts one. How many there were, where it is time to say so.
    fn count(&mut self, now: Instant) -> Option<u64> {
        self.unsaid += 1;
        if self.said.is_some_and(|said| now.duration_since(said) < REFUSALS_EVERY) {
            return None;
        }
        self.said = Some(now);
        Some(std::mem::take(&mut self.unsaid))
    }
}

/// Tells the app of each request which connection its answer goes to.
struct Watched {
    app: TowerToHyperService<Router>,
    progress: Progress,
}

impl hyper::service::Service<Request<Incoming>> for Watched {
    type Response = <TowerToHyperService<Router> as hyper::service::Service<Request<Incoming>>>::Response;
    type Error = <TowerToHyperService<Router> as hyper::service::Service<Request<Incoming>>>::Error;
    type Future = <TowerToHyperService<Router> as hyper::service::Service<Request<Incoming>>>::Future;

    fn call(&self, mut request: Request<Incoming>) -> Self::Future {
        request.extensions_mut().insert(self.progress.clone());
        self.app.call(request)
    }
}

#[derive(Clone, Copy, Debug)]
enum Protocol {
    Http1,
    Http2,
}

/// Which protocol a connection speaks, by its first bytes; `None` if they do not come in time.
async fn detect(stream: &TcpStream, limit: Duration) -> Option<Protocol> {
    let deadline = Instant::now() + limit;
    let mut start = [0; HTTP2_PREFACE.len()];
    loop {
        let left = deadline.checked_duration_since(Instant::now())?;
        let read = timeout(left, stream.peek(&mut start)).await.ok()?.ok()?;
        match &start[..read] {
            [] => return None,
            start if start == HTTP2_PREFACE => return Some(Protocol::Http2),
            start if !HTTP2_PREFACE.starts_with(start) => return Some(Protocol::Http1),
            // A peek does not wait for more than there is. Honest clients send the preface in one piece.
            _ => sleep(Duration::from_millis(5)).await,
        }
    }
}

#[cfg(test)]
mod tests;
