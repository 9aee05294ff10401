//! From the text of a file to a checked problem.

mod pools;
mod services;

use pools::MOST_GPUS;
pub(super) use pools::class_of;

use std::path::Path;

use downbeat_mig::Partitions;
use toml::Spanned;

use super::file::ProblemFile;
use super::source::{ProblemError, Source, suggestion};
use super::{Configuration, Pool, Problem, Service, Slice};
use crate::bound;
use crate::rule::{Curve, Rule, Step};

/// Who knows what n equal slices serve under the real scheduler. The planner does not know the simulator; whoever
/// composes the two does.
pub trait Simulator {
    /// The capacity of 1, 2, 3 and so on instances, in requests per second; as many as were tried.
    fn goodput(&self, query: &GoodputQuery<'_>) -> Result<Vec<Step>, String>;
}

/// A question to the [`Simulator`].
#[derive(Clone, Copy, Debug)]
pub struct GoodputQuery<'a> {
    /// The model.
    pub model: &'a str,
    /// Device and slice, as the profile file calls them.
    pub class: &'a str,
    /// `(batch, latency_ms)`, of the batches that fit in memory.
    pub points: &'a [(u32, f64)],
    /// From arrival to response.
    pub slo_ms: f64,
}

/// No simulator: problems by the rule `measured` are refused.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unsimulated;

impl Simulator for Unsimulated {
    fn goodput(&self, _: &GoodputQuery<'_>) -> Result<Vec<Step>, String> {
        Err("rule measured needs the simulator, which is not at hand here".to_owned())
    }
}

/// Reads and checks a whole problem.
pub(super) fn problem(text: &str, origin: &Path, simulator: &dyn Simulator) -> Result<Problem, ProblemError> {
    let source = Source::new(text, origin);
    let file: ProblemFile = source.parse()?;
    let rule = rule(&file, &source)?;
    let mut notes = Vec::new();
    let pools = pools::pools(&file, &source, &mut notes)?;
    let services = services::services(&file, &source, &pools)?;
    let (slices, configurations) = slices_and_configurations(&pools);
    let mut problem = Problem {
        name: origin.file_stem().unwrap_or_default().to_string_lossy().into_owned(),
        rule,
        pools,
        services,
        slices,
        configurations,
        curves: Vec::new(),
        notes,
    };
    let lines = file.service.iter().flatten().map(Spanned::span);
    for (service, span) in problem.services.iter().zip(lines) {
        let curves = curves(&problem, service, simulator)
            .map_err(|why| source.invalid(Some(span), format!("service {:?}: {why}", service.name)))?;
        problem.curves.push(curves);
    }
    let dearest = problem.pools.iter().map(|pool| pool.cost).fold(0.0, f64::max);
    let least = (bound::rule_free(&problem).cost / dearest).ceil();
    if least > f64::from(MOST_GPUS) {
        let message = format!(
            "the demands need at least {least} GPUs, more than the {MOST_GPUS} that can be planned; is a rate_rps too large?"
        );
        return Err(source.invalid(None, message));
    }
    Ok(problem)
}

fn rule(file: &ProblemFile, source: &Source<'_>) -> Result<Rule, ProblemError> {
    let Some(name) = &file.rule else { return Ok(Rule::Measured) };
    Rule::by_name(name.get_ref()).ok_or_else(|| {
        let known = Rule::ALL.map(Rule::name);
        let message = format!("rule {:?} is not known{}", name.get_ref(), suggestion(name.get_ref(), &known));
        source.invalid(Some(name.span()), message)
    })
}

fn slices_and_configurations(pools: &[Pool]) -> (Vec<Slice>, Vec<Configuration>) {
    let of_pool = |(pool, found): (usize, &Pool)| {
        found.profiles.iter().map(|&profile| Slice { pool, profile }).collect::<Vec<_>>()
    };
    let slices: Vec<Slice> = pools.iter().enumerate().flat_map(of_pool).collect();
    let mut configurations = Vec::new();
    for (pool, found) in pools.iter().enumerate() {
        for multiset in Partitions::of(&found.gpu, &found.profiles).maximal_multisets() {
            let count =
                |slice: &Slice| if slice.pool == pool { u32::from(multiset[slice.profile]) } else { 0 };
            configurations.push(Configuration { pool, slices: slices.iter().map(count).collect() });
        }
    }
    (slices, configurations)
}

/// What a service gets from each kind of slice.
fn curves(
    problem: &Problem,
    service: &Service,
    simulator: &dyn Simulator,
) -> Result<Vec<Option<Curve>>, String> {
    let curve = |slice: &Slice| {
        let Some(class) = class_of(&problem.pools[slice.pool], slice.profile) else { return Ok(None) };
        let points = problem.points(service, *slice).unwrap_or_default();
        if points.is_empty() {
            return Ok(None);
        }
        if problem.rule == Rule::Measured {
            let query = GoodputQuery {
                model: &service.model,
                class: &class,
                points: &points,
                slo_ms: service.slo_ms,
            };
            // A batch of one that is too late is too late in the simulator as well, which need not be asked.
            let hopeless = points.iter().all(|(_, latency)| *latency > service.slo_ms);
            return if hopeless { Ok(None) } else { Ok(Curve::from_steps(simulator.goodput(&query)?)) };
        }
        Ok(Curve::by_rule(problem.rule, &points, service.slo_ms))
    };
    problem.slices.iter().map(curve).collect()
}
