//! A client that can send anything.

use std::net::SocketAddr;

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::soon;

/// An answer, as it came.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: u16,
    head: String,
    pub(super) body: Vec<u8>,
}

impl Answer {
    /// The first answer on a connection.
    pub(super) async fn read(stream: &mut TcpStream) -> Answer {
        let mut received = Vec::new();
        let end = loop {
            if let Some(end) = received.windows(4).position(|window| window == b"\r\n\r\n") {
                break end;
            }
            assert_ne!(soon(stream.read_buf(&mut received)).await.unwrap(), 0, "closed without an answer");
        };
        let head = String::from_utf8(received[..end].to_vec()).unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        let mut answer = Answer { status, head, body: received[end + 4..].to_vec() };
        let length: usize = answer.header("content-length").map_or(0, |length| length.parse().unwrap());
        while answer.body.len() < length {
            assert_ne!(soon(stream.read_buf(&mut answer.body)).await.unwrap(), 0, "closed inside an answer");
        }
        answer
    }

    pub(super) fn header(&self, name: &str) -> Option<&str> {
        let lines = self.head.lines().skip(1).filter_map(|line| line.split_once(": "));
        lines.into_iter().find(|(header, _)| header.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }

    pub(super) fn json(&self) -> Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&self.body)))
    }

    /// The sentence of an error.
    pub(super) fn error(&self) -> String {
        self.json()["error"].as_str().unwrap().to_owned()
    }
}

/// Sends these bytes and reads the answer.
pub(super) async fn send(address: SocketAddr, bytes: &[u8]) -> Answer {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(bytes).await.unwrap();
    Answer::read(&mut stream).await
}

pub(super) async fn get(address: SocketAddr, path: &str) -> Answer {
    send(address, format!("GET {path} HTTP/1.1\r\nhost: test\r\n\r\n").as_bytes()).await
}

/// The bytes of a POST; `headers` are whole lines.
pub(super) fn post_bytes(path: &str, headers: &[&str], body: &[u8]) -> Vec<u8> {
    let mut request = format!("POST {path} HTTP/1.1\r\nhost: test\r\ncontent-length: {}\r\n", body.len());
    for header in headers {
        request.push_str(header);
        request.push_str("\r\n");
    }
    request.push_str("\r\n");
    [request.as_bytes(), body].concat()
}

pub(super) async fn post(address: SocketAddr, path: &str, headers: &[&str], body: &[u8]) -> Answer {
    send(address, &post_bytes(path, headers, body)).await
}

/// An inference with this JSON.
pub(super) async fn infer(address: SocketAddr, body: &str) -> Answer {
    post(address, "/v2/models/echo/infer", &[], body.as_bytes()).await
}
