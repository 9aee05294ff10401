//! What a model is, as its directory says.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use downbeat_oip::proto::ModelConfig;
use downbeat_oip::{Reshape, TensorSpec};

/// What runs a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backend {
    /// ONNX Runtime.
    Onnx,
    /// Nothing: it takes time and gives zeros.
    Emulated,
}

/// A model of a repository, complete and checked.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelDefinition {
    /// Its name, which is that of its directory.
    pub name: String,
    /// What runs it.
    pub backend: Backend,
    /// Its configuration, with what was missing filled in.
    pub config: ModelConfig,
    /// The versions to serve, ascending; at least one.
    pub versions: Vec<Version>,
    /// Its inputs. Where [`max_batch`](Self::max_batch) is above 0, each shape begins with the batch: -1.
    pub inputs: Vec<TensorSpec>,
    /// Its outputs, likewise.
    pub outputs: Vec<TensorSpec>,
    /// How inputs change their shape between the client and the model, where they do.
    pub input_reshapes: Vec<Reshape>,
    /// How outputs change their shape between the model and the client, where they do.
    pub output_reshapes: Vec<Reshape>,
    /// The largest batch; 0 where the model has no batch dimension.
    pub max_batch: u32,
    /// The latency objective of its requests, where it has its own.
    pub slo: Option<Duration>,
    /// How long a batch is held back for more requests at most, where it has its own limit.
    pub max_wait: Option<Duration>,
    /// How many of its requests may wait, where it has its own limit.
    pub queue_limit: Option<u32>,
    /// The priorities that its requests may have, where it declares some.
    pub priorities: Option<Priorities>,
    /// The names of an output's classes, by the output's name.
    pub labels: BTreeMap<String, Vec<String>>,
    /// One line for each setting that is accepted but does not do what Triton does, or that was filled in by a guess.
    pub notices: Vec<String>,
}

/// A version of a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Version {
    /// Its number, which is the name of its directory.
    pub number: u64,
    /// The model file; none for an emulated model.
    pub file: Option<PathBuf>,
}

/// The priorities that a model's requests may have: 1 to `levels`, 1 the highest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Priorities {
    /// How many there are.
    pub levels: u64,
    /// The priority of a request that does not name one.
    pub default: u64,
}

impl ModelDefinition {
    /// The value of a parameter of the configuration.
    pub fn parameter(&self, key: &str) -> Option<&str> {
        self.config.parameters.get(key).map(|parameter| parameter.string_value.as_str())
    }

    /// Whether requests may differ in more than their rows: a dimension of an input is open that is not the first.
    pub fn has_open_shapes(&self) -> bool {
        self.inputs.iter().any(|input| input.shape.iter().skip(1).any(|&size| size < 0))
    }

    /// The newest version, which answers requests that name none.
    pub fn newest(&self) -> Option<&Version> {
        self.versions.last()
    }
}
