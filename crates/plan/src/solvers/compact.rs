//! The compact model: equal slices are interchangeable, so that counts are all there is to decide.
//!
//! ```text
//! min sum_c cost_c y_c   s.t.   sum_i rate_ij x_ij >= demand_j,   sum_j x_ij <= sum_c a_ci y_c,   x, y whole
//! ```
//!
//! Exact where throughput is linear in the number of instances; where it is not, its linear relaxation by best rates
//! still bounds every plan.

use downbeat_milp::{Answer, Limits, MilpError, Program, Variable};

use crate::prices::round::{add_configurations, supply};
use crate::problem::{Problem, ROUNDING};
use crate::solver::{Allocation, Run};

/// The program and what its variables stand for.
pub(crate) struct Compact<'a> {
    problem: &'a Problem,
    pub(crate) program: Program,
    gpus: Vec<Variable>,
    instances: Vec<Vec<Option<Variable>>>,
}

impl<'a> Compact<'a> {
    /// Whether the model is exact for this problem.
    pub(crate) fn is_exact(problem: &Problem) -> bool {
        problem.curves.iter().flatten().flatten().all(crate::rule::Curve::is_linear)
    }

    pub(crate) fn new(problem: &'a Problem) -> Compact<'a> {
        let mut program = Program::default();
        let gpus = add_configurations(problem, &mut program, |index| problem.cost(index), true);
        let mut instances = Vec::with_capacity(problem.services.len());
        for (service, curves) in problem.services.iter().zip(&problem.curves) {
            let demand = service.planned_rps() * (1.0 - ROUNDING);
            let variables: Vec<Option<Variable>> = curves
                .iter()
                .map(|curve| {
                    let alone = curve.as_ref()?.needed(demand).max(service.min_replicas);
                    Some(program.integer(0.0, 0.0, f64::from(alone)))
                })
                .collect();
            // In units of the demand: the rows of all services are then alike.
            let served: Vec<(Variable, f64)> = (variables.iter().zip(curves))
                .filter_map(|(variable, curve)| Some(((*variable)?, curve.as_ref()?.best_rate() / demand)))
                .collect();
            program.at_least(&served, 1.0);
            if service.min_replicas > 1 {
                let replicas: Vec<(Variable, f64)> =
                    served.iter().map(|(variable, _)| (*variable, 1.0)).collect();
                program.at_least(&replicas, f64::from(service.min_replicas));
            }
            instances.push(variables);
        }
        for slice in 0..problem.slices.len() {
            let mut terms = supply(problem, &gpus, slice);
            terms.extend(instances.iter().filter_map(|variables| Some((variables[slice]?, -1.0))));
            program.at_least(&terms, 0.0);
        }
        Compact { problem, program, gpus, instances }
    }

    /// Only plans whose cost lies in this range.
    pub(crate) fn cost_within(&mut self, least: f64, most: f64) {
        let terms: Vec<(Variable, f64)> = self
            .gpus
            .iter()
            .enumerate()
            .map(|(index, &variable)| (variable, self.problem.cost(index)))
            .collect();
        self.program.at_least(&terms, least - 1e-7);
        self.program.at_most(&terms, most + 1e-7);
    }

    pub(crate) fn solve(&self, run: &Run<'_>, absolute_gap: f64) -> Result<Answer, MilpError> {
        run.backend.solve(&self.program, &Limits { stop: run.stop, start: None, absolute_gap })
    }

    /// What the linear relaxation proves.
    pub(crate) fn relaxed_bound(&self, run: &Run<'_>) -> Result<f64, MilpError> {
        Ok(run
            .backend
            .solve(&self.program.relaxed(), &Limits { stop: run.stop, start: None, absolute_gap: 0.0 })?
            .bound)
    }

    pub(crate) fn allocation(&self, values: &[f64]) -> Allocation {
        let whole = |variable: &Variable| values[variable.0].round() as u32;
        let counts = |variables: &Vec<Option<Variable>>| {
            variables.iter().map(|variable| variable.as_ref().map_or(0, whole)).collect()
        };
        Allocation {
            instances: self.instances.iter().map(counts).collect(),
            gpus: self.gpus.iter().map(whole).collect(),
        }
    }
}
