//! What a client can make the server hold is counted, from its first byte until the answer's last one is written.

use std::time::Duration;

use downbeat_oip::Encoding;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::client::{post, post_bytes};
use super::fake::LARGE_BYTES;
use super::grpc::request;
use super::{Running, soon};
use crate::admission::Admission;
use crate::frontend::{GrpcSettings, HttpSettings};

const ROOM: u64 = 8 << 20;

fn http(admission: &Admission) -> HttpSettings {
    HttpSettings { admission: admission.clone(), ..HttpSettings::default() }
}

/// Waits until nothing is held any more.
async fn all_given_back(admission: &Admission) {
    soon(async {
        while admission.admit(ROOM).is_err() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
}

/// Waits until something is.
async fn something_held(admission: &Admission) {
    soon(async {
        while admission.admit(ROOM).is_ok() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
}

#[tokio::test]
async fn a_body_that_unfolds_to_more_than_there_is_room_for_is_refused() {
    let admission = Admission::new(ROOM);
    let server = Running::http_with(http(&admission)).await;
    let zeros = vec![b' '; ROOM as usize + 1];
    let packed = Encoding::Gzip.encode([&zeros[..]]).unwrap();
    let answer = post(server.address, "/v2/models/echo/infer", &["content-encoding: gzip"], &packed).await;
    assert_eq!(answer.status, 429, "{}", answer.error());
    all_given_back(&admission).await;
}

#[tokio::test]
async fn json_that_is_read_as_more_than_there_is_room_for_is_refused() {
    let admission = Admission::new(ROOM);
    let server = Running::http_with(http(&admission)).await;
    let count = ROOM as usize / 4;
    let ones = vec!["1"; count].join(",");
    for body in [
        format!(r#"{{"inputs":[{{"name":"x","datatype":"FP64","shape":[{count}],"data":[{ones}]}}]}}"#),
        format!(r#"{{"inputs":[{{"name":"x","datatype":"FP64","shape":[{ones}],"data":[1]}}]}}"#),
    ] {
        assert!(body.len() < ROOM as usize, "it has room until it is read");
        let answer = post(server.address, "/v2/models/echo/infer", &[], body.as_bytes()).await;
        assert_eq!(answer.status, 429, "{}", answer.error());
        all_given_back(&admission).await;
    }
}

#[tokio::test]
async fn requests_hold_their_place_while_they_wait() {
    let admission = Admission::new(ROOM);
    let server = Running::http_with(http(&admission)).await;
    let mut waiting = TcpStream::connect(server.address).await.unwrap();
    let one = br#"{"inputs":[{"name":"x","datatype":"INT8","shape":[1],"data":[1]}]}"#;
    waiting.write_all(&post_bytes("/v2/models/gate/infer", &[], one)).await.unwrap();
    server.service.one_begun().await;
    assert!(admission.admit(ROOM).is_err());
    server.service.gate.add_permits(1);
    assert_ne!(soon(waiting.read(&mut [0; 1000])).await.unwrap(), 0);
    all_given_back(&admission).await;
}

#[tokio::test]
async fn an_answer_that_is_not_read_keeps_others_out_until_it_is() {
    let admission = Admission::new(ROOM);
    let server = Running::http_with(http(&admission)).await;
    let body = br#"{"inputs":[],"parameters":{"binary_data_output":true}}"#;
    let path = "/v2/models/large/infer";
    let mut slow = TcpStream::connect(server.address).await.unwrap();
    slow.write_all(&post_bytes(path, &[], body)).await.unwrap();
    something_held(&admission).await;
    let other = post(server.address, path, &[], body).await;
    assert_eq!(other.status, 429, "{}", other.error());
    // The answer itself comes, though it is larger than all the room there is.
    let mut read = 0;
    let mut buffer = vec![0; 1 << 20];
    while read < LARGE_BYTES {
        read += soon(slow.read(&mut buffer)).await.unwrap();
    }
    all_given_back(&admission).await;
}

#[tokio::test]
async fn a_client_that_takes_nothing_is_cut_off() {
    let admission = Admission::new(ROOM);
    let settings = HttpSettings { answer_timeout: Duration::from_millis(100), ..http(&admission) };
    let server = Running::http_with(settings).await;
    let body = br#"{"inputs":[],"parameters":{"binary_data_output":true}}"#;
    let mut slow = TcpStream::connect(server.address).await.unwrap();
    slow.write_all(&post_bytes("/v2/models/large/infer", &[], body)).await.unwrap();
    something_held(&admission).await;
    all_given_back(&admission).await;
    let mut rest = Vec::new();
    let _ = soon(slow.read_to_end(&mut rest)).await;
    assert!(rest.len() < LARGE_BYTES);
}

#[tokio::test]
async fn grpc_answers_are_counted_until_they_are_written() {
    let admission = Admission::new(ROOM);
    let settings = GrpcSettings { admission: admission.clone(), ..GrpcSettings::default() };
    let (server, client) = Running::grpc_with(settings).await;
    let mut client = client.max_decoding_message_size(usize::MAX);
    // Two on one connection: the window of the first stays shut while nobody reads it.
    let requests = futures_util::stream::iter([request("large", "1", vec![1])]);
    let mut answers = client.model_stream_infer(requests).await.unwrap().into_inner();
    server.service.one_begun().await;
    something_held(&admission).await;
    assert!(soon(answers.message()).await.unwrap().is_some());
    all_given_back(&admission).await;
    assert!(soon(client.model_infer(request("large", "2", vec![1]))).await.is_ok());
    all_given_back(&admission).await;
}
