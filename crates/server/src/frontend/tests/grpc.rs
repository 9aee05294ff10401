//! The gRPC surface.

use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use downbeat_oip::Reason;
use downbeat_oip::proto::infer_parameter::ParameterChoice;
use downbeat_oip::proto::model_infer_request::InferInputTensor;
use downbeat_oip::proto::model_repository_parameter::ParameterChoice as RepositoryChoice;
use downbeat_oip::proto::{
    ModelConfigRequest, ModelInferRequest, ModelMetadataRequest, ModelReadyRequest, ModelRepositoryParameter,
    ModelStatisticsRequest, RepositoryIndexRequest, RepositoryModelLoadRequest, RepositoryModelUnloadRequest,
    ServerLiveRequest, ServerMetadataRequest, ServerReadyRequest, Unsupported,
};
use futures_util::StreamExt;
use http_body_util::{BodyExt, StreamBody};
use hyper::body::Frame;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tonic::codec::CompressionEncoding;
use tonic::{Code, Request, Status};
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;

use super::{Running, soon};
use crate::frontend::GrpcSettings;

/// A request with one input of so many bytes.
pub(super) fn request(model: &str, id: &str, content: Vec<u8>) -> ModelInferRequest {
    ModelInferRequest {
        model_name: model.into(),
        id: id.into(),
        inputs: vec![InferInputTensor {
            name: "x".into(),
            datatype: "UINT8".into(),
            shape: vec![i64::try_from(content.len()).unwrap()],
            ..InferInputTensor::default()
        }],
        raw_input_contents: vec![content.into()],
        ..ModelInferRequest::default()
    }
}

#[tokio::test]
async fn the_server_and_its_models_are_described() {
    let (server, mut client) = Running::grpc().await;
    let metadata = client.server_metadata(ServerMetadataRequest {}).await.unwrap().into_inner();
    assert_eq!(metadata.name, "downbeat");
    assert!(metadata.extensions.contains(&"statistics".to_owned()));
    let name = || "echo".to_owned();
    let request = ModelMetadataRequest { name: name(), version: "4".into() };
    let model = client.model_metadata(request).await.unwrap().into_inner();
    assert_eq!((&model.versions[..], &model.inputs[0].shape[..]), (&["4".to_owned()][..], &[-1, 2][..]));
    let request = ModelConfigRequest { name: name(), version: String::new() };
    let config = client.model_config(request).await.unwrap().into_inner().config.unwrap();
    assert_eq!(config.max_batch_size, 8);
    let request = ModelStatisticsRequest { name: name(), version: String::new() };
    let statistics = client.model_statistics(request).await.unwrap().into_inner();
    let durations = statistics.model_stats[0].inference_stats.unwrap();
    assert!(durations.success.is_some() && durations.cache_miss.is_some());

    assert!(client.server_live(ServerLiveRequest {}).await.unwrap().into_inner().live);
    assert!(client.server_ready(ServerReadyRequest {}).await.unwrap().into_inner().ready);
    server.service.unready.store(true, Ordering::SeqCst);
    assert!(!client.server_ready(ServerReadyRequest {}).await.unwrap().into_inner().ready);
}

#[tokio::test]
async fn a_model_that_is_not_there_is_not_ready() {
    let (_server, mut client) = Running::grpc().await;
    for (name, ready) in [("echo", true), ("missing", false)] {
        let request = ModelReadyRequest { name: name.into(), version: String::new() };
        assert_eq!(client.model_ready(request).await.unwrap().into_inner().ready, ready);
    }
}

#[tokio::test]
async fn an_inference_is_answered_raw() {
    let (_server, mut client) = Running::grpc().await;
    let response = client.model_infer(request("echo", "7", vec![1, 2, 3])).await.unwrap().into_inner();
    assert_eq!(response.raw_output_contents, [Bytes::from_static(&[1, 2, 3])]);
    assert_eq!((response.id.as_str(), response.outputs[0].datatype.as_str()), ("7", "UINT8"));
    assert_eq!(
        response.parameters["downbeat_queue_us"].parameter_choice,
        Some(ParameterChoice::Uint64Param(5))
    );
}

#[tokio::test]
async fn the_deadline_of_a_call_is_passed_on() {
    let (server, mut client) = Running::grpc().await;
    let mut timed = Request::new(request("echo", "", vec![]));
    timed.set_timeout(Duration::from_millis(1500));
    client.model_infer(timed).await.unwrap();
    client.model_infer(request("echo", "", vec![])).await.unwrap();
    let timeouts: Vec<_> = server.service.seen.lock().unwrap().iter().map(|(_, timeout)| *timeout).collect();
    assert_eq!(timeouts, [Some(Duration::from_millis(1500)), None]);
}

#[tokio::test]
async fn failures_have_the_code_of_their_reason() {
    let (server, mut client) = Running::grpc().await;
    for (model, code) in
        [("full", Code::ResourceExhausted), ("late", Code::DeadlineExceeded), ("missing", Code::NotFound)]
    {
        let status = client.model_infer(request(model, "", vec![])).await.unwrap_err();
        assert_eq!(status.code(), code);
        assert!(!status.message().is_empty());
    }
    assert_eq!(server.service.rejections(), [], "the service has counted these itself");

    let mut wrong = request("echo", "", vec![1]);
    wrong.inputs[0].shape = vec![-1];
    let status = client.model_infer(wrong).await.unwrap_err();
    assert_eq!(status.code(), Code::InvalidArgument);
    assert!(status.message().contains("negative dimension"), "{status}");
    assert_eq!(server.service.rejections(), [("echo".to_owned(), Reason::Invalid)]);
}

#[tokio::test]
async fn the_repository_can_be_listed_and_changed() {
    let (server, mut client) = Running::grpc().await;
    let index = RepositoryIndexRequest { ready: true, ..RepositoryIndexRequest::default() };
    assert_eq!(client.repository_index(index).await.unwrap().into_inner().models[0].state, "READY");
    let parameter = |name: &str, choice| {
        let value = ModelRepositoryParameter { parameter_choice: Some(choice) };
        [(name.to_owned(), value)].into()
    };
    let mut load = RepositoryModelLoadRequest {
        model_name: "a".into(),
        parameters: parameter("config", RepositoryChoice::StringParam("{}".into())),
        ..RepositoryModelLoadRequest::default()
    };
    client.repository_model_load(load.clone()).await.unwrap();
    let unload = RepositoryModelUnloadRequest { model_name: "a".into(), ..Default::default() };
    client.repository_model_unload(unload).await.unwrap();
    assert_eq!(*server.service.changes.lock().unwrap(), ["load a {}", "unload a"]);
    load.parameters = parameter("file:1/model.onnx", RepositoryChoice::BytesParam(vec![]));
    assert_eq!(client.repository_model_load(load).await.unwrap_err().code(), Code::Unimplemented);
}

#[tokio::test]
async fn what_is_not_supported_says_so() {
    let (_server, mut client) = Running::grpc().await;
    for status in [
        client.system_shared_memory_status(Unsupported {}).await.unwrap_err(),
        client.cuda_shared_memory_register(Unsupported {}).await.unwrap_err(),
        client.trace_setting(Unsupported {}).await.unwrap_err(),
        client.log_settings(Unsupported {}).await.unwrap_err(),
    ] {
        assert_eq!(status.code(), Code::Unimplemented);
        assert!(status.message().contains("Downbeat does not support"), "{status}");
    }
}

#[tokio::test]
async fn messages_may_be_as_large_as_the_limit_and_not_larger() {
    let settings = GrpcSettings { message_bytes_max: 6 << 20, ..GrpcSettings::default() };
    let (server, client) = Running::grpc_with(settings).await;
    let mut client = client.max_decoding_message_size(usize::MAX);
    client.model_infer(request("echo", "", vec![0; 5 << 20])).await.unwrap();
    let status = client.model_infer(request("echo", "", vec![0; 7 << 20])).await.unwrap_err();
    assert_eq!(status.code(), Code::ResourceExhausted);
    assert!(status.message().contains("6291456 bytes"), "{status}");
    assert_eq!(server.service.rejections(), [(String::new(), Reason::TooBig)]);
}

#[tokio::test]
async fn a_message_for_which_there_is_no_room_is_told_so_while_it_comes_in() {
    let settings = GrpcSettings { admission: crate::Admission::new(1 << 20), ..GrpcSettings::default() };
    let (server, mut client) = Running::grpc_with(settings).await;
    let status = client.model_infer(request("echo", "", vec![0; 2 << 20])).await.unwrap_err();
    assert_eq!(status.code(), Code::ResourceExhausted);
    assert!(status.message().contains("pending_max_mib"), "{status}");
    assert_eq!(server.service.rejections(), [(String::new(), Reason::Overloaded)]);
    client.model_infer(request("echo", "", vec![0; 1000])).await.unwrap();
}

#[tokio::test]
async fn a_message_that_unfolds_beyond_the_limit_is_refused() {
    let settings = GrpcSettings { message_bytes_max: 1 << 20, ..GrpcSettings::default() };
    let (_server, client) = Running::grpc_with(settings).await;
    let mut client = client.send_compressed(CompressionEncoding::Gzip);
    let status = client.model_infer(request("echo", "", vec![0; 64 << 20])).await.unwrap_err();
    assert_eq!(status.code(), Code::ResourceExhausted);
    assert!(status.message().contains("1048576 bytes"), "{status}");
}

#[tokio::test]
async fn compressed_calls_are_answered_compressed_and_others_are_not() {
    let (_server, client) = Running::grpc().await;
    for (encoding, name) in [(CompressionEncoding::Gzip, "gzip"), (CompressionEncoding::Deflate, "deflate")] {
        let accepting = client.clone().accept_compressed(encoding);
        let response = accepting.clone().model_infer(request("echo", "", vec![0; 1000])).await.unwrap();
        assert!(response.metadata().get("grpc-encoding").is_none());
        let mut sending = accepting.send_compressed(encoding);
        let response = sending.model_infer(request("echo", "", vec![0; 1000])).await.unwrap();
        assert_eq!(response.metadata().get("grpc-encoding").unwrap(), name);
        assert_eq!(response.into_inner().raw_output_contents[0].len(), 1000);
    }
}

#[tokio::test]
async fn the_standard_health_service_follows_readiness() {
    let (server, _client) = Running::grpc().await;
    let mut health = HealthClient::new(server.channel().await);
    let ask = |service: &str| HealthCheckRequest { service: service.into() };
    for service in ["", "inference.GRPCInferenceService"] {
        let answer = health.check(ask(service)).await.unwrap().into_inner();
        assert_eq!(answer.status(), ServingStatus::Serving);
    }
    assert_eq!(health.check(ask("other")).await.unwrap_err().code(), Code::NotFound);
    let mut watch = health.watch(ask("")).await.unwrap().into_inner();
    assert_eq!(soon(watch.message()).await.unwrap().unwrap().status(), ServingStatus::Serving);
    server.service.unready.store(true, Ordering::SeqCst);
    assert_eq!(soon(watch.message()).await.unwrap().unwrap().status(), ServingStatus::NotServing);
}

#[tokio::test]
async fn shutting_down_answers_the_calls_that_were_begun() {
    let (mut server, mut client) = Running::grpc().await;
    let call = tokio::spawn(async move { client.model_infer(request("gate", "", vec![])).await });
    server.service.one_begun().await;
    server.stop();
    server.service.gate.add_permits(1);
    soon(call).await.unwrap().unwrap();
    server.ended().await;
}

/// The status of a call with one message of these bytes, over bare HTTP/2.
pub(super) async fn raw_call(server: &Running, method: &str, message: &[u8]) -> Status {
    let stream = TcpStream::connect(server.address).await.unwrap();
    let (mut bare, connection) =
        hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    let body = [&[0], &(message.len() as u32).to_be_bytes()[..], message].concat();
    let call =
        hyper::Request::post(format!("http://{}/inference.GRPCInferenceService/{method}", server.address))
            .header("content-type", "application/grpc")
            .body(http_body_util::Full::new(Bytes::from(body)))
            .unwrap();
    let (head, body) = soon(bare.send_request(call)).await.unwrap().into_parts();
    match Status::from_header_map(&head.headers) {
        Some(status) => status,
        None => {
            let trailers = soon(body.collect()).await.unwrap().trailers().cloned().unwrap();
            Status::from_header_map(&trailers).unwrap()
        }
    }
}

#[tokio::test]
async fn bytes_that_are_no_message_are_the_clients_fault_and_counted() {
    let (server, mut client) = Running::grpc().await;
    // What is no protobuf at all; and a name that is not UTF-8, which shows when it is read.
    for bytes in [&b"hello"[..], b"\x0a\x01\xff"] {
        let status = raw_call(&server, "ModelInfer", bytes).await;
        assert_eq!(status.code(), Code::InvalidArgument, "{status}");
    }
    assert_eq!(server.service.rejections(), vec![(String::new(), Reason::Invalid); 2]);
    client.model_infer(request("echo", "", vec![])).await.unwrap();
}

#[tokio::test]
async fn a_watch_of_the_health_ends_with_the_server() {
    let (mut server, _client) = Running::grpc().await;
    let mut health = HealthClient::new(server.channel().await);
    let mut watch = health.watch(HealthCheckRequest::default()).await.unwrap().into_inner();
    assert_eq!(soon(watch.message()).await.unwrap().unwrap().status(), ServingStatus::Serving);
    server.stop();
    assert_eq!(soon(watch.message()).await.unwrap_err().code(), Code::Unavailable);
    server.ended().await;
}

/// A unary call of which the message never ends, over bare HTTP/2.
#[tokio::test]
async fn a_message_that_does_not_end_is_given_up() {
    let settings = GrpcSettings { message_timeout: Duration::from_millis(100), ..GrpcSettings::default() };
    let (server, mut client) = Running::grpc_with(settings).await;
    let stream = TcpStream::connect(server.address).await.unwrap();
    let (mut bare, connection) =
        hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    let start =
        futures_util::stream::once(async { Ok::<_, Status>(Frame::data(Bytes::from_static(&[0, 0]))) });
    let endless = start.chain(futures_util::stream::pending());
    let url = format!("http://{}/inference.GRPCInferenceService/ModelInfer", server.address);
    let call = hyper::Request::post(url)
        .header("content-type", "application/grpc")
        .body(StreamBody::new(Box::pin(endless)))
        .unwrap();
    let response = soon(bare.send_request(call)).await.unwrap();
    let status = Status::from_header_map(response.headers()).unwrap();
    assert_eq!(status.code(), Code::InvalidArgument);
    assert!(status.message().contains("took longer than"), "{status}");
    client.model_infer(request("echo", "", vec![])).await.unwrap();
}

#[tokio::test]
async fn who_does_not_speak_http2_is_cut_off() {
    let (server, mut client) = Running::grpc().await;
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    stream.write_all(b"GET / HTTP/1.1\r\nhost: test\r\n\r\n").await.unwrap();
    let mut answer = Vec::new();
    // A reset is an end, too.
    let _ = soon(stream.read_to_end(&mut answer)).await;
    assert!(answer.is_empty());
    client.model_infer(request("echo", "", vec![])).await.unwrap();
}
