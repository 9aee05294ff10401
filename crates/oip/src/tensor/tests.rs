use bytes::Bytes;
use proptest::prelude::*;

use super::*;

fn tensor(datatype: DataType, shape: &[u64], bytes: usize) -> Result<Tensor, TensorError> {
    Tensor::new("x", datatype, shape.to_vec(), Bytes::from(vec![0; bytes]))
}

#[test]
fn content_must_have_the_length_of_type_and_shape() {
    assert!(tensor(DataType::Fp32, &[2, 3], 24).is_ok());
    assert!(tensor(DataType::Fp32, &[], 4).is_ok(), "a scalar");
    assert!(tensor(DataType::Fp32, &[0, 3], 0).is_ok());
    let error = tensor(DataType::Fp32, &[2, 3], 20).unwrap_err().to_string();
    assert_eq!(error, "tensor 'x' of type FP32 and shape [2, 3] needs 24 bytes, but has 20");
}

#[test]
fn shapes_that_overflow_are_refused_even_beside_a_zero() {
    for shape in [&[1 << 40, 1 << 40][..], &[0, u64::MAX, u64::MAX], &[u64::MAX], &[i64::MAX as u64]] {
        let error = tensor(DataType::Fp64, shape, 8).unwrap_err();
        assert!(matches!(error, TensorError::Overflow { .. }), "{error}");
    }
}

#[test]
fn negative_dimensions_are_refused() {
    assert_eq!(
        shape_from_wire("x", &[2, -1]).unwrap_err().to_string(),
        "tensor 'x' has a negative dimension in its shape [2, -1]"
    );
}

#[test]
fn a_truth_value_is_0_or_1() {
    let bools = |bytes: &'static [u8]| {
        Tensor::new("x", DataType::Bool, vec![bytes.len() as u64], Bytes::from_static(bytes))
    };
    assert!(bools(&[0, 1]).is_ok());
    let error = bools(&[1, 0, 2]).unwrap_err().to_string();
    assert_eq!(error, "tensor 'x' of type BOOL has a byte 2 at 2: 0 and 1 are all there is");
}

#[test]
fn bytes_are_counted_by_element() {
    let strings = ["a", "", "ccc"];
    let tensor = Tensor::from_elements("s", vec![3], strings).unwrap();
    let back: Vec<_> = tensor.elements().map(Result::unwrap).collect();
    assert_eq!(back, strings.map(str::as_bytes));

    let error = Tensor::from_elements("s", vec![2], strings).unwrap_err().to_string();
    assert_eq!(error, "tensor 's' of shape [2] needs 2 elements, but has 3");
}

#[test]
fn bytes_that_end_inside_an_element_are_refused() {
    let whole = Tensor::from_elements("s", vec![2], ["ab", "cd"]).unwrap().data;
    for length in [1, 5, 7, 11] {
        let error = Tensor::new("s", DataType::Bytes, vec![2], whole.slice(..length)).unwrap_err();
        assert!(matches!(error, TensorError::Truncated { .. }), "cut at {length}: {error}");
    }
}

#[test]
fn rows_share_the_content() {
    let tensor = Tensor::new(
        "x",
        DataType::Uint16,
        vec![3, 2],
        Bytes::from_owner([0, 0, 1, 0, 2, 0, 3, 0, 4, 0, 5, 0]),
    )
    .unwrap();
    let rows = tensor.slice_rows(1..3).unwrap();
    assert_eq!(rows.shape, [2, 2]);
    assert_eq!(&rows.data[..], &[2, 0, 3, 0, 4, 0, 5, 0]);
    assert_eq!(rows.data.as_ptr(), tensor.data[4..].as_ptr());
}

#[test]
fn rows_that_are_not_there_are_refused() {
    let tensor = tensor(DataType::Int8, &[3, 2], 6).unwrap();
    assert!(tensor.slice_rows(2..4).is_err());
    #[expect(clippy::reversed_empty_ranges, reason = "that is the point")]
    let backwards = tensor.slice_rows(2..1);
    assert!(backwards.is_err());
    assert!(tensor.split_rows([1, 3]).is_err());
    let scalar = Tensor::new("x", DataType::Int8, vec![], Bytes::from_static(&[1])).unwrap();
    assert!(scalar.slice_rows(0..1).is_err());
}

proptest! {
    #[test]
    fn parts_of_a_batch_are_what_went_in(
        parts in prop::collection::vec(prop::collection::vec(".{0,5}", 0..4), 1..5),
    ) {
        let strings: Vec<&String> = parts.iter().flatten().collect();
        let batch = Tensor::from_elements("s", vec![strings.len() as u64, 1], &strings).unwrap();
        let cut = batch.split_rows(parts.iter().map(|part| part.len() as u64)).unwrap();
        let mut start = 0;
        for (part, tensor) in parts.iter().zip(&cut) {
            let whole = Tensor::from_elements("s", vec![part.len() as u64, 1], part).unwrap();
            prop_assert_eq!(tensor, &whole);
            let end = start + part.len() as u64;
            prop_assert_eq!(&batch.slice_rows(start..end).unwrap(), &whole);
            start = end;
        }
    }

    #[test]
    fn arbitrary_tensors_never_panic(
        datatype in prop::sample::select(DataType::ALL.to_vec()),
        shape in prop::collection::vec(prop_oneof![0u64..5, any::<u64>()], 0..4),
        data in prop::collection::vec(any::<u8>(), 0..64),
        range in (0u64..6, 0u64..6),
    ) {
        let tensor = Tensor { name: "x".into(), datatype, shape, data: data.into() };
        let _ = tensor.check();
        let _ = tensor.slice_rows(range.0..range.1);
    }
}
