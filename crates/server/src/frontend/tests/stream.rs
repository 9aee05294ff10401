//! Streams of requests.

use downbeat_oip::Reason;
use downbeat_oip::proto::ModelInferRequest;
use downbeat_oip::proto::infer_parameter::ParameterChoice;
use futures_util::StreamExt;
use tonic::Code;

use super::grpc::{raw_call, request};
use super::{Running, soon};
use crate::frontend::GrpcSettings;

#[tokio::test]
async fn answers_come_in_the_order_of_the_requests() {
    let (server, mut client) = Running::grpc().await;
    let requests =
        [request("gate", "1", vec![1]), request("echo", "2", vec![2]), request("echo", "3", vec![3])];
    let mut answers =
        client.model_stream_infer(futures_util::stream::iter(requests)).await.unwrap().into_inner();
    for _ in 0..3 {
        // All run at once, though the first is not done.
        server.service.one_begun().await;
    }
    server.service.gate.add_permits(1);
    for id in ["1", "2", "3"] {
        let answer = soon(answers.message()).await.unwrap().unwrap();
        assert_eq!(answer.error_message, "");
        let response = answer.infer_response.unwrap();
        assert_eq!(response.id, id);
        assert_eq!(
            response.parameters["triton_final_response"].parameter_choice,
            Some(ParameterChoice::BoolParam(true))
        );
    }
    assert!(soon(answers.message()).await.unwrap().is_none());
}

#[tokio::test]
async fn an_error_is_an_answer_and_the_stream_goes_on() {
    let (server, mut client) = Running::grpc().await;
    let wrong = ModelInferRequest { raw_input_contents: vec![], ..request("echo", "2", vec![2]) };
    let requests = [request("full", "1", vec![1]), wrong, request("echo", "3", vec![3])];
    let mut answers =
        client.model_stream_infer(futures_util::stream::iter(requests)).await.unwrap().into_inner();
    for (id, error) in [("1", "the queue of model 'full' is full"), ("2", "has no content"), ("3", "")] {
        let answer = soon(answers.message()).await.unwrap().unwrap();
        assert_eq!(answer.infer_response.unwrap().id, id);
        assert!(answer.error_message.contains(error), "{}", answer.error_message);
        assert_eq!(answer.error_message.is_empty(), error.is_empty());
    }
    assert_eq!(server.service.rejections().len(), 1);
}

#[tokio::test]
async fn a_message_too_big_ends_the_stream_with_the_reason() {
    let settings = GrpcSettings { message_bytes_max: 1000, ..GrpcSettings::default() };
    let (_server, mut client) = Running::grpc_with(settings).await;
    let requests = [request("echo", "1", vec![1]), request("echo", "2", vec![0; 2000])];
    let mut answers =
        client.model_stream_infer(futures_util::stream::iter(requests)).await.unwrap().into_inner();
    assert_eq!(soon(answers.message()).await.unwrap().unwrap().infer_response.unwrap().id, "1");
    let status = soon(answers.message()).await.unwrap_err();
    assert_eq!(status.code(), Code::ResourceExhausted);
    assert!(status.message().contains("1000 bytes"), "{status}");
}

#[tokio::test]
async fn a_stream_ends_with_the_server_once_its_requests_are_answered() {
    let (mut server, mut client) = Running::grpc().await;
    let requests =
        futures_util::stream::iter([request("gate", "1", vec![1])]).chain(futures_util::stream::pending());
    let mut answers = client.model_stream_infer(requests).await.unwrap().into_inner();
    server.service.one_begun().await;
    server.stop();
    server.service.gate.add_permits(1);
    assert_eq!(soon(answers.message()).await.unwrap().unwrap().infer_response.unwrap().id, "1");
    assert_eq!(soon(answers.message()).await.unwrap_err().code(), Code::Unavailable);
    server.ended().await;
}

#[tokio::test]
async fn bytes_that_are_no_message_end_the_stream_with_the_reason() {
    let (server, client) = Running::grpc().await;
    drop(client);
    // A name that is not UTF-8: well-formed, until it is read.
    let answers = raw_call(&server, "ModelStreamInfer", b"\x0a\x01\xff").await;
    assert_eq!(answers.code(), Code::InvalidArgument, "{answers}");
    assert_eq!(server.service.rejections(), [(String::new(), Reason::Invalid)]);
}
