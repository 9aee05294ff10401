//! Bodies without JSON.

use super::*;
use crate::TensorSpec;

fn spec(datatype: DataType, shape: &[i64]) -> TensorSpec {
    TensorSpec { name: "x".into(), datatype, shape: shape.to_vec() }
}

fn read(spec: TensorSpec, batched: bool, body: &'static [u8]) -> Result<Tensor, Failure> {
    decode_raw("m", "", &[spec], batched, Bytes::from_static(body)).map(|(mut request, forms)| {
        assert!(forms.is_binary("y"), "who sends binary gets binary");
        request.inputs.remove(0)
    })
}

#[test]
fn the_body_is_one_row_of_the_input() {
    let tensor = read(spec(DataType::Uint16, &[-1, 2]), true, &[1, 0, 2, 0]).unwrap();
    assert_eq!(tensor.shape, [1, 2]);
    assert_eq!(tensor.data, [1, 0, 2, 0][..]);
}

#[test]
fn one_open_dimension_follows_from_the_length() {
    assert_eq!(read(spec(DataType::Uint8, &[-1, -1, 2]), true, &[0; 6]).unwrap().shape, [1, 3, 2]);
    assert_eq!(read(spec(DataType::Uint8, &[-1]), false, &[0; 6]).unwrap().shape, [6]);
}

#[test]
fn bytes_are_one_element() {
    let tensor = read(spec(DataType::Bytes, &[-1, 1]), true, b"abc").unwrap();
    assert_eq!(tensor.shape, [1, 1]);
    assert_eq!(tensor.elements().next(), Some(Ok(&b"abc"[..])));
}

#[test]
fn what_does_not_follow_is_refused() {
    let several =
        decode_raw("m", "", &[spec(DataType::Int8, &[1]), spec(DataType::Int8, &[1])], false, Bytes::new());
    assert!(refusal(several).contains("'m' has 2"));
    assert!(refusal(read(spec(DataType::Int8, &[-1, -1]), false, &[0; 6])).contains("several dimensions"));
    assert!(refusal(read(spec(DataType::Int8, &[-1, 4]), false, &[0; 6])).contains("evenly"));
    assert!(
        refusal(read(spec(DataType::Int8, &[-1, 4]), true, &[0; 6])).contains("needs 4 bytes, but has 6")
    );
    assert!(refusal(read(spec(DataType::Bytes, &[-1, 2]), true, b"abc")).contains("needs 2 elements"));
}
