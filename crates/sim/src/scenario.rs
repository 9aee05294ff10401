//! What is simulated: devices, models, traffic. Read from a TOML file that people write.
//!
//! The way in: `file` is the file's shape; `build`, `model` and `rates` check it and turn it into a [`Scenario`];
//! `error` says what is wrong with it and where. A [`Scenario`] that was parsed is one that can be simulated: nothing
//! in it is zero, negative, infinite or missing that must not be.

mod autoscale;
mod build;
mod check;
mod error;
mod file;
mod load;
mod model;
mod rates;
mod subclusters;
mod trace;

#[cfg(test)]
mod bad_scenarios;
#[cfg(test)]
mod tests;

use std::path::Path;
use std::sync::Arc;

use downbeat_scale::Settings;
use downbeat_sched::{ClassId, Delays, GpuId, LatencyProfile, Priority, Rule, Span};

use crate::{Cluster, ModelFacts, Quantiles};

pub use error::ScenarioError;
pub use subclusters::{Part, Subcluster};
pub use trace::{RatePiece, RateTrace, TraceError};

/// A cluster, its models and their traffic.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// The file's name without its extension.
    pub name: String,
    /// The classes of devices; at least one. `gpus = 8` in the file gives one class named `gpu`.
    pub classes: Vec<GpuClass>,
    /// The whole virtual run, warm-up included.
    pub duration: Span,
    /// How much of the beginning of the run is not counted; less than `duration`.
    pub warmup: Span,
    /// What all randomness grows from.
    pub seed: u64,
    /// The rule that Downbeat's own scheduler follows while nothing is lost: what `spare_devices` selects. Policies that
    /// name a rule follow theirs.
    pub rule: Rule,
    /// What a start costs before the device can begin.
    pub delays: Delays,
    /// What is kept of each deadline for the way back; less than any model's SLO.
    pub response_reserve: Span,
    /// How long the way to the cluster and back takes in all; `None` where it takes just what is kept for it.
    pub response: Option<Quantiles>,
    /// How execution times differ from the profile, which is all the scheduler sees.
    pub jitter: Jitter,
    /// The mean rate of all models together.
    pub total_rps: f64,
    /// The models; at least one, with different names.
    pub models: Vec<Model>,
    /// Devices that fail during the run, the first failure first.
    pub faults: Vec<Fault>,
    /// How its devices come and go; `None` where they stay. Then there is one class of devices.
    pub autoscale: Option<Autoscale>,
    /// Which devices run which models; empty where all run all. Devices that are in none stay idle.
    pub subclusters: Vec<Subcluster>,
}

/// How the devices of a scenario come and go.
#[derive(Clone, Debug, PartialEq)]
pub struct Autoscale {
    /// How often is decided.
    pub interval: Span,
    /// How it is decided: limits, times, steps. The run begins with [`GpuClass::count`] devices, which is within the
    /// limits.
    pub settings: Settings,
}

/// A device that fails, with all it was sent, and does not come back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The device; they are numbered class by class.
    pub gpu: GpuId,
    /// When, from the beginning of the run.
    pub at: Span,
}

/// Interchangeable devices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GpuClass {
    /// Their name, e.g. `h200/3g`.
    pub name: String,
    /// How many there are; at least one.
    pub count: u32,
}

/// A model and its traffic.
#[derive(Clone, Debug)]
pub struct Model {
    /// Its name.
    pub name: String,
    /// From arrival to response, as the client counts it.
    pub slo: Span,
    /// Its share of [`Scenario::total_rps`]; the shares of all models sum to 1.
    pub share: f64,
    /// l(b) by class, in the order of [`Scenario::classes`]; `None` on a class that does not run the model. At least
    /// one is there.
    pub profiles: Vec<Option<LatencyProfile>>,
    /// The priority of its requests.
    pub priority: Priority,
    /// When its requests come.
    pub arrival: Arrival,
}

/// How the time a batch takes differs from the profile.
#[derive(Clone, Debug, PartialEq)]
pub enum Jitter {
    /// Not at all.
    None,
    /// By a factor whose logarithm is normal with mean 0 and this standard deviation: the median is the profile's.
    Lognormal {
        /// The standard deviation of the logarithm.
        sigma: f64,
    },
    /// By what comes on top, whatever the batch: a device that is told late, or a machine that stalls.
    Added(Quantiles),
}

/// When a model's requests come. The model's rate is always the long-run mean.
#[derive(Clone, Debug)]
pub enum Arrival {
    /// Independently of each other.
    Poisson,
    /// Evenly spaced, from a random phase.
    Uniform,
    /// With independent Gamma-distributed gaps; their squared coefficient of variation is 1 / `shape`, so that shapes
    /// below 1 are burstier than Poisson.
    Gamma {
        /// The shape of the distribution of gaps.
        shape: f64,
    },
    /// Poisson at two rates that alternate, from a random phase.
    OnOff {
        /// How long the high rate lasts.
        on: Span,
        /// How long the low rate lasts.
        off: Span,
        /// The high rate over the low rate.
        factor: f64,
    },
    /// Poisson at a rate that follows a trace, repeated from its beginning when it ends.
    Trace(Arc<RateTrace>),
}

impl Arrival {
    /// How long its pattern is before it begins again; zero where it has none.
    pub fn cycle(&self) -> Span {
        match self {
            Arrival::Poisson | Arrival::Uniform | Arrival::Gamma { .. } => Span::ZERO,
            Arrival::OnOff { on, off, .. } => *on + *off,
            Arrival::Trace(trace) => trace.length(),
        }
    }
}

impl Scenario {
    /// The highest rate that is believed.
    pub const MOST_RPS: f64 = 1e9;

    /// Reads a scenario file, and the profiles and traces it names.
    pub fn load(path: &Path) -> Result<Scenario, ScenarioError> {
        match std::fs::read_to_string(path) {
            Ok(text) => Scenario::parse(&text, path),
            Err(cause) => Err(ScenarioError::Read { path: path.to_owned(), cause }),
        }
    }

    /// Reads a scenario from `text`. `origin` is the file it came from: messages name it, and paths in the text are
    /// relative to its folder.
    pub fn parse(text: &str, origin: &Path) -> Result<Scenario, ScenarioError> {
        build::scenario(text, origin)
    }

    /// The same scenario at another total rate: every model keeps its share.
    pub fn with_rate(&self, total_rps: f64) -> Scenario {
        Scenario { total_rps, ..self.clone() }
    }

    /// The scenario with another length: `measured` after warm-up or a little longer, since part of a pattern has
    /// another mean rate than all of it.
    pub fn with_measured(&self, measured: Span) -> Scenario {
        let cycle = self.longest_cycle();
        let measured = if cycle > Span::ZERO {
            cycle * measured.as_nanos().div_ceil(cycle.as_nanos())
        } else {
            measured
        };
        Scenario { duration: self.warmup + measured, ..self.clone() }
    }

    /// The longest pattern of any model's arrivals; zero where none has one. What is measured over less than a pass of
    /// it has another mean rate.
    pub fn longest_cycle(&self) -> Span {
        self.models.iter().map(|model| model.arrival.cycle()).max().unwrap_or(Span::ZERO)
    }

    /// One sentence for each model that misses its SLO whatever the rate, even alone on an idle device.
    pub fn impossible(&self) -> Vec<String> {
        let lead = self.delays.lead(1);
        let sentence = |model: &Model| {
            let alone = model.profiles.iter().flatten().map(|profile| profile.latency(1)).min()?;
            let takes = lead + alone + self.response_reserve;
            (takes > model.slo).then(|| {
                format!(
                    "model {:?} cannot meet its SLO of {} ms at any rate: a request alone on an idle device takes {} ms",
                    model.name,
                    model.slo.as_millis_f64(),
                    takes.as_millis_f64(),
                )
            })
        };
        self.models.iter().filter_map(sentence).collect()
    }

    /// What a policy may know of it. Devices are numbered class by class.
    pub fn cluster(&self) -> Cluster {
        let gpus = (0u16..)
            .zip(&self.classes)
            .flat_map(|(id, class)| std::iter::repeat_n(ClassId(id), class.count as usize))
            .collect();
        let models = self
            .models
            .iter()
            .map(|model| ModelFacts {
                profiles: model.profiles.clone(),
                slo: model.slo - self.response_reserve,
                rate_rps: model.share * self.total_rps,
            })
            .collect();
        Cluster { gpus, models, delays: self.delays }
    }
}
