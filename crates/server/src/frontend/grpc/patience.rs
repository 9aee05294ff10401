//! Messages that do not come to their end. A call waits for its message before anything else happens, and holds what
//! came of it.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, HttpBody};
use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::Response;
use bytes::Bytes;
use hyper::body::{Frame, SizeHint};
use tokio::time::{Sleep, sleep};
use tonic::Status;

/// The call whose messages come when the client has something to ask.
const STREAM: &str = "/inference.GRPCInferenceService/ModelStreamInfer";

/// Gives the message of a call so much time.
pub(super) async fn limit(State(time): State<Duration>, request: Request, next: Next) -> Response {
    if request.uri().path() == STREAM {
        return next.run(request).await;
    }
    let request = request.map(|body| Body::new(Hurried { body, time, end: Box::pin(sleep(time)) }));
    next.run(request).await
}

/// A body that fails if it has not ended in time.
struct Hurried {
    body: Body,
    time: Duration,
    end: Pin<Box<Sleep>>,
}

impl HttpBody for Hurried {
    type Data = Bytes;
    type Error = Box<dyn std::error::Error + Send + Sync>;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        if let Poll::Ready(frame) = Pin::new(&mut self.body).poll_frame(context) {
            return Poll::Ready(frame.map(|frame| frame.map_err(Into::into)));
        }
        if self.end.as_mut().poll(context).is_pending() {
            return Poll::Pending;
        }
        let message = format!("the message took longer than {} s to arrive", self.time.as_secs_f32());
        Poll::Ready(Some(Err(Status::invalid_argument(message).into())))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
