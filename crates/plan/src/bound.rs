//! Bounds that need no search.

use crate::problem::Problem;
use crate::solver::Bound;

/// Each service alone on the slices that cost it least per request, a slice costing its share of the GPU's compute: what the MIG-serving
/// paper compares with. It knows nothing of how slices fit together.
pub fn rule_free(problem: &Problem) -> Bound {
    let share = |slice: usize| {
        let kind = problem.slices[slice];
        let pool = &problem.pools[kind.pool];
        // The dearest that a slice can be while no GPU's slices cost more than the GPU: its share of the most that fit.
        let most =
            problem.configurations.iter().map(|configuration| configuration.slices[slice]).max().unwrap_or(1);
        let by_compute = f64::from(pool.gpu.profiles[kind.profile].compute) / f64::from(pool.gpu.compute);
        pool.cost * by_compute.min(1.0 / f64::from(most.max(1)))
    };
    let cheapest = |service: usize| {
        let per_request =
            |(slice, curve): (usize, &Option<crate::Curve>)| Some(share(slice) / curve.as_ref()?.best_rate());
        let least =
            problem.curves[service].iter().enumerate().filter_map(per_request).fold(f64::INFINITY, f64::min);
        least * problem.services[service].planned_rps()
    };
    let cost: f64 = (0..problem.services.len()).map(cheapest).filter(|cost| cost.is_finite()).sum();
    Bound { cost: crate::solvers::raised(problem, cost * (1.0 - 1e-9)), name: "rule-free" }
}
