//! A client that opens a connection for every request.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use serde_json::{Value, json};

/// Longer than anything may take: a test that waits so long has found a hang.
pub(crate) const HANG: Duration = Duration::from_secs(45);

#[derive(Clone, Debug)]
pub(crate) struct Answer {
    /// 0 where the connection ended without an answer.
    pub(crate) status: u16,
    pub(crate) body: String,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// The sentence of an error.
    pub(crate) fn error(&self) -> String {
        self.json()["error"].as_str().unwrap_or_else(|| panic!("no error: {self:?}")).to_owned()
    }

    pub(crate) fn parameter(&self, name: &str) -> Value {
        self.json()["parameters"][name].clone()
    }
}

pub(crate) fn get(address: SocketAddr, path: &str) -> Answer {
    exchange(address, &request_bytes("GET", path, ""))
}

pub(crate) fn post(address: SocketAddr, path: &str, body: &str) -> Answer {
    exchange(address, &request_bytes("POST", path, body))
}

pub(crate) fn request_bytes(method: &str, path: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "{method} {path} HTTP/1.1\r\nhost: test\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}"
    )
}

/// A request of one row to an emulated model.
pub(crate) fn infer(address: SocketAddr, model: &str) -> Answer {
    infer_with(address, model, &json!({}))
}

pub(crate) fn infer_with(address: SocketAddr, model: &str, parameters: &Value) -> Answer {
    post(address, &format!("/v2/models/{model}/infer"), &infer_body(parameters))
}

pub(crate) fn infer_body(parameters: &Value) -> String {
    let input = json!({ "name": "INPUT0", "shape": [1, 4], "datatype": "FP32", "data": [1, 2, 3, 4] });
    json!({ "inputs": [input], "parameters": parameters }).to_string()
}

/// Sends a request and does not wait for the answer.
pub(crate) fn send(address: SocketAddr, bytes: &str) -> TcpStream {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(bytes.as_bytes()).unwrap();
    stream
}

fn exchange(address: SocketAddr, request: &str) -> Answer {
    match try_exchange(address, request) {
        Ok(answer) => answer,
        Err(error) => Answer { status: 0, body: error.to_string() },
    }
}

fn try_exchange(address: SocketAddr, request: &str) -> std::io::Result<Answer> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(HANG))?;
    stream.write_all(request.as_bytes())?;
    let mut text = String::new();
    stream.read_to_string(&mut text)?;
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or_default();
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
    Ok(Answer { status, body: body.to_owned() })
}
