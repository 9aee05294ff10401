use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use http_body_util::BodyExt;
use tokio::time::Instant;

use super::{Held, PIECE_BYTES, Progress};
use crate::admission::Admission;
use crate::frontend::places::Places;

fn held(bytes: usize, places: &Places, progress: &Progress) -> Body {
    Body::new(Held::new(Body::from(vec![7; bytes]), places.clone(), progress.clone()))
}

#[tokio::test]
async fn the_last_byte_takes_the_place_along() {
    let admission = Admission::new(100);
    let place = admission.admit(100).unwrap();
    let mut body = held(3 * PIECE_BYTES - 1, &Places::one(place), &Progress::default());
    let mut pieces = Vec::new();
    while let Some(frame) = body.frame().await {
        pieces.push(frame.unwrap().into_data().unwrap());
    }
    drop(body);
    assert_eq!(
        pieces.iter().map(Bytes::len).collect::<Vec<_>>(),
        [PIECE_BYTES, PIECE_BYTES, PIECE_BYTES - 1]
    );
    let end = pieces.pop().unwrap().split_off(PIECE_BYTES - 2);
    drop(pieces);
    assert!(admission.admit(1).is_err(), "a byte is left");
    drop(end);
    assert!(admission.admit(100).is_ok());
}

#[tokio::test]
async fn a_client_stalls_that_takes_nothing_for_too_long() {
    let (progress, limit) = (Progress::default(), Duration::from_secs(60));
    let far = Instant::now() + 10 * limit;
    assert!(!progress.is_stalled(far, limit), "there is nothing to take");
    let mut body = held(3 * PIECE_BYTES, &Places::default(), &progress);
    let (first, second) = (body.frame().await, body.frame().await);
    let moved = Instant::now();
    assert!(progress.is_stalled(moved + limit, limit));
    drop(first);
    assert!(!progress.is_stalled(moved + limit, limit), "it took a piece since");
    assert!(progress.is_stalled(far, limit));
    drop(second);
    assert!(!progress.is_stalled(far, limit));
}
