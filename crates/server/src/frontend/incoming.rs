//! What is on its way in counts as being in the server: many large bodies that come in slowly must not take all memory.

use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::{Body, HttpBody};
use bytes::Bytes;
use downbeat_oip::Failure;
use hyper::body::{Frame, SizeHint};

use crate::admission::{Admission, Permit};

/// A body that is counted while it comes in, and fails where there is no room for it.
pub(super) struct Counted {
    body: Body,
    permit: Permit,
    held: Held,
    /// Turns the failure into what the reader of the body knows how to tell its client.
    refuse: Refuse,
    refused: bool,
}

type BoxedError = Box<dyn std::error::Error + Send + Sync>;
type Refuse = Box<dyn Fn(Failure) -> BoxedError + Send>;

/// How much of what came in is still held.
enum Held {
    /// All of it: it is read as a whole.
    Whole(u64),
    /// The message that is not complete yet: what came before was taken on.
    Messages(Messages),
}

impl Counted {
    /// A body that is read as a whole.
    pub(super) fn whole(body: Body, admission: &Admission) -> Body {
        Counted::body(body, admission, Held::Whole(0), Box::new(Into::into))
    }

    /// A body of gRPC messages.
    pub(super) fn messages(
        body: Body,
        admission: &Admission,
        refuse: impl Fn(Failure) -> BoxedError + Send + 'static,
    ) -> Body {
        Counted::body(body, admission, Held::Messages(Messages::default()), Box::new(refuse))
    }

    fn body(body: Body, admission: &Admission, held: Held, refuse: Refuse) -> Body {
        Body::new(Counted { body, permit: admission.permit(), held, refuse, refused: false })
    }

    fn count(&mut self, data: &[u8]) -> Result<(), BoxedError> {
        // Whoever reads on after that throws it away.
        if self.refused {
            return Ok(());
        }
        let held = match &mut self.held {
            Held::Whole(held) => {
                *held += data.len() as u64;
                *held
            }
            Held::Messages(messages) => messages.take(data),
        };
        self.permit.hold(held).map_err(|failure| {
            self.refused = true;
            (self.refuse)(failure)
        })
    }
}

impl HttpBody for Counted {
    type Data = Bytes;
    type Error = BoxedError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxedError>>> {
        let polled = Pin::new(&mut self.body).poll_frame(context);
        polled.map(|frame| {
            frame.map(|frame| {
                let frame = frame?;
                frame.data_ref().map_or(Ok(()), |data| self.count(data))?;
                Ok(frame)
            })
        })
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// Follows gRPC's messages: a byte that says whether it is compressed, four that say how long it is, and the message.
#[derive(Default)]
struct Messages {
    prefix: [u8; 5],
    /// How much of the prefix is there.
    seen: usize,
    /// How much of the message is not.
    left: u64,
    /// How much of both is.
    held: u64,
}

impl Messages {
    /// Takes in what comes next. How much of a message that is not complete is held then.
    fn take(&mut self, mut data: &[u8]) -> u64 {
        while !data.is_empty() {
            let taken = if self.seen < self.prefix.len() {
                let missing = &mut self.prefix[self.seen..];
                let taken = missing.len().min(data.len());
                missing[..taken].copy_from_slice(&data[..taken]);
                self.seen += taken;
                let [_, length @ ..] = self.prefix;
                self.left = u32::from_be_bytes(length).into();
                taken
            } else {
                let taken = usize::try_from(self.left).unwrap_or(usize::MAX).min(data.len());
                self.left -= taken as u64;
                taken
            };
            self.held += taken as u64;
            data = &data[taken..];
            if self.seen == self.prefix.len() && self.left == 0 {
                *self = Messages::default();
            }
        }
        self.held
    }
}

#[cfg(test)]
mod tests;
