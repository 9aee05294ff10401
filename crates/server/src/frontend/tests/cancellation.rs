//! A client that goes away takes its request along.

use downbeat_oip::proto::ModelInferRequest;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use super::client::post_bytes;
use super::{Running, soon};

fn never() -> ModelInferRequest {
    ModelInferRequest { model_name: "never".into(), ..ModelInferRequest::default() }
}

#[tokio::test]
async fn a_closed_connection_cancels_its_request() {
    let server = Running::http().await;
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    stream.write_all(&post_bytes("/v2/models/never/infer", &[], br#"{"inputs":[]}"#)).await.unwrap();
    server.service.one_begun().await;
    drop(stream);
    soon(server.service.cancelled.acquire()).await.unwrap().forget();
}

#[tokio::test]
async fn a_cancelled_call_cancels_its_request() {
    let (server, mut client) = Running::grpc().await;
    let call = tokio::spawn(async move { client.model_infer(never()).await });
    server.service.one_begun().await;
    call.abort();
    soon(server.service.cancelled.acquire()).await.unwrap().forget();
}

#[tokio::test]
async fn a_dropped_stream_cancels_all_its_requests() {
    let (server, mut client) = Running::grpc().await;
    let requests = futures_util::stream::iter([never(), never()]);
    let answers = client.model_stream_infer(requests).await.unwrap();
    server.service.one_begun().await;
    server.service.one_begun().await;
    drop(answers);
    soon(server.service.cancelled.acquire_many(2)).await.unwrap().forget();
}
