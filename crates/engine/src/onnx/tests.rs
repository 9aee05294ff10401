//! With the real library, which `make setup-runtime` fetches.

use std::fs;

use bytes::{BufMut, Bytes};
use downbeat_oip::DataType;
use downbeat_testmodels::{Graph, catalogue, identity, sequence_output};
use tempfile::TempDir;

use super::*;
use crate::synthetic::synthetic_inputs;

fn runtime() -> OnnxRuntime {
    OnnxRuntime::init(None).unwrap()
}

fn settings() -> OnnxSettings {
    OnnxSettings { intra_op_threads: 1, provider: Provider::Cpu }
}

fn load_bytes(file: &[u8]) -> Result<OnnxModel, EngineError> {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("model.onnx");
    fs::write(&path, file).unwrap();
    let path_text = path.display().to_string();
    runtime().load(&path, &settings()).map_err(|error| EngineError(error.0.replace(&path_text, "FILE")))
}

fn load(graph: Graph) -> OnnxModel {
    load_bytes(&graph.encode()).unwrap()
}

fn load_from_catalogue(name: &str) -> OnnxModel {
    let model = catalogue().into_iter().find(|model| model.name == name).unwrap();
    load_bytes(&model.file.unwrap()).unwrap()
}

fn tensor(name: &str, datatype: DataType, shape: &[u64], data: impl Into<Bytes>) -> Tensor {
    Tensor { name: name.to_owned(), datatype, shape: shape.to_vec(), data: data.into() }
}

fn floats(name: &str, shape: &[u64], values: &[f32]) -> Tensor {
    let data: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    tensor(name, DataType::Fp32, shape, data)
}

fn strings(name: &str, shape: &[u64], values: &[&[u8]]) -> Tensor {
    let mut data = Vec::new();
    for value in values {
        data.put_u32_le(value.len() as u32);
        data.put_slice(value);
    }
    tensor(name, DataType::Bytes, shape, data)
}

/// The tensor with its content at an odd address, as a slice of a request's body may be.
fn misaligned(tensor: &Tensor) -> Tensor {
    let mut body: Vec<u8> = Vec::with_capacity(1 + tensor.data.len());
    let offset = 1 - body.as_ptr().addr() % 2;
    body.resize(offset, 0);
    body.extend_from_slice(&tensor.data);
    Tensor { data: Bytes::from(body).slice(offset..), ..tensor.clone() }
}

fn renamed(tensor: &Tensor) -> Tensor {
    Tensor { name: "OUTPUT0".to_owned(), ..tensor.clone() }
}

#[test]
fn every_data_type_comes_out_as_it_went_in() {
    for datatype in DataType::ALL {
        let mut model = load(identity(datatype, &[-1, -1]));
        let inputs = synthetic_inputs(&model.signature().inputs, 3, 5, 1);
        assert_eq!(model.run(&inputs, 3).unwrap(), [renamed(&inputs[0])], "{datatype:?}");
        let shifted = misaligned(&inputs[0]);
        assert_eq!(model.run(&[shifted], 3).unwrap(), [renamed(&inputs[0])], "{datatype:?}");
    }
}

#[test]
fn tensors_without_elements_and_scalars_work_for_every_data_type() {
    for datatype in DataType::ALL {
        let mut model = load(identity(datatype, &[-1, -1]));
        let empty = tensor("INPUT0", datatype, &[0, 7], Bytes::new());
        assert_eq!(model.run(std::slice::from_ref(&empty), 0).unwrap(), [renamed(&empty)], "{datatype:?}");

        let mut model = load(identity(datatype, &[]));
        let scalar = synthetic_inputs(&model.signature().inputs, 1, 1, 1);
        assert_eq!(scalar[0].shape, [0u64; 0]);
        assert_eq!(model.run(&scalar, 1).unwrap(), [renamed(&scalar[0])], "{datatype:?}");
    }
}

#[test]
fn a_model_says_what_it_takes_and_gives() {
    let model = load_from_catalogue("row_sums");
    let spec = |name: &str, shape: &[i64]| TensorSpec {
        name: name.to_owned(),
        datatype: DataType::Fp32,
        shape: shape.to_vec(),
    };
    let expected =
        Signature { inputs: vec![spec("INPUT0", &[-1, -1])], outputs: vec![spec("OUTPUT0", &[-1, 1])] };
    assert_eq!(model.signature(), &expected);
}

#[test]
fn several_inputs_and_outputs_are_told_apart_by_name_whatever_their_order() {
    let mut model = load_from_catalogue("simple");
    let integers = |name: &str, value: i32| {
        tensor(name, DataType::Int32, &[1, 16], [value; 16].map(i32::to_le_bytes).as_flattened().to_vec())
    };
    let outputs = model.run(&[integers("INPUT1", 3), integers("INPUT0", 10)], 1).unwrap();
    assert_eq!(outputs, [integers("OUTPUT0", 13), integers("OUTPUT1", 7)]);
}

#[test]
fn weights_and_dynamic_axes_give_the_numbers_they_should() {
    let mut sums = load_from_catalogue("row_sums");
    for length in [1u64, 3] {
        let values: Vec<f32> = (0..2 * length).map(|i| i as f32).collect();
        let expected: Vec<f32> = values.chunks(length as usize).map(|row| row.iter().sum()).collect();
        let outputs = sums.run(&[floats("INPUT0", &[2, length], &values)], 2).unwrap();
        assert_eq!(outputs, [floats("OUTPUT0", &[2, 1], &expected)]);
    }
    let mut matmul = load_from_catalogue("matmul");
    let outputs = matmul.run(&[floats("INPUT0", &[1, 4], &[1.0, 0.0, 0.0, 2.0])], 1).unwrap();
    assert_eq!(outputs, [floats("OUTPUT0", &[1, 3], &[0.75, 2.25, 3.75])]);
}

#[test]
fn strings_keep_their_bytes() {
    let mut model = load_from_catalogue("concat_strings");
    let left = strings("INPUT0", &[2, 1], &[b"", "gr\u{fc}n".as_bytes()]);
    let right = strings("INPUT1", &[2, 1], &[b"a b", "\u{1f3b5}".as_bytes()]);
    let outputs = model.run(&[left, right], 2).unwrap();
    let expected: [&[u8]; 4] = [b"", b"a b", "gr\u{fc}n".as_bytes(), "\u{1f3b5}".as_bytes()];
    assert_eq!(outputs, [strings("OUTPUT0", &[2, 2], &expected)]);
}

#[test]
fn strings_that_the_runtime_cannot_take_are_refused_by_their_place() {
    let refusal = |tensor: &Tensor| check_strings(tensor).unwrap_err().to_string();
    assert_eq!(
        refusal(&strings("NAME", &[2], &[b"ok", b"\xff\xfe"])),
        "element 1 of the input \"NAME\" is not valid UTF-8, and the strings of ONNX models are text"
    );
    assert_eq!(
        refusal(&strings("NAME", &[1], &[b"a\0b"])),
        "element 0 of the input \"NAME\" has a NUL in it, which ONNX Runtime cannot take"
    );
    let cut = tensor("NAME", DataType::Bytes, &[1], vec![9, 0, 0, 0, b'x']);
    assert_eq!(refusal(&cut), "element 0 of the input \"NAME\" is cut off");

    let mut model = load(identity(DataType::Bytes, &[-1]));
    assert!(model.run(&[strings("INPUT0", &[1], &[b"\xff"])], 1).is_err());
    assert!(model.run(&[strings("INPUT0", &[2], &[b"one"])], 2).is_err());
}

#[test]
fn a_bool_that_is_neither_0_nor_1_counts_as_true() {
    let mut model = load(identity(DataType::Bool, &[-1]));
    let outputs = model.run(&[tensor("INPUT0", DataType::Bool, &[3], vec![0, 1, 255])], 3).unwrap();
    assert_eq!(outputs[0].data[..], [0, 1, 1]);
}

#[test]
fn content_that_does_not_fit_its_shape_never_reaches_the_runtime() {
    let mut model = load(identity(DataType::Fp32, &[-1, -1]));
    for shape in [&[2u64, 3][..], &[u64::MAX, u64::MAX], &[u64::MAX, 2]] {
        let error = model.run(&[tensor("INPUT0", DataType::Fp32, shape, vec![0; 20])], 1).unwrap_err();
        assert!(error.0.starts_with("the input \"INPUT0\" has 20 bytes, which is not what FP32"), "{error}");
    }
}

#[test]
fn a_model_that_fails_says_so_in_one_line_and_can_run_again() {
    let mut model = load_from_catalogue("gather");
    let index = |value: i64| tensor("INPUT0", DataType::Int64, &[1], value.to_le_bytes().to_vec());
    let error = model.run(&[index(99)], 1).unwrap_err();
    assert!(error.0.starts_with("the model failed: ") && !error.0.contains('\n'), "{error}");
    assert_eq!(model.run(&[index(3)], 1).unwrap(), [floats("OUTPUT0", &[1, 2], &[6.0, 7.0])]);
}

#[test]
fn inputs_that_are_missing_or_have_the_wrong_name_rank_or_type_are_errors() {
    let mut model = load_from_catalogue("matmul");
    let wrong = [
        vec![],
        vec![floats("OTHER", &[1, 4], &[0.0; 4])],
        vec![floats("INPUT0", &[4], &[0.0; 4])],
        vec![floats("INPUT0", &[1, 3], &[0.0; 3])],
        vec![tensor("INPUT0", DataType::Int32, &[1, 4], vec![0; 16])],
    ];
    for inputs in wrong {
        let error = model.run(&inputs, 1).unwrap_err();
        assert!(!error.0.contains('\n'), "{error}");
    }
}

#[test]
fn a_model_with_an_output_that_is_no_tensor_is_refused_when_it_is_loaded() {
    assert_eq!(
        load_bytes(&sequence_output().encode()).unwrap_err().to_string(),
        "FILE cannot be served: its output \"OUTPUT0\" is a Sequence<Tensor<f32>()>; only tensors of the protocol's \
         types can be sent"
    );
}

#[test]
fn files_that_are_no_models_are_refused_in_one_line() {
    let truncated = identity(DataType::Fp32, &[-1]).encode();
    for file in [&b""[..], b"no model at all", &truncated[..truncated.len() / 2]] {
        let error = load_bytes(file).unwrap_err();
        assert!(error.0.starts_with("FILE cannot be loaded: ") && !error.0.contains('\n'), "{error}");
    }
    let missing = runtime().load(Path::new("/nowhere/model.onnx"), &settings()).unwrap_err();
    assert!(missing.0.starts_with("/nowhere/model.onnx cannot be loaded: "), "{missing}");
}

#[test]
fn a_provider_that_the_library_lacks_is_named_before_a_model_is_loaded() {
    for (provider, name) in [(Provider::Cuda(0), "CUDA"), (Provider::TensorRt(0), "TensorRT")] {
        if runtime().check(provider).is_ok() {
            continue;
        }
        let cause = runtime().check(provider).unwrap_err();
        assert!(cause.0.contains(&format!("has no {name} provider")), "{cause}");
        let settings = OnnxSettings { provider, ..settings() };
        assert_eq!(runtime().load(Path::new("model.onnx"), &settings).unwrap_err(), cause);
    }
}

#[test]
fn loading_the_library_again_gives_the_same_and_another_is_refused() {
    let library = runtime().library().to_owned();
    assert_eq!(OnnxRuntime::init(Some(&library)).unwrap().library(), library);
    let other = library.with_file_name("libonnxruntime_providers_shared.so");
    let error = OnnxRuntime::init(Some(&other)).unwrap_err();
    assert!(error.0.contains("needs another process"), "{error}");
}

#[test]
fn synthetic_inputs_run_on_every_test_model() {
    for model in catalogue() {
        let Some(file) = model.file else { continue };
        let mut loaded = load_bytes(&file).unwrap();
        let inputs = synthetic_inputs(&loaded.signature().inputs, 2, 3, 1);
        let outputs = loaded.run(&inputs, 2).unwrap();
        let names: Vec<&str> = outputs.iter().map(|output| output.name.as_str()).collect();
        let declared: Vec<&str> = loaded.signature().outputs.iter().map(|spec| spec.name.as_str()).collect();
        assert_eq!(names, declared, "{}", model.name);
    }
}
