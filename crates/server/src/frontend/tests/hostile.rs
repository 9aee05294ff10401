//! Input that no honest client sends. Each gets a clear answer or is cut off, and the server goes on.

use std::time::Duration;

use downbeat_oip::{Encoding, Reason};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::client::{Answer, infer, post, post_bytes, send};
use super::{Running, soon};
use crate::frontend::HttpSettings;

const PATH: &str = "/v2/models/echo/infer";

/// The server still answers.
async fn assert_alive(server: &Running) {
    let fine = r#"{"inputs":[{"name":"x","shape":[1],"datatype":"INT8","data":[1]}]}"#;
    assert_eq!(infer(server.address, fine).await.status, 200);
}

/// Waits for the end of a connection, whatever comes before.
async fn assert_cut_off(mut stream: TcpStream) {
    let mut rest = Vec::new();
    // A reset is an end, too.
    let _ = soon(stream.read_to_end(&mut rest)).await;
}

#[tokio::test]
async fn json_that_makes_no_sense_is_refused() {
    let server = Running::http().await;
    let deep = "[".repeat(100_000);
    for (input, part) in [
        (r#""shape":[-1],"datatype":"FP32","data":[1]"#, "negative dimension"),
        (r#""shape":[4611686018427387904,4],"datatype":"FP32","data":[1]"#, "no memory can hold"),
        (r#""shape":[2],"datatype":"FP32","data":[1]"#, "needs 2 elements"),
        (r#""shape":[1],"datatype":"FP33","data":[1]"#, "unknown type 'FP33'"),
        (r#""shape":[1],"datatype":"FP32","data":[NaN]"#, "JSON has no NaN"),
        (r#""shape":[1],"datatype":"UINT8","data":[256]"#, "not a value of type UINT8"),
        (r#""shape":[1],"datatype":"FP32","parameters":{"binary_data_size":4}"#, "only 0 follow"),
        (&format!(r#""shape":[1],"datatype":"FP32","data":{deep}"#), "wrong"),
        (&format!(r#""shape":{deep}"#), "wrong"),
    ] {
        let answer = infer(server.address, &format!(r#"{{"inputs":[{{"name":"x",{input}}}]}}"#)).await;
        assert_eq!(answer.status, 400);
        assert!(answer.error().contains(part), "{}", answer.error());
    }
    let answer = post(server.address, PATH, &[], b"{\"inputs\":[],\"id\":\"\xff\"}").await;
    assert!(answer.error().contains("not UTF-8"));
    assert_alive(&server).await;
}

#[tokio::test]
async fn header_lengths_that_make_no_sense_are_refused() {
    let server = Running::http().await;
    for length in ["-1", "x", "99999999999999999999", "1000"] {
        let header = format!("Inference-Header-Content-Length: {length}");
        let answer = post(server.address, PATH, &[&header], b"{}").await;
        assert_eq!(answer.status, 400, "{length}");
        assert!(answer.error().contains("Inference-Header-Content-Length"));
    }
    assert_alive(&server).await;
}

#[tokio::test]
async fn ten_gigabytes_are_refused_before_they_come() {
    let server = Running::http().await;
    let head = format!("POST {PATH} HTTP/1.1\r\nhost: test\r\ncontent-length: 10000000000\r\n\r\n");
    let answer = send(server.address, head.as_bytes()).await;
    assert_eq!(answer.status, 413);
    assert!(answer.error().contains("67108864 bytes"), "{}", answer.error());
    assert_eq!(server.service.rejections(), [("echo".to_owned(), Reason::TooBig)]);
    assert_alive(&server).await;
}

#[tokio::test]
async fn a_client_that_sends_all_of_a_body_too_big_reads_why_it_was_refused() {
    let server = Running::http_with(HttpSettings { body_bytes_max: 1000, ..HttpSettings::default() }).await;
    // More than the sockets' buffers hold, so that writing it takes a reader.
    let answer = send(server.address, &post_bytes(PATH, &[], &vec![b' '; 20 << 20])).await;
    assert_eq!(answer.status, 413);
}

#[tokio::test]
async fn a_chunked_body_is_cut_at_the_limit() {
    let server = Running::http_with(HttpSettings { body_bytes_max: 1000, ..HttpSettings::default() }).await;
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    let head = format!("POST {PATH} HTTP/1.1\r\nhost: test\r\ntransfer-encoding: chunked\r\n\r\n");
    stream.write_all(head.as_bytes()).await.unwrap();
    for _ in 0..3 {
        stream.write_all(format!("190\r\n{}\r\n", " ".repeat(400)).as_bytes()).await.unwrap();
    }
    assert_eq!(Answer::read(&mut stream).await.status, 413);
}

#[tokio::test]
async fn bombs_are_refused_when_they_unfold() {
    let server =
        Running::http_with(HttpSettings { body_bytes_max: 1 << 20, ..HttpSettings::default() }).await;
    let zeros = vec![0; 64 << 20];
    for encoding in [Encoding::Gzip, Encoding::Deflate] {
        let packed = encoding.encode([&zeros[..]]).unwrap();
        assert!(packed.len() < 1 << 20, "small enough to be let in");
        let header = format!("content-encoding: {}", encoding.name());
        let answer = post(server.address, PATH, &[&header], &packed).await;
        assert_eq!(answer.status, 413);
    }
    assert_alive(&server).await;
}

#[tokio::test]
async fn bodies_that_do_not_unpack_are_refused() {
    let server = Running::http().await;
    for (encoding, status, part) in
        [("gzip", 400, "not valid gzip"), ("deflate", 400, "not valid deflate"), ("br", 501, "'br'")]
    {
        let header = format!("content-encoding: {encoding}");
        let answer = post(server.address, PATH, &[&header], b"\xffnonsense").await;
        assert_eq!(answer.status, status);
        assert!(answer.error().contains(part), "{}", answer.error());
    }
}

#[tokio::test]
async fn a_body_that_ends_early_harms_nobody() {
    let server = Running::http().await;
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    let whole = post_bytes(PATH, &[], &[b' '; 100]);
    stream.write_all(&whole[..whole.len() - 50]).await.unwrap();
    stream.shutdown().await.unwrap();
    assert_cut_off(stream).await;
    assert_alive(&server).await;
    assert_eq!(server.service.seen.lock().unwrap().len(), 1, "only the whole request reached the service");
}

#[tokio::test]
async fn clients_that_dawdle_are_cut_off() {
    let settings = HttpSettings {
        idle_timeout: Duration::from_millis(100),
        body_timeout: Duration::from_millis(100),
        ..HttpSettings::default()
    };
    let server = Running::http_with(settings).await;
    // Nothing, the start of HTTP/2, the start of a request, headers without an end.
    for start in ["", "PRI * HTT", "P", "GET /v2 HT", "GET /v2 HTTP/1.1\r\nhost: test\r\nx: "] {
        let mut stream = TcpStream::connect(server.address).await.unwrap();
        stream.write_all(start.as_bytes()).await.unwrap();
        assert_cut_off(stream).await;
    }
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    let whole = post_bytes(PATH, &[], &[b' '; 100]);
    stream.write_all(&whole[..whole.len() - 50]).await.unwrap();
    let answer = Answer::read(&mut stream).await;
    assert_eq!(answer.status, 400);
    assert!(answer.error().contains("took longer than"), "{}", answer.error());
    assert_cut_off(stream).await;
    assert_alive(&server).await;
}

#[tokio::test]
async fn what_is_not_http_is_cut_off() {
    let server = Running::http().await;
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    stream.write_all(&[0x16, 3, 1, 2, 0, 1, 0, 1]).await.unwrap();
    stream.write_all(b"\r\n\r\n").await.unwrap();
    assert_cut_off(stream).await;
    assert_alive(&server).await;
}

#[tokio::test]
async fn bodies_that_come_in_together_are_counted_and_the_one_too_many_is_told_so() {
    let admission = crate::Admission::new(1 << 20);
    let settings = HttpSettings { admission: admission.clone(), ..HttpSettings::default() };
    let server = Running::http_with(settings).await;
    let head = format!("POST {PATH} HTTP/1.1\r\nhost: h\r\ncontent-length: 900000\r\n\r\n");
    let mut slow = TcpStream::connect(server.address).await.unwrap();
    slow.write_all(head.as_bytes()).await.unwrap();
    slow.write_all(&vec![b' '; 800_000]).await.unwrap();
    // Until the first one has come in, the next would find room, and the first none.
    while admission.held() < 800_000 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let answer = post(server.address, PATH, &[], &vec![b' '; 600_000]).await;
    assert_eq!(answer.status, 429);
    assert!(answer.error().contains("pending_max_mib"), "{}", answer.error());
    assert_alive(&server).await;
    drop(slow);
}
