//! Responses, and that what is written is read again.

use proptest::prelude::*;
use serde_json::Value;

use super::*;
use crate::{InferResponse, Parameter, RequestedOutput};

fn response(outputs: Vec<Tensor>) -> InferResponse {
    InferResponse { model: "m".into(), version: "1".into(), outputs, ..InferResponse::default() }
}

fn floats(name: &str, values: &[f32]) -> Tensor {
    let data: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    Tensor::new(name, DataType::Fp32, vec![values.len() as u64], data.into()).unwrap()
}

fn binary() -> OutputForms {
    OutputForms { default_binary: true, ..OutputForms::default() }
}

#[test]
fn a_response_in_json_is_all_json() {
    let mut response = response(vec![floats("y", &[0.1, 2.0])]);
    response.id = "7".into();
    response.parameters.insert("downbeat_batch_size".into(), Parameter::Uint(4));
    let encoded = encode(&response, &OutputForms::default()).unwrap();
    assert_eq!(
        encoded.json,
        r#"{"id":"7","model_name":"m","model_version":"1","parameters":{"downbeat_batch_size":4},"#
            .to_owned()
            + r#""outputs":[{"name":"y","datatype":"FP32","shape":[2],"data":[0.1,2.0]}]}"#
    );
    assert_eq!((encoded.binary.len(), encoded.header_length), (0, None));
}

#[test]
fn binary_outputs_follow_the_json() {
    let outputs = vec![floats("a", &[1.0]), floats("b", &[2.0]), floats("c", &[])];
    let mut forms = binary();
    forms.binary.insert("b".into(), false);
    let encoded = encode(&response(outputs.clone()), &forms).unwrap();
    assert_eq!(encoded.header_length, Some(encoded.json.len()));
    assert_eq!(encoded.binary, [outputs[0].data.clone(), outputs[2].data.clone()]);
    let json: Value = serde_json::from_slice(&encoded.json).unwrap();
    assert_eq!(json["outputs"][0]["parameters"]["binary_data_size"], 4);
    assert_eq!(json["outputs"][1]["data"][0], 2.0);
    assert!(json["outputs"][0].get("data").is_none());
}

#[test]
fn what_json_cannot_say_is_refused_with_advice() {
    for (output, what) in [
        (floats("y", &[f32::NAN]), "NaN or infinity"),
        (floats("y", &[f32::NEG_INFINITY]), "NaN or infinity"),
        (Tensor::from_elements("y", vec![1], [[0xff]]).unwrap(), "bytes that are not UTF-8"),
        (Tensor::new("y", DataType::Fp16, vec![1], vec![0, 0x3c].into()).unwrap(), "FP16"),
    ] {
        let response = response(vec![output]);
        let message = refusal(encode(&response, &OutputForms::default()));
        assert!(message.starts_with(&format!("output 'y' has {what}")), "{message}");
        assert!(encode(&response, &binary()).is_ok());
    }
}

/// A tensor that JSON can say.
fn tensor() -> impl Strategy<Value = Tensor> {
    let expressible = DataType::ALL.into_iter().filter(|t| !matches!(t, DataType::Fp16 | DataType::Bf16));
    (prop::sample::select(expressible.collect::<Vec<_>>()), 0u64..4, 0u64..4).prop_flat_map(
        |(datatype, rows, columns)| {
            let count = (rows * columns) as usize;
            let content = match datatype {
                DataType::Bytes => prop::collection::vec(any::<String>(), count)
                    .prop_map(move |strings| {
                        Tensor::from_elements("x", vec![rows, columns], strings).unwrap().data
                    })
                    .boxed(),
                DataType::Bool => prop::collection::vec(0u8..2, count).prop_map(Bytes::from).boxed(),
                DataType::Fp32 => {
                    prop::collection::vec(prop::num::f32::NORMAL | prop::num::f32::SUBNORMAL, count)
                        .prop_map(|values| values.iter().flat_map(|value| value.to_le_bytes()).collect())
                        .boxed()
                }
                DataType::Fp64 => {
                    prop::collection::vec(prop::num::f64::NORMAL | prop::num::f64::SUBNORMAL, count)
                        .prop_map(|values| values.iter().flat_map(|value| value.to_le_bytes()).collect())
                        .boxed()
                }
                _ => prop::collection::vec(any::<u8>(), count * datatype.size().unwrap())
                    .prop_map(Bytes::from)
                    .boxed(),
            };
            content.prop_map(move |data| Tensor::new("x", datatype, vec![rows, columns], data).unwrap())
        },
    )
}

proptest! {
    /// An output is written as an input is: so the request that says the same is the response with its word changed.
    #[test]
    fn what_is_written_is_read_again(tensor in tensor(), as_binary in any::<bool>()) {
        let forms = OutputForms { default_binary: as_binary, ..OutputForms::default() };
        let encoded = encode(&response(vec![tensor.clone()]), &forms).unwrap();
        let header = String::from_utf8(encoded.json.to_vec()).unwrap().replacen("outputs", "inputs", 1);
        let (request, _) = with_binary(&header, &encoded.binary.concat()).unwrap();
        prop_assert_eq!(&request.inputs[..], &[tensor][..]);
    }

    #[test]
    fn a_request_that_a_client_writes_is_read_as_it_was(tensor in tensor(), as_binary in any::<bool>(), timeout in 1i64..9) {
        let asked = InferRequest {
            model: "m".into(),
            id: "7".into(),
            parameters: [("timeout".to_owned(), Parameter::Int(timeout))].into(),
            inputs: vec![tensor],
            outputs: vec![RequestedOutput { name: "y".into(), classes: 2 }],
            ..InferRequest::default()
        };
        let encoded = encode_request(&asked, as_binary).unwrap();
        let body = Bytes::from([&encoded.json[..], &encoded.binary.concat()].concat());
        let (request, forms) = decode("m", "", encoded.header_length, &body).unwrap();
        prop_assert_eq!(request, asked);
        prop_assert_eq!(forms.is_binary("y"), as_binary);
    }
}

#[test]
fn a_request_that_json_cannot_say_is_refused_with_advice() {
    let inputs = vec![floats("x", &[f32::NAN])];
    let request = InferRequest { inputs, ..InferRequest::default() };
    assert!(refusal(encode_request(&request, false)).contains("send it in binary form"));
    assert!(encode_request(&request, true).is_ok());
}
