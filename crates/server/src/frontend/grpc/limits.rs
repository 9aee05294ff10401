//! What surrounds every call: compression as the client does it, and a clear word on messages that are too big.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::HeaderMap;
use axum::middleware::Next;
use axum::response::Response;
use downbeat_oip::{Failure, Reason};
use tonic::{Code, Status};

use super::status::status;
use crate::admission::Admission;
use crate::frontend::incoming::Counted;
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

/// Counts what comes in.
pub(super) async fn count<S: Service>(
    State(limits): State<Arc<Limits<S>>>,
    request: Request,
    next: Next,
) -> Response {
    let service = Arc::clone(&limits.service);
    let refuse = move |failure: Failure| {
        service.rejected("", failure.reason);
        status(failure).into()
    };
    next.run(request.map(|body| Counted::messages(body, &limits.admission, refuse))).await
}

/// What comes in, and how much of it.
pub(super) struct Limits<S> {
    pub(super) service: Arc<S>,
    pub(super) message_bytes_max: usize,
    pub(super) admission: Admission,
}

/// The library refuses a message that is too long as out of range, and one that is too long when unpacked as exhausting.
/// Here both are exhausting, counted, and say the limit.
pub(super) async fn explain_too_big<S: Service>(
    State(limits): State<Arc<Limits<S>>>,
    request: Request,
    next: Next,
) -> Response {
    let response = next.run(request).await;
    if Status::from_header_map(response.headers()).is_none_or(|status| !is_too_big(&status)) {
        return response;
    }
    limits.service.rejected("", Reason::TooBig);
    let limit = limits.message_bytes_max;
    let message = format!("the message is larger than {limit} bytes, which is the server's limit");
    status(Failure::new(Reason::TooBig, message)).into_http()
}

/// Whether the library says that a message is longer than the limit. Nothing in Downbeat answers with out of range.
pub(super) fn is_too_big(status: &Status) -> bool {
    status.code() == Code::OutOfRange
        || (status.code() == Code::ResourceExhausted && status.message().starts_with("Error decompressing"))
}
