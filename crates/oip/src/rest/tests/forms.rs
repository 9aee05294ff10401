//! What a request may look like.

use super::*;
use crate::{Parameter, RequestedOutput};

#[test]
fn data_may_be_nested_or_flat() {
    let flat = one_input("INT32", "[2,2]", "[1,2,3,4]").unwrap();
    let nested = one_input("INT32", "[2,2]", "[ [1, 2],\n[3, 4] ]").unwrap();
    assert_eq!(flat, nested);
    assert_eq!(&flat.data[..8], &[1, 0, 0, 0, 2, 0, 0, 0]);
}

#[test]
fn every_type_but_half_precision_can_be_json() {
    for (datatype, data, expected) in [
        ("BOOL", "[true,false]", vec![1, 0]),
        ("UINT8", "[0,255]", vec![0, 255]),
        ("UINT16", "[1,65535]", vec![1, 0, 255, 255]),
        ("UINT32", "[1,4294967295]", [1u32.to_le_bytes(), u32::MAX.to_le_bytes()].concat()),
        ("UINT64", "[1,18446744073709551615]", [1u64.to_le_bytes(), u64::MAX.to_le_bytes()].concat()),
        ("INT8", "[-128,127]", vec![128, 127]),
        ("INT16", "[-2,2]", vec![254, 255, 2, 0]),
        ("INT32", "[-1,1]", [(-1i32).to_le_bytes(), 1i32.to_le_bytes()].concat()),
        ("INT64", "[-9223372036854775808,1]", [i64::MIN.to_le_bytes(), 1i64.to_le_bytes()].concat()),
        ("FP32", "[1,-2.5e-3]", [1f32.to_le_bytes(), (-2.5e-3f32).to_le_bytes()].concat()),
        ("FP64", "[0.1,-0]", [0.1f64.to_le_bytes(), (-0f64).to_le_bytes()].concat()),
        ("BYTES", r#"["a]\"é",""]"#, [&[5, 0, 0, 0][..], "a]\"é".as_bytes(), &[0; 4]].concat()),
    ] {
        assert_eq!(one_input(datatype, "[2]", data).unwrap().data, expected, "{datatype}");
    }
    for datatype in ["FP16", "BF16"] {
        assert!(refusal(one_input(datatype, "[1]", "[1.0]")).contains("send it as binary"));
    }
}

#[test]
fn the_type_may_come_after_the_data() {
    let (request, _) =
        json(r#"{"inputs":[{"data":[7],"name":"x","shape":[1],"datatype":"UINT8"}]}"#).unwrap();
    assert_eq!(request.inputs[0].data, [7][..]);
}

#[test]
fn binary_tensors_follow_in_the_order_of_the_json() {
    let header = r#"{"inputs":[
        {"name":"a","shape":[1],"datatype":"UINT16","parameters":{"binary_data_size":2}},
        {"name":"b","shape":[1],"datatype":"UINT8","data":[9]},
        {"name":"c","shape":[2],"datatype":"FP16","parameters":{"binary_data_size":4}}]}"#;
    let (request, _) = with_binary(header, &[1, 2, 3, 4, 5, 6]).unwrap();
    let contents: Vec<&[u8]> = request.inputs.iter().map(|input| &input.data[..]).collect();
    assert_eq!(contents, [&[1, 2][..], &[9], &[3, 4, 5, 6]]);
}

#[test]
fn outputs_are_asked_for_in_their_forms() {
    let (request, forms) = json(
        r#"{"id":"7","parameters":{"binary_data_output":true,"timeout":2500,"priority":18446744073709551615},
            "inputs":[],"outputs":[{"name":"y","parameters":{"binary_data":false}},
                                   {"name":"z","parameters":{"classification":3}}]}"#,
    )
    .unwrap();
    assert!(!forms.is_binary("y"));
    assert!(forms.is_binary("z"));
    assert_eq!(request.id, "7");
    assert_eq!(request.outputs[1], RequestedOutput { name: "z".into(), classes: 3 });
    assert_eq!(request.parameters["timeout"], Parameter::Int(2500));
    assert_eq!(request.priority(), Ok(u64::MAX));
    assert!(!request.parameters.contains_key("binary_data_output"), "it says how to answer, not what to do");
}

#[test]
fn outputs_are_json_unless_asked_otherwise() {
    let (_, forms) = json(r#"{"inputs":[]}"#).unwrap();
    assert!(!forms.is_binary("y"));
}

#[test]
fn shared_memory_is_not_supported() {
    let body = r#"{"inputs":[{"name":"x","shape":[1],"datatype":"INT8",
                   "parameters":{"shared_memory_region":"r","shared_memory_byte_size":1}}]}"#;
    assert_eq!(json(body).unwrap_err().reason, Reason::Unimplemented);
}
