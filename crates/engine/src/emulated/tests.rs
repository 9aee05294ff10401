use downbeat_oip::DataType;
use downbeat_profile::Span;

use super::*;

fn output(datatype: DataType, shape: &[i64]) -> TensorSpec {
    TensorSpec { name: "OUTPUT0".to_owned(), datatype, shape: shape.to_vec() }
}

#[test]
fn outputs_have_the_declared_shape_with_the_rows_of_the_batch() {
    let profile = LatencyProfile::linear(0.001, 0.001, 8).unwrap();
    let outputs = vec![
        output(DataType::Fp16, &[-1, 3, -1]),
        output(DataType::Bytes, &[-1, 2]),
        output(DataType::Int64, &[2]),
    ];
    let mut model = EmulatedModel::new(profile, outputs);
    let tensors = model.run(&[], 5).unwrap();
    let summary: Vec<_> = tensors.iter().map(|tensor| (tensor.shape.clone(), tensor.data.len())).collect();
    assert_eq!(summary, [(vec![5, 3, 1], 30), (vec![5, 2], 40), (vec![2], 16)]);
    assert!(tensors.iter().all(|tensor| tensor.data.iter().all(|&byte| byte == 0)));
}

#[test]
fn a_batch_never_takes_less_than_its_profile_says() {
    let profile = LatencyProfile::linear(1.0, 2.0, 8).unwrap();
    let mut model = EmulatedModel::new(profile, vec![output(DataType::Fp32, &[-1, 2])]);
    for rows in [1, 4, 8] {
        let mut clock = WallClock::start();
        model.run(&[], rows).unwrap();
        assert!(clock.now() >= Span::from_millis(2 + u64::from(rows)), "{rows}");
    }
}

#[test]
fn an_output_that_no_memory_holds_is_refused_and_not_made() {
    let profile = LatencyProfile::linear(0.001, 0.001, 8).unwrap();
    for shape in [&[-1, 1 << 40][..], &[i64::MAX, i64::MAX, 8]] {
        let mut model = EmulatedModel::new(profile.clone(), vec![output(DataType::Fp32, shape)]);
        assert!(model.run(&[], 1).unwrap_err().to_string().contains("1 GiB"));
    }
}
