//! A device that only takes time: a batch lasts as long as a profile says and gives zeros.
//!
//! For trying cluster behaviour without GPUs. It sleeps and never spins, so that one core can be many devices.

use std::thread;
use std::time::Duration;

use bytes::Bytes;
use downbeat_oip::{Tensor, TensorSpec};
use downbeat_profile::LatencyProfile;

use crate::{Clock, EngineError, Model, WallClock, wake_up_on_time};

/// A larger output is a mistake in the configuration, and would cost the process.
const OUTPUT_BYTES_MAX: u64 = 1 << 30;

/// A model that takes exactly l(b) for a batch of b, from the call on.
#[derive(Clone, Debug)]
pub struct EmulatedModel {
    profile: LatencyProfile,
    outputs: Vec<TensorSpec>,
}

impl EmulatedModel {
    /// A model with this latency that gives these outputs. Of an output's open dimensions, the first is the number of
    /// rows where it leads the shape; all others are 1.
    pub fn new(profile: LatencyProfile, outputs: Vec<TensorSpec>) -> EmulatedModel {
        EmulatedModel { profile, outputs }
    }
}

impl Model for EmulatedModel {
    fn run(&mut self, _inputs: &[Tensor], rows: u32) -> Result<Vec<Tensor>, EngineError> {
        let mut clock = WallClock::start();
        wake_up_on_time();
        let outputs = self.outputs.iter().map(|output| zeros(output, rows)).collect::<Result<_, _>>()?;
        let rest = self.profile.latency(rows) - clock.now();
        #[expect(clippy::disallowed_methods, reason = "sleeping is what this device does")]
        thread::sleep(Duration::from_nanos(rest.as_nanos()));
        Ok(outputs)
    }
}

/// The output with zeros, or with empty strings.
fn zeros(output: &TensorSpec, rows: u32) -> Result<Tensor, EngineError> {
    let shape: Vec<u64> = output
        .shape
        .iter()
        .enumerate()
        .map(|(axis, &size)| match (axis, u64::try_from(size)) {
            (_, Ok(size)) => size,
            (0, Err(_)) => u64::from(rows),
            (_, Err(_)) => 1,
        })
        .collect();
    // An empty string is its length, 0, in 32 bits.
    let element_size = output.datatype.size().unwrap_or(4);
    let size = shape.iter().try_fold(element_size as u64, |size, &axis| size.checked_mul(axis));
    let Some(size) = size.filter(|&size| size <= OUTPUT_BYTES_MAX) else {
        let name = &output.name;
        return Err(EngineError(format!(
            "output {name:?} would be larger than 1 GiB: its shape is {shape:?}"
        )));
    };
    let data = Bytes::from(vec![0; size as usize]);
    Ok(Tensor { name: output.name.clone(), datatype: output.datatype, shape, data })
}

#[cfg(test)]
mod tests;
