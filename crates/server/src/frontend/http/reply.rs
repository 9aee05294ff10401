//! Answers.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::{Body, HttpBody};
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use downbeat_oip::Failure;
use downbeat_oip::rest::Encoded;
use hyper::body::{Frame, SizeHint};
use serde::Serialize;

/// How long the JSON of a body is, behind which tensors follow.
pub(super) const HEADER_LENGTH: HeaderName = HeaderName::from_static("inference-header-content-length");

/// A JSON document.
pub(super) fn json(status: StatusCode, document: &impl Serialize) -> Response {
    match serde_json::to_vec(document) {
        Ok(json) => json_text(status, json),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
    }
}

/// A JSON document that is written already.
pub(super) fn json_text(status: StatusCode, json: impl Into<Bytes>) -> Response {
    (status, [(CONTENT_TYPE, "application/json")], json.into()).into_response()
}

/// A failure, under its status.
pub(super) fn failure(failure: &Failure) -> Response {
    let status = StatusCode::from_u16(failure.reason.http_status());
    error(status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR), &failure.message)
}

/// An error, as clients read it: `{"error": "..."}`.
pub(super) fn error(status: StatusCode, error: &str) -> Response {
    #[derive(Serialize)]
    struct Error<'a> {
        error: &'a str,
    }
    json(status, &Error { error })
}

/// The result of an inference.
pub(super) fn inference(encoded: Encoded) -> Response {
    let Some(header_length) = encoded.header_length else { return json_text(StatusCode::OK, encoded.json) };
    let parts = std::iter::once(encoded.json).chain(encoded.binary).filter(|part| !part.is_empty()).collect();
    let mut response = Body::new(Parts(parts)).into_response();
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/octet-stream"));
    headers.insert(HEADER_LENGTH, HeaderValue::from(header_length));
    response
}

/// A body in several pieces, which are sent as they are: tensors are not copied together.
struct Parts(VecDeque<Bytes>);

impl HttpBody for Parts {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(self.0.pop_front().map(|part| Ok(Frame::data(part))))
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.0.iter().map(|part| part.len() as u64).sum())
    }
}
