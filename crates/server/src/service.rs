//! What the frontends ask of the server behind them.
//!
//! The HTTP and the gRPC frontend translate; they hold no state and decide nothing. All that they need is this trait,
//! so that they can be tested with a service that answers as a test wants.

use std::collections::BTreeMap;
use std::future::Future;
use std::time::Duration;

use downbeat_oip::{Failure, InferRequest, InferResponse, Reason, TensorSpec};
use downbeat_scale::Decision;
use serde::Serialize;

use crate::admission::Permit;

/// The server behind the frontends.
pub trait Service: Send + Sync + 'static {
    /// Runs a request. `place` is its place in the server, which then is the answer's: whoever writes the answer keeps
    /// it until that is done. `timeout` is what the transport allows (`grpc-timeout`), counted from now. Dropping the
    /// future cancels the request.
    fn infer(
        &self,
        request: InferRequest,
        place: &Permit,
        timeout: Option<Duration>,
    ) -> impl Future<Output = Result<InferResponse, Failure>> + Send;

    /// Counts a request that a frontend refused before it could become an [`InferRequest`]. `model` is what the client
    /// named, which need not exist; it is empty where not even that was read.
    fn rejected(&self, model: &str, reason: Reason) {
        let _ = (model, reason);
    }

    /// How many devices of each class there should be, and why, by the class's name.
    fn autoscale(&self) -> BTreeMap<String, Decision> {
        BTreeMap::new()
    }

    /// The sub-clusters that there are, by name.
    fn subclusters(&self) -> BTreeMap<String, SubclusterState> {
        BTreeMap::new()
    }

    /// Moves a model to another sub-cluster; returns when its requests go there.
    fn move_model(&self, model: &str, to: &str) -> impl Future<Output = Result<(), Failure>> + Send {
        let message = format!("the model {model:?} cannot be moved to {to:?}: there are no sub-clusters");
        async { Err(Failure::new(Reason::Unimplemented, message)) }
    }

    /// Whether new requests are welcome: every model is loaded and the server does not drain.
    fn is_ready(&self) -> bool;

    /// Whether a model is ready; `version` is empty for any.
    fn is_model_ready(&self, model: &str, version: &str) -> Result<bool, Failure>;

    /// What a model takes and gives.
    fn metadata(&self, model: &str, version: &str) -> Result<ModelMetadata, Failure>;

    /// A model's configuration.
    fn config(&self, model: &str, version: &str) -> Result<downbeat_oip::proto::ModelConfig, Failure>;

    /// What was counted of a model, or of all where `model` is empty.
    fn statistics(
        &self,
        model: &str,
        version: &str,
    ) -> Result<Vec<downbeat_oip::proto::ModelStatistics>, Failure>;

    /// All models of the repository with their states.
    fn index(&self, ready_only: bool) -> Vec<IndexEntry>;

    /// Loads a model, or loads it anew. `config` replaces its configuration file (JSON).
    fn load(&self, model: &str, config: Option<String>) -> impl Future<Output = Result<(), Failure>> + Send;

    /// Unloads a model; what it was asked before is answered first.
    fn unload(&self, model: &str) -> impl Future<Output = Result<(), Failure>> + Send;
}

/// A sub-cluster as it is now.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SubclusterState {
    /// The devices that take batches.
    pub devices: usize,
    /// The models that are served there.
    pub models: Vec<String>,
}

/// What a model takes and gives.
#[derive(Clone, Debug)]
pub struct ModelMetadata {
    /// Its name.
    pub name: String,
    /// The versions that are ready.
    pub versions: Vec<String>,
    /// The platform it runs on: `onnxruntime_onnx`.
    pub platform: String,
    /// Its inputs.
    pub inputs: Vec<TensorSpec>,
    /// Its outputs.
    pub outputs: Vec<TensorSpec>,
}

/// A model of the repository.
#[derive(Clone, Debug, Default)]
pub struct IndexEntry {
    /// Its name.
    pub name: String,
    /// The version; empty where none was ever loaded.
    pub version: String,
    /// `READY`, `LOADING`, `UNLOADING` or `UNAVAILABLE`; empty where it was never loaded.
    pub state: String,
    /// Why it is in that state.
    pub reason: String,
}
