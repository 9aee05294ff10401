//! A plan replayed: the real scheduler, each service on its own slices, Poisson arrivals at the planned rates.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use downbeat_plan::{GpuLayout, Plan, Problem, Progress, Rule, Run, Service, Solver, Unsolved, plan};
use downbeat_sim::Until;
use rayon::prelude::*;
use serde::Serialize;

use crate::IN_SLO_LEAST;
use crate::cluster::{self, Slices};

/// Requests of a service in a replay.
const REQUESTS: f64 = 20_000.0;
/// Requests that are rarer than one in so many SLOs are replayed at that rate: hardly any meets another, more of them
/// is no easier, and what never arrives in a lifetime can be replayed.
const RAREST_IN_SLOS: f64 = 1_000.0;
/// How often a plan is made again with headroom for the services that failed.
const MOST_ROUNDS: u32 = 6;

/// What became of one service.
#[derive(Clone, Debug, Serialize)]
pub struct Replayed {
    /// Its name.
    pub service: String,
    /// The rate that it was planned for, and that arrived; a very low one is replayed a little higher.
    pub rate_rps: f64,
    /// The share of its requests that finished in time.
    pub in_slo: f64,
    /// Whether that is enough.
    pub passed: bool,
}

/// What became of a plan.
#[derive(Clone, Debug, Serialize)]
pub struct Replay {
    /// The services, in the problem's order; those that were replayed before it was interrupted.
    pub services: Vec<Replayed>,
    /// How many were not.
    pub not_replayed: usize,
    /// Whether all were, and passed.
    pub passed: bool,
}

/// A plan with its replay.
#[derive(Clone, Debug)]
pub struct VerifiedPlan {
    /// The plan; with headroom, its bound is still that of the demand without it.
    pub plan: Plan,
    /// Its replay.
    pub replay: Replay,
}

/// Replays a plan, service by service until `interrupted`.
pub fn verify(
    problem: &Problem,
    plan: &Plan,
    seed: u64,
    interrupted: &(dyn Fn() -> bool + Sync),
) -> Result<Replay, String> {
    let services = problem
        .services
        .par_iter()
        .filter(|_| !interrupted())
        .map(|service| {
            let slices = slices_of(problem, plan, service);
            let rate_rps = service.rate_rps.max(1e3 / (service.slo_ms * RAREST_IN_SLOS));
            let run = cluster::run(&slices, service.slo_ms, rate_rps, REQUESTS, seed, Until::End)?;
            let in_slo = 1.0 - run.bad_rate_worst;
            Ok(Replayed {
                service: service.name.clone(),
                rate_rps: service.rate_rps,
                in_slo,
                passed: in_slo >= IN_SLO_LEAST,
            })
        })
        .collect::<Result<Vec<Replayed>, String>>()?;
    let not_replayed = problem.services.len() - services.len();
    let passed = not_replayed == 0 && services.iter().all(|service| service.passed);
    Ok(Replay { services, not_replayed, passed })
}

/// The slices that a plan gives a service.
fn slices_of(problem: &Problem, plan: &Plan, service: &Service) -> Vec<Slices> {
    let mut counts: BTreeMap<(&str, &str), u32> = BTreeMap::new();
    for gpu in &plan.layout {
        for instance in gpu.instances.iter().filter(|instance| instance.service == service.name) {
            *counts.entry((&gpu.gpu_type, &instance.profile)).or_default() += 1;
        }
    }
    let points = |gpu_type: &str, profile: &str| {
        let own = |slice: &&downbeat_plan::Slice| {
            let gpu = &problem.pools[slice.pool].gpu;
            gpu.name == gpu_type && gpu.profiles[slice.profile].name == profile
        };
        problem.slices.iter().find(own).and_then(|slice| problem.points(service, *slice)).unwrap_or_default()
    };
    counts
        .into_iter()
        .map(|((gpu, profile), count)| Slices {
            name: format!("{gpu}/{profile}"),
            count,
            points: points(gpu, profile),
        })
        .filter(|slices| !slices.points.is_empty())
        .collect()
}

/// Plans and replays. Under the rule `measured` services that fail are given headroom until the replay passes, as far
/// as there is room: such a plan says so, and its bound stays that of the demand.
///
/// When `run` is to stop, no other plan is looked for; a replay goes on then, as a search may use all its time, until
/// it is `interrupted`.
pub fn plan_verified(
    problem: &Problem,
    solver: &dyn Solver,
    run: &Run<'_>,
    from: Option<&[GpuLayout]>,
    interrupted: &(dyn Fn() -> bool + Sync),
) -> Result<VerifiedPlan, VerifyError> {
    let mut problem = problem.clone();
    let mut made = plan(&problem, solver, run, from)?;
    let (bound, bound_name) = (made.lower_bound, made.bound_name.clone());
    let replayed = |problem: &Problem, made: &Plan| {
        (run.on_progress)(&Progress {
            phase: "replay",
            cost: made.cost,
            bound: made.cost * (1.0 - made.gap),
        });
        verify(problem, made, run.seed, interrupted).map_err(VerifyError::Simulation)
    };
    let mut replay = replayed(&problem, &made)?;
    let mut unmet = None;
    for _ in 0..MOST_ROUNDS {
        let whole = replay.not_replayed == 0;
        if replay.passed || !whole || problem.rule != Rule::Measured || (run.stop)() {
            break;
        }
        let mut roomier = problem.clone();
        for (service, replayed) in roomier.services.iter_mut().zip(&replay.services) {
            if !replayed.passed {
                // What was lost, and a little more.
                service.headroom *= 1.02 + (IN_SLO_LEAST - replayed.in_slo).clamp(0.0, 0.2);
            }
        }
        match plan(&roomier, solver, run, from) {
            Ok(larger) => made = larger,
            // The plan there is serves what was asked for: it is kept, with what the replay found.
            Err(unsolved @ (Unsolved::Infeasible(_) | Unsolved::NotApplicable { .. })) => {
                unmet = Some(format!(
                    "the replay asks for headroom ({}) that there is no room for ({unsolved}): the plan is without it",
                    headroom(&roomier)
                ));
                break;
            }
            Err(unsolved) => return Err(unsolved.into()),
        }
        problem = roomier;
        replay = replayed(&problem, &made)?;
    }
    if problem.services.iter().any(|service| service.headroom > 1.0) {
        made.lower_bound = bound;
        made.bound_name = bound_name;
        let objective = if problem.minimises_cost() { made.cost } else { f64::from(made.gpus) };
        let gap = ((objective - bound) / objective).max(0.0);
        // Without headroom no plan has less than the bound: where that is reached all the same, nothing was lost.
        made.proved_optimal = gap <= 1e-9;
        made.gap = if made.proved_optimal { 0.0 } else { gap };
        made.notes.push(format!(
            "the replay asked for headroom ({}): the bound is that of the demand without it",
            headroom(&problem)
        ));
    }
    made.notes.extend(unmet);
    if replay.not_replayed > 0 {
        made.notes.push(format!(
            "the replay was interrupted: {} of {} services were not replayed",
            replay.not_replayed,
            problem.services.len()
        ));
    }
    Ok(VerifiedPlan { plan: made, replay })
}

/// The services that were given headroom, and how much.
fn headroom(problem: &Problem) -> String {
    let helped: Vec<String> = (problem.services.iter())
        .filter(|service| service.headroom > 1.0)
        .map(|service| format!("{} {:.0} %", service.name, (service.headroom - 1.0) * 100.0))
        .collect();
    helped.join(", ")
}

/// Why a plan could not be verified.
#[derive(Debug, thiserror::Error)]
pub enum VerifyError {
    /// There is no plan.
    #[error(transparent)]
    Unsolved(#[from] Unsolved),
    /// The simulator refused it.
    #[error("the plan cannot be replayed: {0}")]
    Simulation(String),
}
