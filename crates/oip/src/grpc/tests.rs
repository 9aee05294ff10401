use proptest::prelude::*;

use super::*;
use crate::proto::InferTensorContents;
use crate::proto::model_infer_request::InferRequestedOutputTensor;

fn input(datatype: &str, shape: &[i64]) -> InferInputTensor {
    InferInputTensor {
        name: "x".into(),
        datatype: datatype.into(),
        shape: shape.to_vec(),
        ..InferInputTensor::default()
    }
}

fn raw(datatype: &str, shape: &[i64], content: &[u8]) -> Result<InferRequest, Failure> {
    decode(ModelInferRequest {
        inputs: vec![input(datatype, shape)],
        raw_input_contents: vec![Bytes::copy_from_slice(content)],
        ..ModelInferRequest::default()
    })
}

fn typed(datatype: &str, contents: InferTensorContents) -> Result<InferRequest, Failure> {
    let input = InferInputTensor { contents: Some(contents), ..input(datatype, &[2]) };
    decode(ModelInferRequest { inputs: vec![input], ..ModelInferRequest::default() })
}

fn refusal(result: Result<InferRequest, Failure>) -> String {
    let failure = result.unwrap_err();
    assert_eq!(failure.reason, Reason::Invalid, "{failure}");
    failure.message
}

#[test]
fn raw_contents_are_taken_as_they_are() {
    let request = raw("INT16", &[1, 2], &[1, 0, 2, 0]).unwrap();
    let expected = Tensor::new("x", DataType::Int16, vec![1, 2], vec![1, 0, 2, 0].into()).unwrap();
    assert_eq!(request.inputs, [expected]);
}

#[test]
fn raw_contents_must_fit_inputs_types_and_shapes() {
    let two_for_one = decode(ModelInferRequest {
        inputs: vec![input("INT8", &[1])],
        raw_input_contents: vec![Bytes::from_static(&[1]); 2],
        ..ModelInferRequest::default()
    });
    assert!(refusal(two_for_one).starts_with("the request has 1 inputs, but 2 raw_input_contents"));
    assert!(refusal(raw("FP32", &[2], &[0; 7])).contains("needs 8 bytes, but has 7"));
    assert!(refusal(raw("FP32", &[-2], &[0; 8])).contains("negative dimension"));
    assert!(refusal(raw("FP32", &[i64::MAX, 4], &[0; 8])).contains("no memory can hold"));
    assert!(refusal(raw("FP99", &[2], &[0; 8])).contains("unknown type 'FP99'"));
}

#[test]
fn every_type_has_its_typed_contents() {
    let contents = InferTensorContents {
        bool_contents: vec![true, false],
        int_contents: vec![-1, 2],
        int64_contents: vec![-3, 4],
        uint_contents: vec![5, 6],
        uint64_contents: vec![7, 8],
        fp32_contents: vec![0.5, 1.5],
        fp64_contents: vec![2.5, 3.5],
        bytes_contents: vec![b"a".to_vec(), vec![]],
    };
    for (datatype, expected) in [
        ("BOOL", vec![1, 0]),
        ("INT8", vec![255, 2]),
        ("INT16", vec![255, 255, 2, 0]),
        ("INT32", [(-1i32).to_le_bytes(), 2i32.to_le_bytes()].concat()),
        ("INT64", [(-3i64).to_le_bytes(), 4i64.to_le_bytes()].concat()),
        ("UINT8", vec![5, 6]),
        ("UINT16", vec![5, 0, 6, 0]),
        ("UINT32", vec![5, 0, 0, 0, 6, 0, 0, 0]),
        ("UINT64", [7u64.to_le_bytes(), 8u64.to_le_bytes()].concat()),
        ("FP32", [0.5f32.to_le_bytes(), 1.5f32.to_le_bytes()].concat()),
        ("FP64", [2.5f64.to_le_bytes(), 3.5f64.to_le_bytes()].concat()),
        ("BYTES", vec![1, 0, 0, 0, b'a', 0, 0, 0, 0]),
    ] {
        let request = typed(datatype, contents.clone()).unwrap();
        assert_eq!(request.inputs[0].data, expected, "{datatype}");
    }
}

#[test]
fn typed_contents_must_fit_type_and_shape() {
    let ints = |values: &[i32]| InferTensorContents { int_contents: values.to_vec(), ..Default::default() };
    assert!(refusal(typed("INT32", ints(&[1]))).contains("needs 2 elements in int_contents, but has 1"));
    assert!(refusal(typed("INT8", ints(&[1, 300]))).contains("300 is not a value of type INT8"));
    assert!(refusal(typed("FP16", ints(&[1, 2]))).contains("send raw_input_contents"));
}

#[test]
fn an_input_has_exactly_one_content() {
    let none =
        decode(ModelInferRequest { inputs: vec![input("INT8", &[1])], ..ModelInferRequest::default() });
    assert!(refusal(none).contains("has no content"));
    let both = decode(ModelInferRequest {
        inputs: vec![InferInputTensor {
            contents: Some(InferTensorContents::default()),
            ..input("INT8", &[1])
        }],
        raw_input_contents: vec![Bytes::from_static(&[1])],
        ..ModelInferRequest::default()
    });
    assert!(refusal(both).contains("only one can be its content"));
}

#[test]
fn shared_memory_is_not_supported() {
    let region = Parameter::String("region".into());
    let input = InferInputTensor {
        parameters: [("shared_memory_region".to_owned(), region.into())].into(),
        ..input("INT8", &[1])
    };
    let failure = decode(ModelInferRequest { inputs: vec![input], ..Default::default() }).unwrap_err();
    assert_eq!(failure.reason, Reason::Unimplemented);
}

#[test]
fn outputs_may_ask_for_classes() {
    let request = decode(ModelInferRequest {
        outputs: vec![InferRequestedOutputTensor {
            name: "y".into(),
            parameters: [("classification".to_owned(), Parameter::Int(3).into())].into(),
        }],
        ..ModelInferRequest::default()
    });
    assert_eq!(request.unwrap().outputs, [RequestedOutput { name: "y".into(), classes: 3 }]);
}

#[test]
fn a_response_carries_raw_contents_and_parameters() {
    let message = encode(InferResponse {
        model: "m".into(),
        version: "3".into(),
        id: "7".into(),
        parameters: [("downbeat_queue_us".to_owned(), Parameter::Uint(12))].into(),
        outputs: vec![Tensor::new("y", DataType::Uint8, vec![1, 2], vec![1, 2].into()).unwrap()],
    });
    assert_eq!(message.raw_output_contents, [Bytes::from_static(&[1, 2])]);
    assert_eq!(message.outputs[0].shape, [1, 2]);
    assert_eq!((message.model_version.as_str(), message.id.as_str()), ("3", "7"));
    assert_eq!(
        message.parameters["downbeat_queue_us"].parameter_choice,
        Some(ParameterChoice::Uint64Param(12))
    );
}

#[test]
fn a_request_that_a_client_writes_is_read_as_it_was() {
    let request = InferRequest {
        model: "m".into(),
        version: "2".into(),
        id: "7".into(),
        parameters: [("timeout".to_owned(), Parameter::Int(12))].into(),
        inputs: vec![Tensor::new("x", DataType::Uint8, vec![1, 2], vec![1, 2].into()).unwrap()],
        outputs: vec![RequestedOutput { name: "y".into(), classes: 3 }],
    };
    assert_eq!(decode(encode_request(request.clone())).unwrap(), request);
}

proptest! {
    #[test]
    fn arbitrary_messages_never_panic(
        datatype in prop_oneof![
            prop::sample::select(DataType::ALL.to_vec()).prop_map(|datatype| datatype.name().to_owned()),
            ".{0,6}",
        ],
        shape in prop::collection::vec(prop_oneof![-2i64..5, any::<i64>()], 0..4),
        content in prop::collection::vec(any::<u8>(), 0..64),
    ) {
        let _ = raw(&datatype, &shape, &content);
    }
}
