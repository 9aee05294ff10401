use prost::Message;

use super::{infer_request_bytes, request_bytes};
use crate::proto::model_infer_request::{InferInputTensor, InferRequestedOutputTensor};
use crate::proto::{InferParameter, InferTensorContents, ModelInferRequest};

/// What the lists and maps of a message take, without what allocators and doubling add.
fn taken(message: &ModelInferRequest) -> u64 {
    let parameters = |count: usize| count * size_of::<(String, InferParameter)>();
    let mut total = parameters(message.parameters.len()) + size_of_val(&message.inputs[..]);
    total += size_of_val(&message.outputs[..]) + size_of_val(&message.raw_input_contents[..]);
    for input in &message.inputs {
        total += input.name.len() + size_of_val(&input.shape[..]) + parameters(input.parameters.len());
        if let Some(contents) = &input.contents {
            total += size_of_val(&contents.bool_contents[..]) + size_of_val(&contents.int_contents[..]);
            total += size_of_val(&contents.int64_contents[..]) + size_of_val(&contents.uint_contents[..]);
            total += size_of_val(&contents.uint64_contents[..]) + size_of_val(&contents.fp32_contents[..]);
            total += size_of_val(&contents.fp64_contents[..]) + size_of_val(&contents.bytes_contents[..]);
        }
    }
    total += message.outputs.iter().map(|output| output.name.len()).sum::<usize>();
    total as u64
}

#[test]
fn what_is_read_was_counted_before_whatever_the_fields() {
    let many = 1000;
    let of = |contents| ModelInferRequest {
        inputs: vec![InferInputTensor { contents: Some(contents), ..InferInputTensor::default() }],
        ..ModelInferRequest::default()
    };
    let none = InferTensorContents::default;
    let entries = || (0..many).map(|key| (key.to_string(), InferParameter::default())).collect();
    let messages = [
        ModelInferRequest { inputs: vec![InferInputTensor::default(); many], ..Default::default() },
        ModelInferRequest {
            outputs: vec![InferRequestedOutputTensor::default(); many],
            ..Default::default()
        },
        ModelInferRequest { raw_input_contents: vec![bytes::Bytes::new(); many], ..Default::default() },
        ModelInferRequest { parameters: entries(), ..Default::default() },
        ModelInferRequest {
            inputs: vec![InferInputTensor {
                parameters: entries(),
                shape: vec![1; many],
                ..Default::default()
            }],
            ..Default::default()
        },
        of(InferTensorContents { bool_contents: vec![true; many], ..none() }),
        of(InferTensorContents { int_contents: vec![1; many], ..none() }),
        of(InferTensorContents { int64_contents: vec![-1; many], ..none() }),
        of(InferTensorContents { uint_contents: vec![1; many], ..none() }),
        of(InferTensorContents { uint64_contents: vec![1; many], ..none() }),
        of(InferTensorContents { fp32_contents: vec![1.0; many], ..none() }),
        of(InferTensorContents { fp64_contents: vec![1.0; many], ..none() }),
        of(InferTensorContents { bytes_contents: vec![vec![]; many], ..none() }),
    ];
    for message in messages {
        let bytes = infer_request_bytes(&message.encode_to_vec()).unwrap();
        assert!(bytes >= taken(&message), "{bytes} of {}", taken(&message));
        assert!(bytes <= 8 * taken(&message) + 4096, "{bytes} of {}", taken(&message));
    }
}

#[test]
fn raw_tensors_cost_nothing_but_their_handles() {
    let message = ModelInferRequest {
        raw_input_contents: vec![bytes::Bytes::from(vec![7; 1 << 20])],
        ..ModelInferRequest::default()
    };
    assert!(infer_request_bytes(&message.encode_to_vec()).unwrap() < 1000);
}

#[test]
fn bytes_that_are_no_message_are_refused() {
    for bytes in
        [&b"\xff"[..], b"\x2a\x05ab", b"\x0b", b"\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01", b"hello"]
    {
        assert!(infer_request_bytes(bytes).is_err(), "{bytes:?}");
        assert!(request_bytes(bytes).is_err(), "{bytes:?}");
    }
    assert!(infer_request_bytes(b"").is_ok());
}
