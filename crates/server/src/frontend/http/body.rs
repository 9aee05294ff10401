//! The bodies of requests, read within limits.

use std::time::Duration;

use axum::body::Body;
use axum::http::HeaderMap;
use axum::http::header::{CONTENT_ENCODING, CONTENT_LENGTH};
use bytes::{Bytes, BytesMut};
use downbeat_oip::{Encoding, Failure, Reason};
use http_body_util::BodyExt;
use tokio::time::timeout;

use super::HttpSettings;
use crate::admission::Permit;
use crate::frontend::offload::offload;

/// How much of a refused body is still read, and for how long. Many clients look for an answer only after they have
/// sent everything; closing on them earlier would lose it.
const LINGER_BYTES: usize = 256 << 20;
const LINGER: Duration = Duration::from_secs(5);

/// The body, unpacked. `place` holds what it takes.
pub(super) async fn read(
    headers: &HeaderMap,
    body: Body,
    settings: &HttpSettings,
    place: &Permit,
) -> Result<Bytes, Failure> {
    let limit = settings.body_bytes_max;
    let encoding = headers
        .get(CONTENT_ENCODING)
        .map_or(Ok(None), |name| Encoding::of_content(name.to_str().unwrap_or("that is not text")))?;
    let announced = headers.get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
    if announced.is_some_and(|length| length > limit as u64) {
        linger(body);
        return Err(too_big(limit));
    }
    let packed = match timeout(settings.body_timeout, collect(body, limit, place)).await {
        Ok(collected) => collected?,
        Err(_) => {
            return Err(Failure::new(
                Reason::Invalid,
                format!("the body took longer than {} s to arrive", settings.body_timeout.as_secs_f32()),
            ));
        }
    };
    match encoding {
        None => Ok(packed),
        Some(encoding) => {
            // What comes out may be long though what goes in is short.
            let room = place.share();
            let unpack = move || encoding.decode_within(&packed, limit, &mut |more| room.hold_more(more));
            let unpacked = offload(usize::MAX, unpack).await?;
            place.hold(unpacked.len() as u64)?;
            Ok(unpacked.into())
        }
    }
}

async fn collect(mut body: Body, limit: usize, place: &Permit) -> Result<Bytes, Failure> {
    let mut first = Bytes::new();
    let mut rest = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let frame = match frame {
            Ok(frame) => frame,
            Err(error) => {
                return Err(Failure::new(Reason::Invalid, format!("the body ended too early: {error}")));
            }
        };
        let Ok(data) = frame.into_data() else { continue };
        if first.len() + rest.len() + data.len() > limit {
            linger(body);
            return Err(too_big(limit));
        }
        if let Err(failure) = place.hold_more(data.len() as u64) {
            linger(body);
            return Err(failure);
        }
        // A body that came in one piece, as small ones do, is taken as it is.
        if first.is_empty() && rest.is_empty() {
            first = data;
        } else {
            rest.extend_from_slice(&std::mem::take(&mut first));
            rest.extend_from_slice(&data);
        }
    }
    Ok(if rest.is_empty() { first } else { rest.freeze() })
}

/// Reads on for a while, so that the client comes to read the answer.
fn linger(mut body: Body) {
    tokio::spawn(timeout(LINGER, async move {
        let mut left = LINGER_BYTES;
        while let Some(Ok(frame)) = body.frame().await {
            let length = frame.data_ref().map_or(0, Bytes::len);
            let Some(less) = left.checked_sub(length) else { break };
            left = less;
        }
    }));
}

fn too_big(limit: usize) -> Failure {
    Failure::new(
        Reason::TooBig,
        format!("the body is larger than {limit} bytes, which is the server's limit"),
    )
}
