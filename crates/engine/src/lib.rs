//! Runs batches on a device.
//!
//! A [`Model`] takes the rows of a batch and gives the rows of its outputs; it knows nothing of requests, deadlines and
//! queues. There are two kinds: [`onnx`] runs model files with ONNX Runtime, [`emulated`] takes as long as a profile
//! says and gives zeros, so that a cluster can be tried without its GPUs. [`measure`] finds out how long a model takes.

mod clock;
pub mod emulated;
pub mod measure;
pub mod onnx;
mod padded;
mod reshaped;
pub mod synthetic;

use downbeat_oip::{Tensor, TensorSpec};

pub use clock::{Clock, WallClock, wake_up_on_time};
pub use padded::{Padded, in_steps};
pub use reshaped::Reshaped;

/// A model, loaded on one device.
pub trait Model: Send {
    /// Runs a batch: `inputs` hold the rows of all its requests, in order. Returns the outputs of all rows.
    fn run(&mut self, inputs: &[Tensor], rows: u32) -> Result<Vec<Tensor>, EngineError>;

    /// Whether batches take as long as the next of the [sizes that are measured](measure::sizes_up_to), to which they
    /// are filled up.
    fn goes_in_steps(&self) -> bool {
        false
    }
}

impl Model for Box<dyn Model> {
    fn run(&mut self, inputs: &[Tensor], rows: u32) -> Result<Vec<Tensor>, EngineError> {
        (**self).run(inputs, rows)
    }

    fn goes_in_steps(&self) -> bool {
        (**self).goes_in_steps()
    }
}

/// What a model takes and gives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signature {
    /// Its inputs.
    pub inputs: Vec<TensorSpec>,
    /// Its outputs.
    pub outputs: Vec<TensorSpec>,
}

/// Why a model could not be loaded or run: one line, with what to do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct EngineError(pub String);
