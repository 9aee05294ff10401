//! What is on its way out counts as being in the server until it is written: a client that does not read must not make
//! the server hold answers without limit, nor hold one for ever.

#[cfg(test)]
mod tests;

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::body::{Body, HttpBody};
use axum::extract::Request;
use axum::middleware::Next;
use axum::response::Response;
use bytes::Bytes;
use hyper::body::{Frame, SizeHint};
use tokio::time::{Instant, sleep};

use super::places::Places;
use crate::admission::Permit;

/// Answers are handed on in pieces of this size, so that it shows whether a client takes any of them.
const PIECE_BYTES: usize = 64 << 10;

/// Lets the places of answers go with their bytes.
pub(super) async fn hold(request: Request, next: Next) -> Response {
    let progress = request.extensions().get().cloned().unwrap_or_default();
    let mut response = next.run(request).await;
    let outgoing: Places = response.extensions_mut().remove().unwrap_or_default();
    response.map(|body| Body::new(Held::new(body, outgoing, progress)))
}

/// A body whose bytes hold the places of its answers.
struct Held {
    body: Body,
    /// Of answers to come.
    outgoing: Places,
    progress: Progress,
    /// Of the answers in `rest`.
    places: Arc<[Permit]>,
    /// Of the frame that is handed on in pieces.
    rest: Bytes,
}

impl Held {
    fn new(body: Body, outgoing: Places, progress: Progress) -> Held {
        let mut places = Vec::new();
        if let Some(bytes) = body.size_hint().exact() {
            // It is made already, all of it, and what it was made of is gone.
            outgoing.insist(bytes);
            places = outgoing.take();
        }
        Held { body, outgoing, progress, places: places.into(), rest: Bytes::new() }
    }
}

/// A piece of a body, and what its last byte takes along.
struct Piece {
    bytes: Bytes,
    _places: Arc<[Permit]>,
    _unwritten: Unwritten,
}

impl AsRef<[u8]> for Piece {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl HttpBody for Held {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        if self.rest.is_empty() {
            let frame = match ready!(Pin::new(&mut self.body).poll_frame(context)) {
                Some(Ok(frame)) => frame,
                end => return Poll::Ready(end),
            };
            match frame.into_data() {
                Ok(data) if !data.is_empty() => {
                    self.rest = data;
                    // All answers that were given before this frame are in it, or in one before.
                    let places = self.outgoing.take();
                    if !places.is_empty() {
                        self.places = places.into();
                    }
                }
                Ok(data) => return Poll::Ready(Some(Ok(Frame::data(data)))),
                Err(frame) => return Poll::Ready(Some(Ok(frame))),
            }
        }
        let length = self.rest.len().min(PIECE_BYTES);
        let piece = Piece {
            bytes: self.rest.split_to(length),
            _places: Arc::clone(&self.places),
            _unwritten: self.progress.begin(),
        };
        if self.rest.is_empty() && self.size_hint().exact().is_none() {
            // Another frame is of another answer.
            self.places = Arc::default();
        }
        Poll::Ready(Some(Ok(Frame::data(Bytes::from_owner(piece)))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let (mut hint, rest) = (self.body.size_hint(), self.rest.len() as u64);
        if let Some(upper) = hint.upper() {
            hint.set_upper(upper + rest);
        }
        hint.set_lower(hint.lower() + rest);
        hint
    }
}

/// Whether the client of a connection takes what it is answered. Goes along with its requests, as an extension.
#[derive(Clone, Debug)]
pub(super) struct Progress(Arc<Mutex<Standing>>);

#[derive(Debug)]
struct Standing {
    /// Pieces of answers that are not written yet.
    unwritten: usize,
    /// When the last one was, or the first one came.
    moved: Instant,
}

impl Default for Progress {
    fn default() -> Progress {
        Progress(Arc::new(Mutex::new(Standing { unwritten: 0, moved: Instant::now() })))
    }
}

impl Progress {
    fn begin(&self) -> Unwritten {
        let mut standing = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if standing.unwritten == 0 {
            standing.moved = Instant::now();
        }
        standing.unwritten += 1;
        Unwritten(self.clone())
    }

    /// Waits until the client has taken nothing for so long, though there is something to take.
    pub(super) async fn stalled(&self, limit: Duration) {
        loop {
            sleep(limit / 4).await;
            if self.is_stalled(Instant::now(), limit) {
                return;
            }
        }
    }

    fn is_stalled(&self, now: Instant, limit: Duration) -> bool {
        let standing = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        standing.unwritten > 0 && now.saturating_duration_since(standing.moved) >= limit
    }
}

/// A piece that is not written yet.
struct Unwritten(Progress);

impl Drop for Unwritten {
    fn drop(&mut self) {
        let mut standing = self.0.0.lock().unwrap_or_else(PoisonError::into_inner);
        standing.unwritten -= 1;
        standing.moved = Instant::now();
    }
}
