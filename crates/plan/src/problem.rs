//! What is to be planned: services, GPUs, and what a slice does for a service.

mod build;
pub(crate) mod costs;
mod file;
mod memory;
mod source;
#[cfg(test)]
mod tests;

use std::path::Path;
use std::sync::Arc;

use downbeat_mig::GpuModel;
use downbeat_profile::ProfileFile;

use crate::rule::{Curve, Rule};

pub use build::{GoodputQuery, Simulator, Unsimulated};
pub use source::ProblemError;

/// GPUs of one type.
#[derive(Clone, Debug)]
pub struct Pool {
    /// The type.
    pub gpu: Arc<GpuModel>,
    /// How many there are; as many as are needed where it is not said.
    pub count: Option<u32>,
    /// What one costs.
    pub cost: f64,
    /// How many share a node.
    pub gpus_per_node: u32,
    /// The profiles that may be used, by index.
    pub profiles: Vec<usize>,
    /// What was measured on it.
    pub measured: Arc<ProfileFile>,
    /// The device that [`measured`](Self::measured) calls it.
    pub device: String,
}

/// A model with its demand.
#[derive(Clone, Debug, PartialEq)]
pub struct Service {
    /// Its name; unique.
    pub name: String,
    /// The model it runs.
    pub model: String,
    /// Requests per second.
    pub rate_rps: f64,
    /// From arrival to response.
    pub slo_ms: f64,
    /// The least number of instances.
    pub min_replicas: u32,
    /// The memory of an instance, where the user says it; otherwise the measured peak counts.
    pub memory_mib: Option<f64>,
    /// What is planned for over what is demanded; 1 unless a replay asked for more.
    pub headroom: f64,
}

impl Service {
    /// The rate that is planned for.
    pub fn planned_rps(&self) -> f64 {
        self.rate_rps * self.headroom
    }
}

/// A kind of slice: a profile of a pool's GPUs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slice {
    /// Index in [`Problem::pools`].
    pub pool: usize,
    /// Index in the GPU model's profiles.
    pub profile: usize,
}

/// A way to cut a GPU of a pool, maximal by inclusion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Configuration {
    /// Index in [`Problem::pools`].
    pub pool: usize,
    /// How many slices of each kind, in the order of [`Problem::slices`].
    pub slices: Vec<u32>,
}

/// A planning problem, checked.
#[derive(Clone, Debug)]
pub struct Problem {
    /// The file's name without its extension.
    pub name: String,
    /// How throughput is counted.
    pub rule: Rule,
    /// The GPUs; at least one pool.
    pub pools: Vec<Pool>,
    /// The services; at least one.
    pub services: Vec<Service>,
    /// The kinds of slices of all pools.
    pub slices: Vec<Slice>,
    /// The ways to cut a GPU of any pool.
    pub configurations: Vec<Configuration>,
    /// What each service gets from each kind of slice; `None` where it cannot run there in time.
    pub curves: Vec<Vec<Option<Curve>>>,
    /// What is to be known before a plan is believed.
    pub notes: Vec<String>,
}

impl Problem {
    /// Reads a problem file, and the profiles that it names. `simulator` is asked under the rule `measured`.
    pub fn load(path: &Path, simulator: &dyn Simulator) -> Result<Problem, ProblemError> {
        match std::fs::read_to_string(path) {
            Ok(text) => Problem::parse(&text, path, simulator),
            Err(cause) => Err(ProblemError::Read { path: path.to_owned(), cause }),
        }
    }

    /// Reads a problem from `text`. `origin` is the file it came from: messages name it, and paths in the text are
    /// relative to its folder.
    pub fn parse(text: &str, origin: &Path, simulator: &dyn Simulator) -> Result<Problem, ProblemError> {
        build::problem(text, origin, simulator)
    }

    /// The cost of a GPU of this configuration.
    pub fn cost(&self, configuration: usize) -> f64 {
        self.pools[self.configurations[configuration].pool].cost
    }

    /// The slices of a GPU cut this way, of its own pool's kinds: a profile's index means nothing on the GPUs of
    /// another.
    pub fn slices_of(&self, configuration: &Configuration) -> impl Iterator<Item = (Slice, u32)> {
        let own = |(slice, _): &(&Slice, &u32)| slice.pool == configuration.pool;
        self.slices.iter().zip(&configuration.slices).filter(own).map(|(slice, count)| (*slice, *count))
    }

    /// What a kind of slice is called in a plan: `3g.71gb`.
    pub fn slice_name(&self, slice: usize) -> &str {
        let Slice { pool, profile } = self.slices[slice];
        &self.pools[pool].gpu.profiles[profile].name
    }

    /// The `(batch, latency_ms)` points of a service on a kind of slice that fit in its memory; `None` where it was not
    /// measured.
    pub fn points(&self, service: &Service, slice: Slice) -> Option<Vec<(u32, f64)>> {
        let pool = &self.pools[slice.pool];
        let class = build::class_of(pool, slice.profile)?;
        let measured = pool.measured.measurements(&service.model, &class)?;
        Some(memory::points_that_fit(measured, &pool.gpu.profiles[slice.profile], service.memory_mib))
    }

    /// The least memory with which a service runs on a slice, in MiB; `None` where it was not measured there.
    pub fn memory_needed(&self, service: &Service, slice: Slice) -> Option<f64> {
        let pool = &self.pools[slice.pool];
        let class = build::class_of(pool, slice.profile)?;
        let measured = pool.measured.measurements(&service.model, &class)?;
        measured.iter().map(|point| memory::needed_mib(point, service.memory_mib)).min_by(f64::total_cmp)
    }

    /// What instances of a service serve together: `counts` by kind of slice.
    pub fn capacity(&self, service: usize, counts: &[u32]) -> f64 {
        let of_slice = |(curve, &count): (&Option<Curve>, &u32)| {
            curve.as_ref().map_or(0.0, |curve| curve.capacity(count))
        };
        self.curves[service].iter().zip(counts).map(of_slice).sum()
    }

    /// How many of these instances are replicas: one on a slice of which so many serve nothing is none.
    pub fn replicas(&self, service: usize, counts: &[u32]) -> u32 {
        let of_slice =
            |(curve, &count): (&Option<Curve>, &u32)| curve.as_ref().map_or(0, |curve| curve.replicas(count));
        self.curves[service].iter().zip(counts).map(of_slice).sum()
    }

    /// Whether these instances give a service what is planned for it.
    pub fn is_served(&self, service: usize, counts: &[u32]) -> bool {
        let wanted = &self.services[service];
        self.replicas(service, counts) >= wanted.min_replicas
            && self.capacity(service, counts) >= wanted.planned_rps() * (1.0 - ROUNDING)
    }

    /// Whether costs differ between pools, so that it is cost and not GPUs that is minimised.
    pub fn minimises_cost(&self) -> bool {
        self.pools.iter().any(|pool| pool.cost != self.pools[0].cost)
    }
}

/// Demands are met but for this share: sums of floating-point numbers are not exact.
pub(crate) const ROUNDING: f64 = 1e-9;
