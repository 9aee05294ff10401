//! What surrounds every call: compression as the client does it, and a clear word on messages that are none.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::HeaderMap;
use axum::middleware::Next;
use axum::response::Response;
use downbeat_oip::{Failure, Reason};
use tonic::{Code, Status};

use super::status::status;
use crate::admission::Admission;
use crate::service::Service;

/// Answers compressed only who sends compressed. All gRPC libraries *accept* compression, asked or not; taking them at
/// their word would pack every tensor of every answer.
pub(super) async fn answer_in_kind(mut request: Request, next: Next) -> Response {
    let compressed =
        |headers: &HeaderMap| headers.get("grpc-encoding").is_some_and(|name| name != "identity");
    if !compressed(request.headers()) {
        request.headers_mut().remove("grpc-accept-encoding");
    }
    next.run(request).await
}

/// What comes in, and how much of it.
pub(super) struct Limits<S> {
    pub(super) service: Arc<S>,
    pub(super) message_bytes_max: usize,
    pub(super) admission: Admission,
}

/// The library blames itself for a message that it cannot read. Here that is the client's, and counted.
pub(super) async fn explain_undecodable<S: Service>(
    State(limits): State<Arc<Limits<S>>>,
    request: Request,
    next: Next,
) -> Response {
    let response = next.run(request).await;
    match Status::from_header_map(response.headers()) {
        Some(error) if is_undecodable(&error) => {
            limits.service.rejected("", Reason::Invalid);
            status(undecodable(&error)).into_http()
        }
        _ => response,
    }
}

/// Whether the library says that a message cannot be read. Nothing in Downbeat speaks of protobuf.
pub(super) fn is_undecodable(status: &Status) -> bool {
    status.code() == Code::Internal && status.message().starts_with("failed to decode Protobuf message")
}

/// What the client is told of that.
pub(super) fn undecodable(error: &Status) -> Failure {
    Failure::new(Reason::Invalid, format!("the message is not one of this call: {}", error.message()))
}
