//! Connections: kept, shared, limited, ended.

use axum::body::Body;
use http_body_util::BodyExt;
use hyper::Request;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::client::{Answer, get, post_bytes};
use super::{Running, soon};
use crate::frontend::HttpSettings;

const ONE: &[u8] = br#"{"inputs":[{"name":"x","shape":[1],"datatype":"INT8","data":[1]}]}"#;

#[tokio::test]
async fn a_connection_serves_many_requests() {
    let server = Running::http().await;
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    for _ in 0..3 {
        stream.write_all(&post_bytes("/v2/models/echo/infer", &[], ONE)).await.unwrap();
        assert_eq!(Answer::read(&mut stream).await.status, 200);
    }
}

#[tokio::test]
async fn http2_is_spoken_without_being_negotiated() {
    let server = Running::http().await;
    let stream = TcpStream::connect(server.address).await.unwrap();
    let (mut client, connection) =
        hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    let request = Request::post(format!("http://{}/v2/models/echo/infer", server.address))
        .body(Body::from(ONE))
        .unwrap();
    let response = soon(client.send_request(request)).await.unwrap();
    assert_eq!((response.status().as_u16(), response.version()), (200, hyper::Version::HTTP_2));
    let body = response.into_body().collect().await.unwrap().to_bytes();
    assert!(body.starts_with(br#"{"model_name":"echo""#));
}

#[tokio::test]
async fn one_connection_too_many_is_refused_and_a_freed_place_is_given_again() {
    let server = Running::http_with(HttpSettings { connections_max: 1, ..HttpSettings::default() }).await;
    let mut first = TcpStream::connect(server.address).await.unwrap();
    first.write_all(&post_bytes("/v2/models/echo/infer", &[], ONE)).await.unwrap();
    assert_eq!(Answer::read(&mut first).await.status, 200);
    let mut second = TcpStream::connect(server.address).await.unwrap();
    let refusal = Answer::read(&mut second).await;
    assert_eq!(refusal.status, 503);
    assert!(refusal.error().contains("connections"));
    drop(first);
    soon(async {
        // The server notices in its own time that the first is gone.
        loop {
            let mut third = TcpStream::connect(server.address).await.unwrap();
            let _ = third.write_all(b"GET /v2 HTTP/1.1\r\nhost: test\r\nconnection: close\r\n\r\n").await;
            let mut answer = Vec::new();
            let _ = third.read_to_end(&mut answer).await;
            if answer.starts_with(b"HTTP/1.1 200") {
                break;
            }
        }
    })
    .await;
}

#[tokio::test]
async fn shutting_down_answers_what_was_asked_and_closes_the_rest() {
    let mut server = Running::http().await;
    let mut idle = TcpStream::connect(server.address).await.unwrap();
    idle.write_all(b"GET /v2 HTTP/1.1\r\nhost: test\r\n\r\n").await.unwrap();
    assert_eq!(Answer::read(&mut idle).await.status, 200);
    let mut silent = TcpStream::connect(server.address).await.unwrap();
    let mut busy = TcpStream::connect(server.address).await.unwrap();
    busy.write_all(&post_bytes("/v2/models/gate/infer", &[], ONE)).await.unwrap();
    server.service.one_begun().await;

    server.stop();
    assert_eq!(soon(idle.read(&mut [0])).await.unwrap(), 0, "an idle connection is closed");
    assert_eq!(soon(silent.read(&mut [0])).await.unwrap(), 0, "so is one that never asked");
    assert!(!server.task.is_finished());
    server.service.gate.add_permits(1);
    assert_eq!(Answer::read(&mut busy).await.status, 200);
    let address = server.address;
    server.ended().await;
    assert!(TcpStream::connect(address).await.is_err(), "nobody listens any more");
}

#[tokio::test]
async fn dropping_the_server_ends_requests_at_once() {
    let server = Running::http().await;
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    stream.write_all(&post_bytes("/v2/models/never/infer", &[], ONE)).await.unwrap();
    server.service.one_begun().await;
    server.task.abort();
    assert_eq!(soon(stream.read(&mut [0])).await.unwrap(), 0);
    soon(server.service.cancelled.acquire()).await.unwrap().forget();
}

#[tokio::test]
async fn requests_are_answered_while_another_waits() {
    let server = Running::http().await;
    let mut waiting = TcpStream::connect(server.address).await.unwrap();
    waiting.write_all(&post_bytes("/v2/models/never/infer", &[], ONE)).await.unwrap();
    server.service.one_begun().await;
    assert_eq!(get(server.address, "/v2").await.status, 200);
}
