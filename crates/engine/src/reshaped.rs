//! Models whose clients see other shapes than the model file has.

use downbeat_oip::{Reshape, Tensor};

use crate::{EngineError, Model};

/// A model with its inputs reshaped on the way in and its outputs on the way out. The elements stay where they are.
pub struct Reshaped<M> {
    model: M,
    inputs: Vec<Reshape>,
    outputs: Vec<Reshape>,
}

impl<M: Model> Reshaped<M> {
    /// The model behind these reshapes, which may be none.
    pub fn new(model: M, inputs: Vec<Reshape>, outputs: Vec<Reshape>) -> Reshaped<M> {
        Reshaped { model, inputs, outputs }
    }
}

impl<M: Model> Model for Reshaped<M> {
    fn run(&mut self, inputs: &[Tensor], rows: u32) -> Result<Vec<Tensor>, EngineError> {
        let mut outputs = if self.inputs.is_empty() {
            self.model.run(inputs, rows)?
        } else {
            let mut inputs = inputs.to_vec();
            reshape(&mut inputs, &self.inputs)?;
            self.model.run(&inputs, rows)?
        };
        reshape(&mut outputs, &self.outputs)?;
        Ok(outputs)
    }
}

fn reshape(tensors: &mut [Tensor], reshapes: &[Reshape]) -> Result<(), EngineError> {
    for reshape in reshapes {
        for tensor in tensors.iter_mut().filter(|tensor| tensor.name == reshape.name) {
            tensor.shape = reshape.apply(&tensor.shape).ok_or_else(|| {
                EngineError(format!(
                    "the tensor {:?} has the shape {:?}, which the model's reshape does not expect: {:?}",
                    tensor.name, tensor.shape, reshape.from
                ))
            })?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
