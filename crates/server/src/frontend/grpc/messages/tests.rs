use std::sync::Arc;

use axum::body::Body;
use bytes::Bytes;
use downbeat_oip::proto::ModelInferRequest;
use downbeat_oip::{Encoding, Reason};
use http_body_util::{BodyExt, StreamBody};
use hyper::body::Frame;
use prost::Message;
use tonic::{Code, Status};

use super::{Limits, Messages, Places};
use crate::admission::Admission;
use crate::frontend::tests::fake::Fake;

/// A message with a raw tensor of so many bytes, as it travels.
fn message(bytes: usize, encoding: Option<Encoding>) -> Vec<u8> {
    let request =
        ModelInferRequest { raw_input_contents: vec![vec![7; bytes].into()], ..ModelInferRequest::default() };
    let message = request.encode_to_vec();
    let packed = encoding.map_or(message.clone(), |encoding| encoding.encode([&message[..]]).unwrap());
    [&[u8::from(encoding.is_some())], &(packed.len() as u32).to_be_bytes()[..], &packed].concat()
}

/// A body that comes in pieces.
fn body(pieces: impl IntoIterator<Item = Vec<u8>>) -> Body {
    let frames = pieces.into_iter().map(|piece| Ok::<_, std::io::Error>(Frame::data(Bytes::from(piece))));
    let frames: Vec<_> = frames.collect();
    Body::new(StreamBody::new(futures_util::stream::iter(frames)))
}

struct Stage {
    limits: Arc<Limits<Fake>>,
    places: Places,
}

impl Stage {
    fn new(bytes_max: u64) -> Stage {
        let limits = Limits {
            service: Arc::new(Fake::default()),
            message_bytes_max: 1 << 20,
            admission: Admission::new(bytes_max),
        };
        Stage { limits: Arc::new(limits), places: Places::default() }
    }

    fn read(&self, body: Body, encoding: Option<Encoding>) -> Body {
        Body::new(Messages::new(body, Arc::clone(&self.limits), true, encoding, self.places.clone()))
    }

    async fn refusal(&self, body: Body, encoding: Option<Encoding>) -> Status {
        let error = self.read(body, encoding).collect().await.unwrap_err().into_inner();
        *error.downcast::<Status>().unwrap()
    }
}

#[tokio::test]
async fn wherever_messages_are_cut_they_are_handed_on_as_they_were() {
    let stream = [message(0, None), message(3, None), message(300, None), message(1, None)].concat();
    for step in 1..=stream.len() {
        let stage = Stage::new(1 << 20);
        let pieces = stream.chunks(step).map(<[u8]>::to_vec);
        let whole = stage.read(body(pieces), None).collect().await.unwrap();
        assert_eq!(whole.to_bytes(), stream, "steps of {step}");
        assert_eq!(stage.places.take().len(), 4);
    }
}

#[tokio::test]
async fn what_was_packed_is_handed_on_unpacked() {
    let stage = Stage::new(1 << 20);
    let both = [message(5000, Some(Encoding::Deflate)), message(3, None)];
    let whole = stage.read(body(both), Some(Encoding::Deflate)).collect().await.unwrap();
    assert_eq!(whole.to_bytes(), [message(5000, None), message(3, None)].concat());
    assert_eq!(stage.places.take().len(), 2);
}

#[tokio::test]
async fn a_message_takes_room_until_its_place_is_dropped() {
    let stage = Stage::new(100_000);
    for encoding in [None, Some(Encoding::Gzip)] {
        stage.read(body([message(60_000, encoding)]), encoding).collect().await.unwrap();
        let refused = stage.refusal(body([message(60_000, encoding)]), encoding).await;
        assert_eq!(refused.code(), Code::ResourceExhausted);
        drop(stage.places.take());
    }
    assert!(stage.limits.admission.admit(100_000).is_ok());
    assert_eq!(stage.limits.service.rejections(), vec![(String::new(), Reason::Overloaded); 2]);
}

#[tokio::test]
async fn a_message_that_says_little_in_many_bytes_is_counted_by_what_it_says() {
    let stage = Stage::new(1 << 20);
    // Thousands of empty inputs.
    let inputs = [0x2a, 0].repeat(10_000);
    let whole = [&[0], &(inputs.len() as u32).to_be_bytes()[..], &inputs].concat();
    assert_eq!(stage.refusal(body([whole]), None).await.code(), Code::ResourceExhausted);
}

#[tokio::test]
async fn what_is_too_big_or_no_message_is_told_so_and_counted() {
    let stage = Stage::new(u64::MAX);
    let huge = [&[0], &u32::MAX.to_be_bytes()[..], &[0; 100]].concat();
    let unfolds = message(2 << 20, Some(Encoding::Gzip));
    let nonsense = b"\0\0\0\0\x05hello".to_vec();
    let broken = b"\x01\0\0\0\x05hello".to_vec();
    let short = message(100, None)[..50].to_vec();
    for (bytes, code, part) in [
        (huge, Code::ResourceExhausted, "larger than 1048576 bytes"),
        (unfolds, Code::ResourceExhausted, "larger than 1048576 bytes"),
        (nonsense, Code::InvalidArgument, "not a protobuf message"),
        (broken, Code::InvalidArgument, "not valid gzip"),
        (short, Code::InvalidArgument, "ended inside a message"),
    ] {
        let refused = stage.refusal(body([bytes]), Some(Encoding::Gzip)).await;
        assert_eq!(refused.code(), code);
        assert!(refused.message().contains(part), "{refused}");
    }
    assert_eq!(stage.limits.service.rejections().len(), 5);
}
