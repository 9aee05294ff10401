//! The messages of a call, taken in one by one before the library sees them: counted as they come, unpacked, and let on
//! only when there is room for what they are read as. What the library is handed is not compressed any more.

#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use axum::body::{Body, HttpBody};
use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::Response;
use bytes::{Bytes, BytesMut};
use downbeat_oip::{Encoding, Failure, Reason, grpc};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use hyper::body::Frame;

use super::limits::Limits;
use super::status::status;
use crate::admission::Permit;
use crate::frontend::offload::offload;
use crate::frontend::places::Places;
use crate::service::Service;

/// A byte that says whether the message is compressed, and four that say how long it is.
const PREFIX_BYTES: usize = 5;

/// Takes in the messages of a call. Their places are in an extension of the request.
pub(super) async fn take_in<S: Service>(
    State(limits): State<Arc<Limits<S>>>,
    mut request: Request,
    next: Next,
) -> Response {
    let named = request.headers().get("grpc-encoding").and_then(|name| name.to_str().ok());
    // Of one that is not known, the library tells the client.
    let encoding = named.and_then(|name| Encoding::of_content(name).ok().flatten());
    if encoding.is_some() {
        request.headers_mut().remove("grpc-encoding");
    }
    let path = request.uri().path();
    let is_inference = path.ends_with("/ModelInfer") || path.ends_with("/ModelStreamInfer");
    let places = Places::default();
    request.extensions_mut().insert(places.clone());
    next.run(request.map(|body| Body::new(Messages::new(body, limits, is_inference, encoding, places)))).await
}

/// A body of messages.
struct Messages<S> {
    body: Body,
    limits: Arc<Limits<S>>,
    is_inference: bool,
    encoding: Option<Encoding>,
    /// Of the messages that were handed on.
    places: Places,
    /// Of the message that comes in.
    place: Permit,
    /// What came last, and was not looked at yet.
    last: Bytes,
    /// The part of a message that came before that.
    part: BytesMut,
    unpacking: Option<BoxFuture<'static, Result<Bytes, Failure>>>,
    /// To be handed on.
    ready: VecDeque<Bytes>,
}

impl<S: Service> Messages<S> {
    fn new(
        body: Body,
        limits: Arc<Limits<S>>,
        is_inference: bool,
        encoding: Option<Encoding>,
        places: Places,
    ) -> Messages<S> {
        Messages {
            body,
            is_inference,
            encoding,
            places,
            place: limits.admission.permit(),
            last: Bytes::new(),
            part: BytesMut::new(),
            unpacking: None,
            ready: VecDeque::new(),
            limits,
        }
    }

    /// The next message that is there as a whole, with its prefix.
    fn cut(&mut self) -> Result<Option<Bytes>, Failure> {
        // One that came in one piece, as small ones do, is taken as it is.
        if !self.part.is_empty() {
            self.part.extend_from_slice(&std::mem::take(&mut self.last));
        }
        let came = if self.part.is_empty() { &self.last[..] } else { &self.part[..] };
        if let Some((&[_, length @ ..], rest)) = came.split_first_chunk::<PREFIX_BYTES>() {
            let length = u32::from_be_bytes(length) as usize;
            if length > self.limits.message_bytes_max {
                return Err(self.too_big());
            }
            if rest.len() >= length {
                let whole = PREFIX_BYTES + length;
                let from_last = self.part.is_empty();
                return Ok(Some(if from_last {
                    self.last.split_to(whole)
                } else {
                    self.part.split_to(whole).freeze()
                }));
            }
        }
        if self.part.is_empty() {
            self.part.extend_from_slice(&std::mem::take(&mut self.last));
        }
        Ok(None)
    }

    /// Hands on a message, or unpacks it first.
    fn take(&mut self, whole: Bytes) -> Result<(), Failure> {
        match self.encoding {
            Some(encoding) if whole[0] == 1 => {
                let (limit, room) = (self.limits.message_bytes_max, self.place.share());
                let packed = whole.len();
                let unpack = move || {
                    let packed = &whole[PREFIX_BYTES..];
                    encoding.decode_within(packed, limit, &mut |more| room.hold_more(more))
                };
                // What comes out may be long though what goes in is short; but not from a few bytes.
                let bytes = if packed < 1024 { packed } else { usize::MAX };
                self.unpacking =
                    Some(offload(bytes, unpack).map(|unpacked| unpacked.map(Bytes::from)).boxed());
                Ok(())
            }
            _ => {
                self.let_on(&whole[PREFIX_BYTES..])?;
                self.ready.push_back(whole);
                Ok(())
            }
        }
    }

    /// Takes room for what the message is read as, and lets it on.
    fn let_on(&mut self, message: &[u8]) -> Result<(), Failure> {
        let read =
            if self.is_inference { grpc::infer_request_bytes(message) } else { grpc::request_bytes(message) };
        self.place.hold((message.len() as u64).saturating_add(read?))?;
        let next = self.limits.admission.permit();
        self.places.add(std::mem::replace(&mut self.place, next));
        Ok(())
    }

    fn unpacked(&mut self, unpacked: Result<Bytes, Failure>) -> Result<(), Failure> {
        let message = unpacked.map_err(|failure| match failure.reason {
            Reason::TooBig => self.too_big(),
            _ => failure,
        })?;
        self.let_on(&message)?;
        let length = u32::try_from(message.len()).unwrap_or(u32::MAX).to_be_bytes();
        self.ready.push_back(Bytes::from([&[0], &length[..]].concat()));
        self.ready.push_back(message);
        Ok(())
    }

    fn too_big(&self) -> Failure {
        let limit = self.limits.message_bytes_max;
        Failure::new(
            Reason::TooBig,
            format!("the message is larger than {limit} bytes, which is the server's limit"),
        )
    }

    /// Goes on until there is something to hand on; `None` at the end, and trailers as they are.
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Trouble>>> {
        loop {
            if let Some(bytes) = self.ready.pop_front() {
                return Poll::Ready(Some(Ok(Frame::data(bytes))));
            }
            if let Some(unpacking) = &mut self.unpacking {
                let unpacked = ready!(unpacking.poll_unpin(context));
                self.unpacking = None;
                self.unpacked(unpacked)?;
                continue;
            }
            if let Some(whole) = self.cut()? {
                self.take(whole)?;
                continue;
            }
            let frame = match ready!(Pin::new(&mut self.body).poll_frame(context)) {
                Some(frame) => frame.map_err(|error| Trouble::Body(error.into_inner()))?,
                None if self.part.is_empty() => return Poll::Ready(None),
                None => {
                    let message = "the body ended inside a message".to_owned();
                    return Poll::Ready(Some(Err(Failure::new(Reason::Invalid, message).into())));
                }
            };
            match frame.into_data() {
                Ok(data) => {
                    self.place.hold((self.part.len() + data.len()) as u64)?;
                    self.last = data;
                }
                Err(frame) => return Poll::Ready(Some(Ok(frame))),
            }
        }
    }
}

/// Why there is no further message.
enum Trouble {
    /// It is refused.
    Refused(Failure),
    /// It does not come.
    Body(BoxedError),
}

impl From<Failure> for Trouble {
    fn from(failure: Failure) -> Trouble {
        Trouble::Refused(failure)
    }
}

type BoxedError = Box<dyn std::error::Error + Send + Sync>;

impl<S: Service> HttpBody for Messages<S> {
    type Data = Bytes;
    type Error = BoxedError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxedError>>> {
        let frame = ready!(self.poll(context));
        Poll::Ready(frame.map(|frame| {
            frame.map_err(|trouble| match trouble {
                Trouble::Refused(failure) => {
                    self.limits.service.rejected("", failure.reason);
                    status(failure).into()
                }
                Trouble::Body(error) => error,
            })
        }))
    }
}
