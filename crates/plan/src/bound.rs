//! Bounds that need no search.

use downbeat_milp::MilpError;

use crate::problem::Problem;
use crate::solver::{Bound, Run};
use crate::solvers::compact::Compact;
use crate::solvers::raised;

/// Each service alone on the slices that cost it least per request, a slice costing its share of the GPU's compute:
/// what the MIG-serving paper compares with. It knows nothing of how slices fit together.
pub fn rule_free(problem: &Problem) -> Bound {
    let services = 0..problem.services.len();
    let cost: f64 =
        services.map(|service| least_cost(problem, service)).filter(|cost| cost.is_finite()).sum();
    Bound { cost: raised(problem, cost * (1.0 - 1e-9)), name: "rule-free" }
}

/// What a service costs on the slices that cost it least per request; infinite where none serves it.
pub(crate) fn least_cost(problem: &Problem, service: usize) -> f64 {
    let per_request = |(slice, curve): (usize, &Option<crate::Curve>)| {
        Some(slice_cost(problem, slice) / curve.as_ref()?.best_rate())
    };
    let curves = problem.curves[service].iter().enumerate();
    let least = curves.filter_map(per_request).fold(f64::INFINITY, f64::min);
    least * problem.services[service].planned_rps()
}

/// What a slice costs by its share of the GPU's compute.
pub(crate) fn slice_cost(problem: &Problem, slice: usize) -> f64 {
    let kind = problem.slices[slice];
    let pool = &problem.pools[kind.pool];
    pool.cost * f64::from(pool.gpu.profiles[kind.profile].compute) / f64::from(pool.gpu.compute)
}

/// The rule-free bound where slices have a share of compute to be counted by; of machines that are not GPUs, that one
/// is needed.
pub(crate) fn rule_free_or_nothing(problem: &Problem) -> Bound {
    let is_gpu = problem.pools.iter().all(|pool| pool.gpu.units > 1);
    if is_gpu {
        rule_free(problem)
    } else {
        Bound { cost: problem.cost_step().unwrap_or(0.0), name: "one machine" }
    }
}

/// What the linear relaxation of the compact model proves: it knows how slices fit together, but takes parts of them.
pub fn relaxation(problem: &Problem, run: &Run<'_>) -> Result<Bound, MilpError> {
    let cost = Compact::new(problem).relaxed_bound(run)?;
    Ok(Bound { cost: raised(problem, cost * (1.0 - 1e-9)), name: "linear relaxation" })
}
