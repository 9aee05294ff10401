use super::*;

fn input(datatype: DataType, shape: &[i64]) -> TensorSpec {
    TensorSpec { name: "INPUT0".to_owned(), datatype, shape: shape.to_vec() }
}

#[test]
fn the_leading_open_dimension_is_the_rows_and_others_have_the_size_asked_for() {
    let tensors = synthetic_inputs(
        &[input(DataType::Fp32, &[-1, 3, -1]), input(DataType::Int16, &[4]), input(DataType::Fp64, &[])],
        5,
        2,
        1,
    );
    let summary: Vec<_> = tensors.iter().map(|tensor| (tensor.shape.clone(), tensor.data.len())).collect();
    assert_eq!(summary, [(vec![5, 3, 2], 120), (vec![4], 8), (vec![], 8)]);
}

#[test]
fn integers_are_0_or_1_and_both_occur() {
    let tensor = &synthetic_inputs(&[input(DataType::Int64, &[-1])], 64, 1, 1)[0];
    let mut values: Vec<i64> =
        tensor.data.chunks_exact(8).map(|bytes| i64::from_le_bytes(bytes.try_into().unwrap())).collect();
    values.sort_unstable();
    values.dedup();
    assert_eq!(values, [0, 1]);
}

#[test]
fn the_same_seed_gives_the_same_inputs_and_another_seed_others() {
    let inputs = [input(DataType::Fp32, &[-1, 8]), input(DataType::Bytes, &[-1])];
    assert_eq!(synthetic_inputs(&inputs, 3, 1, 7), synthetic_inputs(&inputs, 3, 1, 7));
    assert_ne!(synthetic_inputs(&inputs, 3, 1, 7), synthetic_inputs(&inputs, 3, 1, 8));
}
