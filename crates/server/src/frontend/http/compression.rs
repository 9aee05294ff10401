//! Compressed answers, for clients that ask for them.

use axum::body::{Body, HttpBody, to_bytes};
use axum::extract::Request;
use axum::http::header::{ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_LENGTH, VARY};
use axum::http::{HeaderMap, HeaderValue};
use axum::middleware::Next;
use axum::response::Response;
use downbeat_oip::{Encoding, Failure, Reason};

use super::reply;
use crate::frontend::offload::offload;

/// Packs the result of an inference if the client accepts that. Everything else is small, and Triton's client for
/// asyncio, which claims to accept packed answers, does not unpack it. Errors are left as they are: Triton's clients,
/// which unpack results, read the sentence of an error without looking whether it is packed.
pub(super) async fn compress(request: Request, next: Next) -> Response {
    let is_inference = request.uri().path().ends_with("/infer");
    let accepted = accepted(request.headers()).filter(|_| is_inference);
    let response = next.run(request).await;
    match accepted {
        Some(encoding) if response.status().is_success() && !response.body().is_end_stream() => {
            pack(response, encoding).await.unwrap_or_else(|failure| reply::failure(&failure))
        }
        _ => response,
    }
}

fn accepted(headers: &HeaderMap) -> Option<Encoding> {
    Encoding::accepted(headers.get(ACCEPT_ENCODING)?.to_str().ok()?)
}

async fn pack(response: Response, encoding: Encoding) -> Result<Response, Failure> {
    let (mut head, body) = response.into_parts();
    let failed = |error: &dyn std::fmt::Display| {
        Failure::new(Reason::Failed, format!("the answer could not be compressed: {error}"))
    };
    // The answer is in memory already: it needs no limit here.
    let body = to_bytes(body, usize::MAX).await.map_err(|error| failed(&error))?;
    let packed =
        offload(body.len(), move || encoding.encode([&body[..]]).map_err(|error| failed(&error))).await?;
    head.headers.remove(CONTENT_LENGTH);
    head.headers.insert(CONTENT_ENCODING, HeaderValue::from_static(encoding.name()));
    head.headers.insert(VARY, HeaderValue::from_static("accept-encoding"));
    Ok(Response::from_parts(head, Body::from(packed)))
}
