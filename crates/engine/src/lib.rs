//! Runs batches on a device.

use downbeat_oip::Tensor;

/// A model, loaded on one device.
pub trait Model: Send {
    /// Runs a batch: `inputs` hold the rows of all its requests, in order. Returns the outputs of all rows.
    fn run(&mut self, inputs: &[Tensor], rows: u32) -> Result<Vec<Tensor>, EngineError>;
}

/// Why a model could not be loaded or run: one line, with what to do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct EngineError(pub String);
