//! The test models.

use std::fs;
use std::io;
use std::path::Path;

use downbeat_oip::DataType;

use crate::Graph;

/// A model for tests: what its directory in a repository holds.
#[derive(Clone, Debug)]
pub struct TestModel {
    /// Its name.
    pub name: String,
    /// `1/model.onnx`; none for the emulated engine.
    pub file: Option<Vec<u8>>,
    /// `config.pbtxt`; none where the server is to complete it from the file.
    pub config: Option<String>,
}

/// All test models.
pub fn catalogue() -> Vec<TestModel> {
    let mut models: Vec<TestModel> = DataType::ALL
        .into_iter()
        .map(|datatype| {
            let name = format!("identity_{}", datatype.name().to_lowercase());
            model(&name, identity(datatype, &[-1, -1]), None)
        })
        .collect();
    models.extend([
        model("simple", simple(), Some(SIMPLE_CONFIG)),
        model("matmul", matmul(), None),
        model("concat_strings", concat_strings(), None),
        model("row_sums", row_sums(), None),
        model("gather", gather(), None),
        model("no_batch", identity(DataType::Fp32, &[4]), None),
        model("scalar", identity(DataType::Fp32, &[]), None),
        TestModel { name: "emulated".to_owned(), file: None, config: Some(EMULATED_CONFIG.to_owned()) },
    ]);
    models
}

/// Writes the catalogue as a model repository.
pub fn write_repository(directory: &Path) -> io::Result<()> {
    for model in catalogue() {
        let version = directory.join(&model.name).join("1");
        fs::create_dir_all(&version)?;
        if let Some(file) = model.file {
            fs::write(version.join("model.onnx"), file)?;
        }
        if let Some(config) = model.config {
            fs::write(directory.join(&model.name).join("config.pbtxt"), config)?;
        }
    }
    Ok(())
}

fn model(name: &str, graph: Graph, config: Option<&str>) -> TestModel {
    TestModel { name: name.to_owned(), file: Some(graph.encode()), config: config.map(str::to_owned) }
}

/// `OUTPUT0` = `INPUT0`.
pub fn identity(datatype: DataType, shape: &[i64]) -> Graph {
    Graph::new().input("INPUT0", datatype, shape).output("OUTPUT0", datatype, shape).node(
        "Identity",
        &["INPUT0"],
        &["OUTPUT0"],
    )
}

/// The model of Triton's examples: the sum and the difference of two rows of 16 integers.
fn simple() -> Graph {
    Graph::new()
        .input("INPUT0", DataType::Int32, &[-1, 16])
        .input("INPUT1", DataType::Int32, &[-1, 16])
        .output("OUTPUT0", DataType::Int32, &[-1, 16])
        .output("OUTPUT1", DataType::Int32, &[-1, 16])
        .node("Add", &["INPUT0", "INPUT1"], &["OUTPUT0"])
        .node("Sub", &["INPUT0", "INPUT1"], &["OUTPUT1"])
}

const SIMPLE_CONFIG: &str = r#"name: "simple"
platform: "onnxruntime_onnx"
max_batch_size: 8
input [
  { name: "INPUT0" data_type: TYPE_INT32 dims: [ 16 ] },
  { name: "INPUT1" data_type: TYPE_INT32 dims: [ 16 ] }
]
output [
  { name: "OUTPUT0" data_type: TYPE_INT32 dims: [ 16 ] },
  { name: "OUTPUT1" data_type: TYPE_INT32 dims: [ 16 ] }
]
parameters { key: "slo_ms" value { string_value: "500" } }
"#;

/// Rows of 4 numbers times a matrix of 4 by 3.
fn matmul() -> Graph {
    let weights = (0..12u8).flat_map(|i| (f32::from(i) * 0.5 - 2.75).to_le_bytes()).collect();
    Graph::new()
        .input("INPUT0", DataType::Fp32, &[-1, 4])
        .output("OUTPUT0", DataType::Fp32, &[-1, 3])
        .weights("weights", DataType::Fp32, &[4, 3], weights)
        .node("MatMul", &["INPUT0", "weights"], &["OUTPUT0"])
}

/// Two columns of strings side by side.
fn concat_strings() -> Graph {
    Graph::new()
        .input("INPUT0", DataType::Bytes, &[-1, 1])
        .input("INPUT1", DataType::Bytes, &[-1, 1])
        .output("OUTPUT0", DataType::Bytes, &[-1, 2])
        .node("Concat", &["INPUT0", "INPUT1"], &["OUTPUT0"])
        .attribute("axis", 1)
}

/// The sum of each row, of any length.
fn row_sums() -> Graph {
    Graph::new()
        .input("INPUT0", DataType::Fp32, &[-1, -1])
        .output("OUTPUT0", DataType::Fp32, &[-1, 1])
        .weights("axes", DataType::Int64, &[1], 1i64.to_le_bytes().to_vec())
        .node("ReduceSum", &["INPUT0", "axes"], &["OUTPUT0"])
}

/// Looks up rows of a table of 4: any other index makes the model fail.
fn gather() -> Graph {
    let table = (0..8u8).flat_map(|i| f32::from(i).to_le_bytes()).collect();
    Graph::new()
        .input("INPUT0", DataType::Int64, &[-1])
        .output("OUTPUT0", DataType::Fp32, &[-1, 2])
        .weights("table", DataType::Fp32, &[4, 2], table)
        .node("Gather", &["table", "INPUT0"], &["OUTPUT0"])
}

/// A model whose output is a sequence, which no tensor protocol can carry.
pub fn sequence_output() -> Graph {
    Graph::new().input("INPUT0", DataType::Fp32, &[-1, 4]).sequence_output("OUTPUT0", DataType::Fp32).node(
        "SplitToSequence",
        &["INPUT0"],
        &["OUTPUT0"],
    )
}

const EMULATED_CONFIG: &str = r#"name: "emulated"
backend: "emulated"
max_batch_size: 32
input [ { name: "INPUT0" data_type: TYPE_FP32 dims: [ 4 ] } ]
output [ { name: "OUTPUT0" data_type: TYPE_FP32 dims: [ 2 ] } ]
parameters { key: "slo_ms" value { string_value: "100" } }
parameters { key: "alpha_ms" value { string_value: "0.5" } }
parameters { key: "beta_ms" value { string_value: "2" } }
"#;
