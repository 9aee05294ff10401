//! Problems that have no plan: which service or pool, why, and what would do.

#[cfg(test)]
mod tests;

use crate::problem::{Problem, Service};
use crate::rule::{Curve, Rule};

/// There is no plan.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Infeasible {
    /// Services that no slice can serve in time.
    #[error("no plan exists: {}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
    Services(Vec<Unservable>),
    /// The pools have too few GPUs.
    #[error("{}", shortages(.short, *.proved))]
    Pools {
        /// What is short.
        short: Vec<Shortage>,
        /// Whether it is certain that fewer GPUs do not do.
        proved: bool,
    },
}

/// A service that no slice can serve within its SLO.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("service {service:?} ({model}, SLO {slo_ms} ms): {why}{}", nearest(*.nearest_slo_ms, *.is_nearest))]
pub struct Unservable {
    /// Its name.
    pub service: String,
    /// Its model.
    pub model: String,
    /// What it asks for.
    pub slo_ms: f64,
    /// What stands in the way.
    pub why: String,
    /// The least SLO that a slice can meet; `None` where none would help.
    pub nearest_slo_ms: Option<f64>,
    /// Whether a shorter one is certain not to do; what the simulator would find there is not known.
    pub is_nearest: bool,
}

fn nearest(slo_ms: Option<f64>, is_nearest: bool) -> String {
    let words = if is_nearest { "the nearest feasible SLO is" } else { "an SLO that surely is feasible is" };
    slo_ms.map_or(String::new(), |slo| format!("; {words} {slo} ms"))
}

/// A pool with too few GPUs.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{gpu} has {count} GPUs, and {needed} would do")]
pub struct Shortage {
    /// The GPU type.
    pub gpu: String,
    /// How many there are.
    pub count: u32,
    /// With how many there is a plan.
    pub needed: u32,
}

fn shortages(short: &[Shortage], proved: bool) -> String {
    if short.is_empty() {
        return "no plan was found before the search ended; give it more time with --time-limit".to_owned();
    }
    let listed: Vec<String> = short.iter().map(ToString::to_string).collect();
    format!("no plan exists{}: {}", if proved { "" } else { ", as far as was found" }, listed.join("; "))
}

/// The services that no slice serves in time, if any.
pub fn unservable(problem: &Problem) -> Option<Infeasible> {
    let found: Vec<Unservable> = (problem.services.iter().zip(&problem.curves))
        .filter(|(_, curves)| curves.iter().all(Option::is_none))
        .map(|(service, _)| explain(problem, service))
        .collect();
    (!found.is_empty()).then_some(Infeasible::Services(found))
}

fn explain(problem: &Problem, service: &Service) -> Unservable {
    let mut measured = false;
    let mut fits = false;
    let mut nearest: Option<f64> = None;
    let mut fastest: Option<(f64, &str)> = None;
    for (index, slice) in problem.slices.iter().enumerate() {
        let points = problem.points(service, *slice);
        let Some(points) = points else { continue };
        measured = true;
        for (_, latency) in points {
            fits = true;
            if fastest.is_none_or(|(best, _)| latency < best) {
                fastest = Some((latency, problem.slice_name(index)));
            }
            let slo = least_slo(problem.rule, latency);
            nearest = Some(nearest.map_or(slo, |best| best.min(slo)));
        }
    }
    let why = match fastest {
        Some((latency, slice)) => {
            format!("its fastest batch takes {latency} ms, on {slice}, too long under rule {}", problem.rule)
        }
        None if problem.pools.iter().all(|pool| pool.gpu.units <= 1) => {
            "no block of any configuration is of use to it".to_owned()
        }
        None if measured && !fits => too_large(problem, service),
        None => "it was measured on no slice that may be used".to_owned(),
    };
    Unservable {
        service: service.name.clone(),
        model: service.model.clone(),
        slo_ms: service.slo_ms,
        why,
        nearest_slo_ms: nearest,
        is_nearest: problem.rule != Rule::Measured,
    }
}

/// What it needs, and what the largest slice has on which it was measured.
fn too_large(problem: &Problem, service: &Service) -> String {
    let sizes = problem.slices.iter().enumerate().filter_map(|(index, slice)| {
        let has = problem.pools[slice.pool].gpu.profiles[slice.profile].memory_mib;
        Some((has, problem.memory_needed(service, *slice)?, problem.slice_name(index)))
    });
    let largest = sizes.max_by(|a, b| a.0.total_cmp(&b.0));
    largest.map_or_else(String::new, |(has, needs, slice)| {
        format!("it needs {needs:.0} MiB, and the largest slice that may be used, {slice}, has {has:.0} MiB")
    })
}

/// The least SLO, to the next tenth of a millisecond, under which a rule counts a batch of this latency.
fn least_slo(rule: Rule, latency_ms: f64) -> f64 {
    // The simulator's own answer is not known here; a batch that waits for another one is what it comes down to.
    let rule = if rule == Rule::Measured { Rule::Half } else { rule };
    let counts = |slo: f64| Curve::by_rule(rule, &[(1, latency_ms)], slo).is_some();
    // Every rule counts a batch that takes less than half of the SLO; what is less is halved down to, whatever the
    // scale.
    let (mut low, mut high) = (latency_ms, (latency_ms * 2.001).min(f64::MAX));
    while high - low > (high * 1e-9).max(0.001) {
        let middle = low + (high - low) / 2.0;
        if counts(middle) {
            high = middle;
        } else {
            low = middle;
        }
    }
    [low, high].into_iter().map(next_tenth).find(|slo| counts(*slo)).unwrap_or(high)
}

/// The next tenth; of a number that has none, itself.
fn next_tenth(number: f64) -> f64 {
    let tenths = (number * 10.0).ceil() / 10.0;
    if tenths.is_finite() { tenths } else { number }
}
