//! A day to be simulated: services and GPUs as for `downbeat plan`, how their rates change, and how often is planned.
//!
//! What is planned is a problem file of its own, so that `downbeat plan` reads the very same; this file says what
//! happens over time.

mod file;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use downbeat_epochs::Settings;
use downbeat_input::Mistake;
use downbeat_mig::Catalogue;
use downbeat_plan::{Problem, ProblemError, Simulator};
use downbeat_profile::{Beyond, LatencyProfile};
use downbeat_sched::{ClassId, Delays, Priority, Rule, Span};
use downbeat_sim::{Arrival, GpuClass, Jitter, Model, RateTrace, Scenario, TraceError};

/// A day.
#[derive(Clone, Debug)]
pub struct DayScenario {
    /// The file's name without its extension.
    pub name: String,
    /// How long it lasts.
    pub duration: Span,
    /// What all randomness grows from.
    pub seed: u64,
    /// What is planned; each service's rate is the mean of its trace.
    pub problem: Problem,
    /// The GPU models of the problem.
    pub catalogue: Catalogue,
    /// How it is planned.
    pub settings: Settings,
    /// How often is decided.
    pub interval: Span,
    /// Each service's rate over time, relative to its mean.
    pub traces: Vec<Arc<RateTrace>>,
    /// GPUs that fail, the first failure first.
    pub faults: Vec<GpuFault>,
}

/// A GPU that fails, with all that runs on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GpuFault {
    /// Its number; if there is no such GPU at that time, nothing happens.
    pub gpu: u32,
    /// When.
    pub at: Span,
}

/// Why a day cannot be simulated. One line that names the file, the line in it and the key.
#[derive(Debug, thiserror::Error)]
pub enum DayError {
    /// The file cannot be read.
    #[error("{}: cannot be read: {cause}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        cause: std::io::Error,
    },
    /// The text is not a day.
    #[error(transparent)]
    Invalid(#[from] Mistake),
    /// What is to be planned is not a problem.
    #[error(transparent)]
    Problem(#[from] ProblemError),
    /// A trace is not one.
    #[error(transparent)]
    Trace(#[from] TraceError),
}

impl DayScenario {
    /// Whether a scenario file is one of a day: whether it has the table `day`. A file that is no TOML is none.
    pub fn is_one(text: &str) -> bool {
        text.parse::<toml::Table>().is_ok_and(|table| table.contains_key("day"))
    }

    /// Reads a day, and the problem and traces that it names. `simulator` is asked under the rule `measured`.
    pub fn load(path: &Path, simulator: &dyn Simulator) -> Result<DayScenario, DayError> {
        match std::fs::read_to_string(path) {
            Ok(text) => DayScenario::parse(&text, path, simulator),
            Err(cause) => Err(DayError::Read { path: path.to_owned(), cause }),
        }
    }

    /// Reads a day from `text`. `origin` is the file it came from: messages name it, and paths in the text are relative
    /// to its folder.
    pub fn parse(text: &str, origin: &Path, simulator: &dyn Simulator) -> Result<DayScenario, DayError> {
        file::day(text, origin, simulator)
    }

    /// The mean rate of a service at a time of the day, in requests per second.
    pub fn rate_rps(&self, service: usize, at: Span) -> f64 {
        let trace = &self.traces[service];
        let offset = at.as_nanos() % trace.length().as_nanos().max(1);
        let piece = trace.pieces().iter().find(|piece| offset < piece.end.as_nanos());
        self.problem.services[service].rate_rps * piece.map_or(0.0, |piece| piece.rate) / trace.mean_rate()
    }

    /// The highest mean rate of a service at any time of the day.
    pub fn peak_rps(&self, service: usize) -> f64 {
        let trace = &self.traces[service];
        let mut begin = Span::ZERO;
        let mut highest = 0.0f64;
        for piece in trace.pieces() {
            if begin < self.duration {
                highest = highest.max(piece.rate);
            }
            begin = piece.end;
        }
        self.problem.services[service].rate_rps * highest / trace.mean_rate()
    }

    /// The models and their arrivals for the simulator; a class for each service and kind of slice that can run it.
    pub(crate) fn scenario(&self) -> Result<(Scenario, Kinds), String> {
        let problem = &self.problem;
        let total_rps: f64 = problem.services.iter().map(|service| service.rate_rps).sum();
        let mut kinds = Kinds { classes: Vec::new() };
        let mut profiles: Vec<LatencyProfile> = Vec::new();
        for (index, service) in problem.services.iter().enumerate() {
            for slice in (0..problem.slices.len()).filter(|&slice| problem.curves[index][slice].is_some()) {
                let points = problem.points(service, problem.slices[slice]).unwrap_or_default();
                let largest = points.last().map_or(1, |point| point.0);
                let profile = LatencyProfile::from_points(&points, largest, Beyond::Refuse);
                profiles.push(profile.map_err(|error| format!("service {:?}: {error}", service.name))?);
                kinds.classes.push((index, slice));
            }
        }
        let model = |(index, service): (usize, &downbeat_plan::Service)| Model {
            name: service.name.clone(),
            slo: Span::from_millis_f64(service.slo_ms),
            share: service.rate_rps / total_rps,
            profiles: (kinds.classes.iter().zip(&profiles))
                .map(|((owner, _), profile)| (*owner == index).then(|| profile.clone()))
                .collect(),
            priority: Priority::default(),
            arrival: Arrival::Trace(Arc::clone(&self.traces[index])),
        };
        let class = |&(service, slice): &(usize, usize)| GpuClass {
            name: format!("{} on {}", problem.services[service].name, problem.slice_name(slice)),
            count: 0,
        };
        let scenario = Scenario {
            subclusters: Vec::new(),
            name: self.name.clone(),
            classes: kinds.classes.iter().map(class).collect(),
            duration: self.duration,
            warmup: Span::ZERO,
            seed: self.seed,
            delays: Delays { control: Span::ZERO, data: Span::ZERO },
            rule: Rule::ADAPTIVE,
            response_reserve: Span::ZERO,
            response: None,
            jitter: Jitter::None,
            total_rps,
            models: problem.services.iter().enumerate().map(model).collect(),
            faults: Vec::new(),
            autoscale: None,
        };
        Ok((scenario, kinds))
    }
}

/// Which class of the simulator's devices stands for which kind of instance.
#[derive(Clone, Debug)]
pub(crate) struct Kinds {
    /// (service, kind of slice), by class.
    classes: Vec<(usize, usize)>,
}

impl Kinds {
    pub(crate) fn class(&self, service: usize, slice: usize) -> Option<ClassId> {
        let index = self.classes.iter().position(|kind| *kind == (service, slice))?;
        Some(ClassId(u16::try_from(index).ok()?))
    }

    /// The service and kind of slice of a class.
    pub(crate) fn kind(&self, class: ClassId) -> Option<(usize, usize)> {
        self.classes.get(usize::from(class.0)).copied()
    }
}
