use std::time::Duration;

use downbeat_oip::{DataType, Parameter};
use proptest::prelude::*;

use super::*;
use crate::mix::ModelSpec;

fn model() -> ModelLoad {
    ModelSpec { name: "m".into(), rows: Some(2), ..ModelSpec::default() }.or(&ModelSpec::default())
}

fn spec(datatype: DataType, shape: &[i64]) -> TensorSpec {
    TensorSpec { name: "x".into(), datatype, shape: shape.to_vec() }
}

fn shapes(given: &[&str], open_size: u64) -> Shapes {
    Shapes { given: given.iter().map(|text| text.parse().unwrap()).collect(), open_size }
}

#[test]
fn requests_of_every_type_fit_what_the_model_declares() {
    for datatype in DataType::ALL {
        let (requests, notes) = random(&model(), &[spec(datatype, &[-1, 3])], &shapes(&[], 1), 1).unwrap();
        assert_eq!((requests.len(), notes.len()), (VARIANTS as usize, 0));
        for request in &requests {
            assert_eq!(request.inputs[0].shape, [2, 3]);
            request.inputs[0].check().unwrap();
            request.check().unwrap();
        }
        assert_ne!(requests[0], requests[1], "{datatype:?}: the content varies");
    }
}

#[test]
fn open_dimensions_are_guessed_aloud_or_given() {
    let input = [spec(DataType::Fp32, &[-1, -1, 4])];
    let (requests, notes) = random(&model(), &input, &shapes(&[], 7), 1).unwrap();
    assert_eq!(requests[0].inputs[0].shape, [2, 7, 4]);
    assert!(notes[0].contains("taken as 7"), "{notes:?}");
    let (requests, notes) = random(&model(), &input, &shapes(&["x:1,128,4"], 7), 1).unwrap();
    assert_eq!((requests[0].inputs[0].shape.as_slice(), notes.len()), (&[1, 128, 4][..], 0));
}

#[test]
fn a_shape_that_the_model_does_not_take_is_refused() {
    let refused = |shape: &str| random(&model(), &[spec(DataType::Fp32, &[-1, 4])], &shapes(&[shape], 1), 1);
    assert!(refused("x:1,5").unwrap_err().to_string().contains("does not fit [-1, 4]"));
    assert!(refused("x:1").unwrap_err().to_string().contains("does not fit"));
    assert!(refused("x:999999999999,4").unwrap_err().to_string().contains("too large"));
    assert!("x".parse::<ShapeSpec>().is_err() && "x:1,b".parse::<ShapeSpec>().is_err());
}

#[test]
fn timeout_and_priority_go_into_every_request() {
    let mut model = model();
    (model.timeout, model.priority) = (Some(Duration::from_millis(5)), Some(1));
    let (requests, _) = random(&model, &[spec(DataType::Fp32, &[-1])], &shapes(&[], 1), 1).unwrap();
    assert_eq!(requests[0].parameters["timeout"], Parameter::Int(5_000));
    assert_eq!(requests[0].parameters["priority"], Parameter::Int(1));
}

proptest! {
    #[test]
    fn any_metadata_gives_requests_or_a_reason(
        shape in prop::collection::vec(prop_oneof![-1i64..4, any::<i64>()], 0..4),
        open_size in prop_oneof![0u64..5, any::<u64>()],
    ) {
        // The content of what is very large would take long to make.
        let count = shape.iter().map(|size| size.unsigned_abs()).fold(1u64, u64::saturating_mul);
        prop_assume!(count.saturating_mul(open_size) < 10_000 || count > 1 << 40);
        let _ = random(&model(), &[spec(DataType::Uint8, &shape)], &shapes(&[], open_size), 1);
    }
}

#[test]
fn a_file_holds_one_request_or_several() {
    let folder = std::env::temp_dir().join(format!("downbeat-load-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let read = |text: &str| {
        let file = folder.join("data.json");
        std::fs::write(&file, text).unwrap();
        from_file(&model(), &file)
    };
    let one =
        r#"{"inputs":[{"name":"x","shape":[1,2],"datatype":"INT64","data":[3,4]}],"parameters":{"a":true}}"#;
    assert_eq!(read(one).unwrap()[0].inputs[0].data[0], 3);
    let several = read(&format!("[{one},{one}]")).unwrap();
    assert_eq!((several.len(), several[1].parameters["a"].clone()), (2, Parameter::Bool(true)));
    assert!(read("[]").unwrap_err().to_string().contains("no request"));
    assert!(read("[1,").unwrap_err().to_string().contains("data.json"));
    assert!(read(r#"[{"inputs":[{"name":"x"}]}]"#).unwrap_err().to_string().contains("request 1"));
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn rows_are_refused_where_there_is_no_batch_dimension() {
    let error = random(&model(), &[spec(DataType::Fp32, &[3, -1])], &shapes(&[], 1), 1).unwrap_err();
    assert!(error.to_string().contains("no batch dimension"), "{error}");
    let one = ModelLoad { rows: 1, ..model() };
    assert!(random(&one, &[spec(DataType::Fp32, &[3, -1])], &shapes(&[], 1), 1).is_ok());
}
