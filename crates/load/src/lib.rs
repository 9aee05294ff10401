//! An open-loop load generator for servers of the Open Inference Protocol.
//!
//! *Open loop*: when requests are sent is decided before the run ([`Plan`]), as users decide it who do not know of each
//! other; a server that is slow does not get fewer of them. Latency counts from when a request *should* have been sent,
//! so that neither a client that is late nor a server that holds it up makes the numbers better than users would find
//! them; by how much the client was late is measured and reported.
//!
//! A [`Loader`] knows the server and what to send; [`Loader::run`] makes one run, [`Loader::find_goodput`] searches for
//! the highest rate at which every model has 99 % of its requests in SLO. Each request is counted exactly once, by its
//! [`Outcome`].

mod account;
mod arrival;
mod connections;
mod control;
mod describe;
mod goodput;
mod inputs;
mod loader;
mod mix;
mod outcome;
mod pacer;
mod page;
mod plan;
mod report;
mod run;
mod search;
mod summary;
mod target;
mod wire;

use std::path::PathBuf;

pub use arrival::{ArrivalError, ArrivalSpec};
pub use control::Control;
pub use goodput::{GoodputSettings, IN_SLO_SHARE_MIN};
pub use inputs::{InputError, ShapeSpec, Shapes};
pub use loader::{Load, Loader, Tensors};
pub use mix::{MixError, ModelLoad, ModelSpec, millis};
pub use outcome::Outcome;
pub use page::load_page;
pub use plan::{Due, Plan};
pub use report::{Detail, LoadReport, ModelReport, Probe, Quantiles, SearchReport, ServerTimes, SliceReport};
pub use run::Progress;
pub use search::{Found, Search};
pub use target::{Protocol, Target, TargetError};

/// Values for a model's requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DataFile {
    /// The model; all models where it is `None`.
    pub model: Option<String>,
    /// The file.
    pub file: PathBuf,
}

/// Why no load can be made.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The server cannot be reached.
    #[error("{0}; is the server running there?")]
    Transport(String),
    /// The server does not say what the model takes.
    #[error("model '{model}': {message}")]
    Metadata {
        /// The model.
        model: String,
        /// What the server said.
        message: String,
    },
    /// There is nothing to send.
    #[error(transparent)]
    Inputs(#[from] InputError),
    /// A request cannot be written.
    #[error("{0}")]
    Letter(String),
}

impl From<connections::TransportError> for LoadError {
    fn from(error: connections::TransportError) -> LoadError {
        LoadError::Transport(error.to_string())
    }
}
