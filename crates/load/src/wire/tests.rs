use downbeat_oip::proto::ModelInferRequest;
use downbeat_oip::{DataType, Parameter, Tensor};
use hyper::StatusCode;

use super::*;

fn request() -> InferRequest {
    InferRequest {
        model: "a model/ü".into(),
        version: "2".into(),
        parameters: [("timeout".to_owned(), Parameter::Int(5_000))].into(),
        inputs: vec![Tensor::new("x", DataType::Uint8, vec![1, 2], vec![7, 8].into()).unwrap()],
        ..InferRequest::default()
    }
}

fn reply(status: StatusCode, headers: &[(&'static str, &str)], body: &[u8]) -> Reply {
    let headers = headers.iter().map(|(name, value)| (HeaderName::from_static(name), value.parse().unwrap()));
    Reply {
        status: status.as_u16(),
        headers: headers.collect(),
        body: Bytes::copy_from_slice(body),
        trailers: None,
    }
}

#[test]
fn a_request_over_http_is_what_the_codec_reads() {
    let target = "http://host:80/prefix".parse().unwrap();
    for binary in [true, false] {
        let letter = Letter::infer(&target, request(), binary).unwrap();
        assert_eq!(letter.uri, "/prefix/v2/models/a%20model%2F%C3%BC/versions/2/infer");
        assert_eq!(letter.headers[HOST], "host:80");
        let length =
            letter.headers.get(HEADER_LENGTH).map(|length| length.to_str().unwrap().parse().unwrap());
        assert_eq!(length.is_some(), binary);
        let (read, forms) = rest::decode("a model/ü", "2", length, &letter.body).unwrap();
        assert_eq!((read, forms.is_binary("y")), (request(), binary));
    }
}

#[test]
fn a_request_over_grpc_is_one_message_in_its_frame() {
    let letter = Letter::infer(&"grpc://host:81".parse().unwrap(), request(), true).unwrap();
    assert_eq!(letter.uri, "http://host:81/inference.GRPCInferenceService/ModelInfer");
    assert_eq!(letter.body[0], 0, "not compressed");
    assert_eq!(letter.body[1..5], (letter.body.len() as u32 - 5).to_be_bytes());
    let message = ModelInferRequest::decode(letter.body.slice(5..)).unwrap();
    assert_eq!(grpc::decode(message).unwrap(), request());
}

#[test]
fn an_answer_over_http_is_read() {
    let json = br#"{"parameters":{"downbeat_queue_us":3,"downbeat_compute_us":5}}"#;
    let length = json.len().to_string();
    let answer =
        reply(StatusCode::OK, &[("inference-header-content-length", &length)], json).answer(Protocol::Http);
    let Answer::Result(Some(timing)) = answer else { panic!("{answer:?}") };
    assert_eq!((timing.queue.as_micros(), timing.compute.as_micros()), (3, 5));
    let other = reply(StatusCode::OK, &[], b"{}").answer(Protocol::Http);
    assert!(matches!(other, Answer::Result(None)), "other servers say nothing of it");
    let refused = reply(StatusCode::GATEWAY_TIMEOUT, &[], br#"{"error":"too late"}"#).answer(Protocol::Http);
    assert!(matches!(refused, Answer::Refused(Reason::Expired, message) if message == "too late"));
    let strange = reply(StatusCode::BAD_GATEWAY, &[], b"<html>").answer(Protocol::Http);
    assert!(matches!(strange, Answer::Refused(Reason::Failed, message) if message.contains("502: <html>")));
}

#[test]
fn an_answer_over_grpc_is_read() {
    let status = |code| reply(StatusCode::OK, &[("grpc-status", code), ("grpc-message", "a%20word")], b"");
    let refused = status("8").answer(Protocol::Grpc);
    assert!(matches!(refused, Answer::Refused(Reason::Overloaded, message) if message == "a word"));
    assert!(matches!(status("0").answer(Protocol::Grpc), Answer::Result(None)));
    let cut_off = reply(StatusCode::OK, &[], b"").answer(Protocol::Grpc);
    assert!(matches!(cut_off, Answer::Refused(Reason::Failed, _)), "an answer without a status is none");
    let proxy = reply(StatusCode::SERVICE_UNAVAILABLE, &[], b"").answer(Protocol::Grpc);
    assert!(matches!(proxy, Answer::Refused(Reason::Unavailable, _)));
    assert!(status("0").message::<ModelInferResponse>().is_err(), "no message, no panic");
}
