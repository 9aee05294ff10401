use std::fs;

use downbeat_testmodels::{Graph, identity, sequence_output};
use tempfile::TempDir;

use super::*;

fn header(file: &[u8]) -> Result<Header, String> {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("model.onnx");
    fs::write(&path, file).unwrap();
    Header::read(&path).map_err(|error| error.problem)
}

fn declared(name: &str, datatype: DataType, shape: &[i64]) -> Declared {
    Declared { name: name.to_owned(), datatype, shape: Some(shape.to_vec()) }
}

#[test]
fn every_data_type_and_open_dimension_is_read() {
    for datatype in DataType::ALL {
        let header = header(&identity(datatype, &[-1, 3, -1]).encode()).unwrap();
        assert_eq!(header.inputs, [declared("INPUT0", datatype, &[-1, 3, -1])]);
        assert_eq!(header.outputs, [declared("OUTPUT0", datatype, &[-1, 3, -1])]);
    }
}

#[test]
fn what_comes_after_large_weights_is_found() {
    let sizes = [1usize, 4_000, 16 * 1024 - 1, 16 * 1024, 16 * 1024 + 1, 1_000_000];
    for size in sizes {
        let graph = Graph::new()
            .weights("first", DataType::Uint8, &[size as i64], vec![7; size])
            .weights("second", DataType::Uint8, &[size as i64], vec![7; size])
            .input("INPUT0", DataType::Fp32, &[-1, 2])
            .output("OUTPUT0", DataType::Fp32, &[-1, 2]);
        let header = header(&graph.encode()).unwrap();
        assert_eq!(header.inputs, [declared("INPUT0", DataType::Fp32, &[-1, 2])], "{size}");
    }
}

#[test]
fn initializers_that_old_files_list_among_the_inputs_are_no_inputs() {
    let graph = Graph::new()
        .ir_version(3)
        .input("INPUT0", DataType::Fp32, &[-1, 2])
        .input("weights", DataType::Fp32, &[2])
        .weights("weights", DataType::Fp32, &[2], vec![0; 8])
        .output("OUTPUT0", DataType::Fp32, &[-1, 2]);
    assert_eq!(header(&graph.encode()).unwrap().inputs, [declared("INPUT0", DataType::Fp32, &[-1, 2])]);
}

#[test]
fn outputs_that_are_no_tensors_are_refused() {
    assert_eq!(
        header(&sequence_output().encode()).unwrap_err(),
        "its output \"OUTPUT0\" is not a tensor, which cannot be served; export the model without it"
    );
}

#[test]
fn files_that_are_no_models_are_refused() {
    let model = identity(DataType::Fp32, &[-1]).encode();
    for file in [&b""[..], b"no model at all", &model[..model.len() - 3]] {
        let problem = header(file).unwrap_err();
        assert!(problem.starts_with("is not an ONNX model ("), "{problem}");
    }
}
