//! Small ONNX models for tests, made without Python: [`Graph`] writes a model file, [`catalogue()`] is a set of models
//! that between them have every data type, several inputs and outputs, dynamic axes, strings, no batch dimension, and
//! inputs that make them fail.
//!
//! `cargo run -p downbeat-testmodels -- DIR` writes the catalogue as a model repository, for tests in other languages.

mod catalogue;
mod graph;
mod onnx;

pub use catalogue::{TestModel, catalogue, identity, sequence_output, write_repository};
pub use graph::Graph;
