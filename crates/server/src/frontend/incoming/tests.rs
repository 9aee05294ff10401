use axum::body::Body;
use bytes::Bytes;
use downbeat_oip::{Failure, Reason};
use http_body_util::{BodyExt, StreamBody};
use hyper::body::Frame;

use super::{Counted, Messages};
use crate::admission::Admission;

fn message(length: usize) -> Vec<u8> {
    let mut message = vec![0];
    message.extend_from_slice(&(length as u32).to_be_bytes());
    message.resize(5 + length, 7);
    message
}

#[test]
fn wherever_messages_are_cut_only_what_is_not_complete_is_held() {
    let stream = [message(0), message(3), message(300), message(1)].concat();
    let ends = [5, 13, 318, 324];
    for step in 1..=stream.len() {
        let (mut messages, mut came) = (Messages::default(), 0);
        for piece in stream.chunks(step) {
            came += piece.len();
            let complete = ends.into_iter().filter(|&end| end <= came).max().unwrap_or(0);
            assert_eq!(messages.take(piece), (came - complete) as u64, "steps of {step}, {came} bytes");
        }
    }
}

/// A body that comes in pieces.
fn body(pieces: Vec<Vec<u8>>) -> Body {
    let frames = pieces.into_iter().map(|piece| Ok::<_, std::io::Error>(Frame::data(Bytes::from(piece))));
    Body::new(StreamBody::new(futures_util::stream::iter(frames)))
}

#[tokio::test]
async fn a_body_takes_room_while_it_is_read_and_fails_where_there_is_none() {
    let admission = Admission::new(100);
    let mut first = Counted::whole(body(vec![vec![0; 40], vec![0; 40]]), &admission);
    first.frame().await.unwrap().unwrap();
    first.frame().await.unwrap().unwrap();
    let mut other = Counted::whole(body(vec![vec![0; 20], vec![0; 20], vec![0; 20]]), &admission);
    other.frame().await.unwrap().unwrap();
    let error = other.frame().await.unwrap().unwrap_err().into_inner();
    assert_eq!(error.downcast::<Failure>().unwrap().reason, Reason::Overloaded);
    // What still comes is read, to be thrown away, and takes no room.
    other.frame().await.unwrap().unwrap();
    drop((first, other));
    assert!(admission.admit(100).is_ok());
}

#[tokio::test]
async fn a_stream_of_messages_may_be_longer_in_all_than_there_is_room() {
    let admission = Admission::new(100);
    let pieces = (0..50).map(|_| message(60)).collect();
    let whole = Counted::messages(body(pieces), &admission, Into::into).collect().await.unwrap();
    assert_eq!(whole.to_bytes().len(), 50 * 65);
    assert!(
        Counted::messages(body(vec![message(200)[..150].to_vec()]), &admission, Into::into)
            .collect()
            .await
            .is_err()
    );
}
