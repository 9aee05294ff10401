//! The fluid bound: the yardstick that goodput is measured against.

use downbeat_sched::{Delays, LatencyProfile, Span};
use microlp::{ComparisonOp, OptimizationDirection, Problem};

use crate::scenario::Scenario;

/// The total rate at which device time runs out when every model runs the largest batch its own evenly spaced arrivals
/// can fill in time:
///
/// b_i = the largest b with (b - 1)/r_i + lead(b) + l_i(b) <= SLO_i - reserve, and sum_i r_i * l_i(b_i)/b_i <= N.
///
/// The largest such rate: what is needed is not monotone in the rate, because a higher rate fills larger batches. With
/// several classes of devices, rates are split between them by a linear program, each model's b_i on each class being
/// that of its full rate. 0 where a model cannot meet its SLO even alone.
///
/// A yardstick, not a law: bursts fill batches faster than even spacing does, and can pass it.
pub fn fluid_bound_rps(scenario: &Scenario) -> f64 {
    let costs: Vec<ModelCosts> = scenario
        .models
        .iter()
        .map(|model| {
            let budget = model.slo - scenario.response_reserve;
            ModelCosts {
                share: model.share,
                by_class: model
                    .profiles
                    .iter()
                    .map(|profile| {
                        profile.as_ref().map_or_else(Vec::new, |profile| {
                            steps(profile, budget, &scenario.delays, model.share)
                        })
                    })
                    .collect(),
            }
        })
        .collect();
    if costs.iter().any(|model| model.by_class.iter().all(Vec::is_empty)) {
        return 0.0;
    }
    let counts: Vec<f64> = scenario.classes.iter().map(|class| f64::from(class.count)).collect();
    largest_feasible_rate(&costs, &counts)
}

/// What one request of a model costs on each class, as its rate grows.
struct ModelCosts {
    share: f64,
    /// Empty on a class where the model cannot run or cannot meet its SLO.
    by_class: Vec<Vec<Step>>,
}

/// From a total rate on, a model fills batches of another size.
#[derive(Clone, Copy)]
struct Step {
    from_rps: f64,
    /// Device seconds per request: l(b)/b.
    cost_s: f64,
}

/// The steps of one model on one class, by rising rate. The first one is from rate 0, at a batch of 1.
fn steps(profile: &LatencyProfile, budget: Span, delays: &Delays, share: f64) -> Vec<Step> {
    (1..=profile.max_batch())
        .map(|b| (b, delays.lead(b) + profile.latency(b)))
        .take_while(|&(b, takes)| takes < budget || (b == 1 && takes == budget))
        .map(|(b, takes)| {
            let fill_s = (budget - takes).as_secs_f64();
            let from_rps = if b == 1 { 0.0 } else { f64::from(b - 1) / fill_s / share };
            Step { from_rps, cost_s: profile.latency(b).as_secs_f64() / f64::from(b) }
        })
        .collect()
}

/// Between two neighbouring steps of any model all costs are constant, and the largest rate for these costs is exact.
/// So it is enough to look at each such interval once, from the highest down.
fn largest_feasible_rate(models: &[ModelCosts], counts: &[f64]) -> f64 {
    let mut edges: Vec<f64> =
        models.iter().flat_map(|model| model.by_class.iter().flatten()).map(|step| step.from_rps).collect();
    edges.sort_by(f64::total_cmp);
    edges.dedup();

    let mut end = f64::INFINITY;
    for begin in edges.into_iter().rev() {
        let costs: Vec<Vec<Option<f64>>> = models
            .iter()
            .map(|model| model.by_class.iter().map(|steps| cost_at(steps, begin)).collect())
            .collect();
        let limit = rate_limit(models, &costs, counts, begin);
        if limit >= begin {
            return limit.min(end);
        }
        end = begin;
    }
    0.0
}

/// The cost at a total rate; `None` on a class that cannot serve the model.
fn cost_at(steps: &[Step], rate: f64) -> Option<f64> {
    let after = steps.partition_point(|step| step.from_rps <= rate);
    after.checked_sub(1).map(|last| steps[last].cost_s)
}

/// The largest total rate for constant costs; some number below `floor` where that is not above `floor`.
fn rate_limit(models: &[ModelCosts], costs: &[Vec<Option<f64>>], counts: &[f64], floor: f64) -> f64 {
    let cheapest: f64 = models
        .iter()
        .zip(costs)
        .map(|(model, costs)| model.share * costs.iter().flatten().copied().fold(f64::INFINITY, f64::min))
        .sum();
    // No split can beat every request running where it is cheapest on devices that are all alike.
    let ideal = counts.iter().sum::<f64>() / cheapest;
    if counts.len() == 1 || ideal < floor { ideal } else { split_limit(models, costs, counts, ideal) }
}

/// The largest total rate when each model's rate is split between the classes.
///
/// In units of `ideal`, and each model's split in units of its share, which keeps the program's numbers near 1.
fn split_limit(models: &[ModelCosts], costs: &[Vec<Option<f64>>], counts: &[f64], ideal: f64) -> f64 {
    let mut problem = Problem::new(OptimizationDirection::Maximize);
    let rate = problem.add_var(1.0, (0.0, 1.0));
    let mut load_by_class = vec![Vec::new(); counts.len()];
    for (model, costs) in models.iter().zip(costs) {
        let mut served = vec![(rate, -1.0)];
        for ((class, cost), count) in costs.iter().enumerate().zip(counts) {
            if let Some(cost) = cost {
                let on_class = problem.add_var(0.0, (0.0, 1.0));
                served.push((on_class, 1.0));
                load_by_class[class].push((on_class, cost * model.share * ideal / count));
            }
        }
        problem.add_constraint(&served, ComparisonOp::Eq, 0.0);
    }
    for load in load_by_class {
        problem.add_constraint(&load, ComparisonOp::Le, 1.0);
    }
    // A program that the solver gives up on proves no rate; the next interval will.
    let solution = problem.solve().ok().and_then(|outcome| outcome.into_solution().ok());
    solution.map_or(0.0, |solution| solution.objective() * ideal)
}
