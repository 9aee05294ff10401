//! What clients send.

use bytes::Bytes;
use downbeat_oip::proto::ModelInferRequest;
use downbeat_oip::rest::{OutputForms, decode, decode_raw, encode};
use downbeat_oip::{DataType, Encoding, InferRequest, InferResponse, TensorSpec, classify};
use prost::Message;

/// A JSON header with a binary tail: two bytes say how much of the rest is the header, and whether that is said at all.
pub(super) fn rest(data: &[u8]) {
    let Some((&[first, second], body)) = data.split_first_chunk::<2>() else { return };
    let length = usize::from(u16::from_le_bytes([first, second & 0x7f]));
    let header_length = (second & 0x80 != 0).then_some(length);
    if let Ok((request, forms)) = decode("m", "1", header_length, &Bytes::copy_from_slice(body)) {
        check(request, &forms);
    }
}

/// A body that is one tensor and nothing else.
pub(super) fn rest_raw(data: &[u8]) {
    let Some((&[kind, rank], body)) = data.split_first_chunk::<2>() else { return };
    let kinds = DataType::ALL;
    let shape = (0..rank % 4).map(|axis| if axis == 0 { -1 } else { 2 }).collect();
    let input = TensorSpec { name: "x".to_owned(), datatype: kinds[usize::from(kind) % kinds.len()], shape };
    for batched in [false, true] {
        let inputs = std::slice::from_ref(&input);
        if let Ok((request, forms)) = decode_raw("m", "1", inputs, batched, Bytes::copy_from_slice(body)) {
            check(request, &forms);
        }
    }
}

/// A message of a gRPC client.
pub(super) fn grpc(data: &[u8]) {
    let Ok(message) = ModelInferRequest::decode(data) else { return };
    if let Ok(request) = downbeat_oip::grpc::decode(message) {
        check(request, &OutputForms::default());
    }
}

/// A compressed body; the first byte says how.
pub(super) fn compressed(data: &[u8]) {
    const LIMIT: usize = 1 << 16;
    let Some((&how, body)) = data.split_first() else { return };
    let encoding = if how % 2 == 0 { Encoding::Gzip } else { Encoding::Deflate };
    if let Ok(plain) = encoding.decode(body, LIMIT) {
        assert!(plain.len() <= LIMIT, "more came out than was allowed");
        let again = encoding.encode([plain.as_slice()]).unwrap();
        assert_eq!(encoding.decode(&again, LIMIT).unwrap(), plain);
    }
}

/// What must be true of every request that is taken: its tensors are what they say, and can be given back.
fn check(request: InferRequest, forms: &OutputForms) {
    for input in &request.inputs {
        input.check().unwrap();
        let elements = input.shape.iter().product::<u64>();
        match input.datatype.size() {
            Some(size) => assert_eq!(input.data.len() as u64, elements * size as u64, "{}", input.name),
            None => assert_eq!(input.elements().count() as u64, elements, "{}", input.name),
        }
        // A score may be anything; what counts is that it comes back.
        let _ = classify(input, 3, &[], true);
    }
    // Both may be nonsense, which is then said.
    let _ = (request.timeout(), request.priority());
    let response = InferResponse {
        model: request.model,
        version: request.version,
        id: request.id,
        parameters: request.parameters,
        outputs: request.inputs,
    };
    // What JSON cannot say, such as infinity, is refused.
    let _ = encode(&response, forms);
    let message = downbeat_oip::grpc::encode(response);
    assert_eq!(message.outputs.len(), message.raw_output_contents.len());
}
