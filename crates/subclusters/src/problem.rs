//! What is to be divided: models with their demand, and the GPUs they are to share.

mod build;
mod file;
mod source;
#[cfg(test)]
mod tests;

use std::path::Path;
use std::sync::Arc;

use downbeat_mig::GpuModel;
use downbeat_milp::Backend;
use downbeat_profile::LatencyProfile;

use crate::infeasible::Unsolved;
use crate::layout;

pub use source::ProblemError;

/// A kind of device that a sub-cluster can be made of: the whole GPU, or a MIG slice.
#[derive(Clone, Debug)]
pub struct Device {
    /// Its name: `gpu`, or the slice's, such as `2g.35gb`.
    pub name: String,
    /// Its memory.
    pub memory_mib: f64,
    /// What one costs, in the [units of a GPU](Problem::units_per_gpu); at least 1.
    pub units: u32,
    /// The slice, by its index in the GPU model's profiles; `None` for a whole GPU.
    pub slice: Option<usize>,
}

/// A model with its demand.
#[derive(Clone, Debug)]
pub struct Model {
    /// Its name; unique.
    pub name: String,
    /// Requests per second.
    pub rate_rps: f64,
    /// From arrival to response.
    pub slo_ms: f64,
    /// The memory that its weights take on every device of its sub-cluster.
    pub weights_mib: f64,
    /// The memory that a batch takes while it runs. One batch runs at a time, so that models share it.
    pub activation_mib: f64,
    /// l(b) on each kind of device, in the order of [`Problem::devices`]; `None` where it was not measured.
    pub profiles: Vec<Option<LatencyProfile>>,
}

/// A problem, checked: every number is finite and above 0 where it must be, and there is at least one model and one
/// device.
#[derive(Clone, Debug)]
pub struct Problem {
    /// The file's name without its extension.
    pub name: String,
    /// The kinds of devices.
    pub devices: Vec<Device>,
    /// How many units a GPU has: 1 where devices are whole GPUs, else its compute slices.
    pub units_per_gpu: u32,
    /// The GPU model, where it was named.
    pub gpu: Option<Arc<GpuModel>>,
    /// How many GPUs there are; as many as are needed where it is not said.
    pub gpus: Option<u32>,
    /// The models.
    pub models: Vec<Model>,
    /// What is to be known before a plan is believed.
    pub notes: Vec<String>,
}

impl Problem {
    /// Reads a problem file, and the profiles that it names.
    pub fn load(path: &Path) -> Result<Problem, ProblemError> {
        match std::fs::read_to_string(path) {
            Ok(text) => Problem::parse(&text, path),
            Err(cause) => Err(ProblemError::Read { path: path.to_owned(), cause }),
        }
    }

    /// Reads a problem from `text`. `origin` is the file it came from: messages name it, and paths in the text are
    /// relative to its folder.
    pub fn parse(text: &str, origin: &Path) -> Result<Problem, ProblemError> {
        build::problem(text, origin)
    }

    /// The GPUs that these devices are, or can be cut from: each a kind by its index, and how many.
    pub fn gpus_of(&self, devices: &[(usize, u32)], backend: &Backend) -> Result<u32, Unsolved> {
        if !self.is_sliced() {
            return Ok(devices.iter().map(|(_, count)| count).sum());
        }
        let wanted: Vec<(String, usize, u32)> =
            devices.iter().map(|&(device, count)| (String::new(), device, count)).collect();
        Ok(layout::cut(self, &wanted, backend)?.len() as u32)
    }

    /// Whether sub-clusters are made of MIG slices.
    pub fn is_sliced(&self) -> bool {
        self.devices.iter().any(|device| device.slice.is_some())
    }
}
