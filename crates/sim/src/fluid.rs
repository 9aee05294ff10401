//! The fluid bound: the yardstick that goodput is measured against.

#[cfg(test)]
mod tests;

use std::ops::Range;

use downbeat_sched::{Delays, LatencyProfile, Span};
use microlp::{ComparisonOp, OptimizationDirection, Problem};

use crate::scenario::{Part, Scenario};

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
///
/// With sub-clusters, the rate at which the first of them runs out.
pub fn fluid_bound_rps(scenario: &Scenario) -> f64 {
    least_of_parts(scenario, bound_of_one)
}

fn bound_of_one(scenario: &Scenario) -> f64 {
    let fluid = Fluid::of(scenario);
    // From the highest rates down: the first interval that holds a feasible rate holds the largest.
    let intervals = fluid.intervals();
    intervals.iter().rev().find_map(|interval| fluid.feasible_up_to(interval)).unwrap_or(0.0)
}

/// The rate up to which device time suffices at every lower rate too: where what is needed first passes what there is.
///
/// A few percent below [`fluid_bound_rps`] where many models' batches grow at different rates, and equal to it for one
/// model. It is what a bisection for the bound finds, and goodput, too, is the rate below which every rate passes.
pub fn fluid_first_shortage_rps(scenario: &Scenario) -> f64 {
    least_of_parts(scenario, first_shortage_of_one)
}

fn first_shortage_of_one(scenario: &Scenario) -> f64 {
    let fluid = Fluid::of(scenario);
    let mut suffices_to = 0.0;
    for interval in fluid.intervals() {
        match fluid.feasible_up_to(&interval) {
            Some(rate) if rate >= interval.end => suffices_to = rate,
            Some(rate) => return rate,
            None => break,
        }
    }
    suffices_to
}

/// The devices that a scenario with one class of devices keeps busy at its rate, when every model runs the largest
/// batch its own evenly spaced arrivals can fill in time. `None` where there are several classes, or a model cannot
/// meet its SLO.
pub fn fluid_need_gpus(scenario: &Scenario) -> Option<f64> {
    scenario.parts().iter().map(|part| need_of_one(&part.scenario)).sum()
}

/// The least total rate at which a sub-cluster reaches its own limit.
fn least_of_parts(scenario: &Scenario, limit_rps: impl Fn(&Scenario) -> f64) -> f64 {
    if scenario.subclusters.is_empty() {
        return limit_rps(scenario);
    }
    let of_part = |part: &Part| limit_rps(&part.scenario) * scenario.total_rps / part.scenario.total_rps;
    scenario.parts().iter().map(of_part).fold(f64::INFINITY, f64::min)
}

fn need_of_one(scenario: &Scenario) -> Option<f64> {
    let fluid = Fluid::of(scenario);
    let costs = fluid.costs_at(scenario.total_rps);
    let need = |(model, costs): (&ModelCosts, &Vec<Option<f64>>)| match costs[..] {
        [cost_s] => Some(model.share * scenario.total_rps * cost_s?),
        _ => None,
    };
    fluid.models.iter().zip(&costs).map(need).sum()
}

/// A scenario, as far as the bound goes.
struct Fluid {
    models: Vec<ModelCosts>,
    /// Devices by class.
    counts: Vec<f64>,
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

impl Fluid {
    fn of(scenario: &Scenario) -> Fluid {
        let models = scenario.models.iter().map(|model| {
            let budget = model.slo - scenario.response_reserve;
            let of_class = |profile: &Option<LatencyProfile>| {
                profile
                    .as_ref()
                    .map_or_else(Vec::new, |profile| steps(profile, budget, &scenario.delays, model.share))
            };
            ModelCosts { share: model.share, by_class: model.profiles.iter().map(of_class).collect() }
        });
        Fluid {
            models: models.collect(),
            counts: scenario.classes.iter().map(|class| f64::from(class.count)).collect(),
        }
    }

    /// The stretches of total rates between two neighbouring steps of any model, from the lowest. Within one, all costs
    /// are constant, so that the largest feasible rate is exact.
    fn intervals(&self) -> Vec<Range<f64>> {
        let steps = self.models.iter().flat_map(|model| model.by_class.iter().flatten());
        let mut edges: Vec<f64> = steps.map(|step| step.from_rps).collect();
        edges.push(f64::INFINITY);
        edges.sort_by(f64::total_cmp);
        edges.dedup();
        edges.windows(2).map(|edge| edge[0]..edge[1]).collect()
    }

    /// The largest feasible rate of an interval, which may be its end; `None` where no rate of it is feasible.
    fn feasible_up_to(&self, interval: &Range<f64>) -> Option<f64> {
        let costs = self.costs_at(interval.start);
        let cheapest: f64 = self
            .models
            .iter()
            .zip(&costs)
            .map(|(model, costs)| model.share * costs.iter().flatten().copied().fold(f64::INFINITY, f64::min))
            .sum();
        // No split can beat running every request where it is cheapest, on devices that are all alike.
        let ideal = self.counts.iter().sum::<f64>() / cheapest;
        let decided = self.counts.len() == 1 || ideal < interval.start;
        let limit = if decided { ideal } else { self.split_limit(&costs, ideal) };
        (limit >= interval.start).then_some(limit.min(interval.end))
    }

    /// What each model costs on each class at a total rate; `None` on a class that cannot serve it.
    fn costs_at(&self, rate: f64) -> Vec<Vec<Option<f64>>> {
        let at = |steps: &Vec<Step>| {
            let after = steps.partition_point(|step| step.from_rps <= rate);
            after.checked_sub(1).map(|last| steps[last].cost_s)
        };
        self.models.iter().map(|model| model.by_class.iter().map(at).collect()).collect()
    }

    /// The largest total rate at these costs when each model's rate is split between the classes.
    ///
    /// In units of `ideal`, and each model's split in units of its share, which keeps the program's numbers near 1.
    fn split_limit(&self, costs: &[Vec<Option<f64>>], ideal: f64) -> f64 {
        let mut problem = Problem::new(OptimizationDirection::Maximize);
        let rate = problem.add_var(1.0, (0.0, 1.0));
        let mut load_by_class = vec![Vec::new(); self.counts.len()];
        for (model, costs) in self.models.iter().zip(costs) {
            let mut served = vec![(rate, -1.0)];
            for ((class, cost), count) in costs.iter().enumerate().zip(&self.counts) {
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
        // A program that the solver gives up on proves no rate; another interval will.
        let solution = problem.solve().ok().and_then(|outcome| outcome.into_solution().ok());
        solution.map_or(0.0, |solution| solution.objective() * ideal)
    }
}
