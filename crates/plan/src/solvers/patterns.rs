//! The pattern model: each service takes one of the sets of slices that serve it.
//!
//! With all patterns that a better plan could use it is exact under every throughput rule; its linear relaxation is the
//! bound by prices, so that little is left to search.

use downbeat_milp::{Answer, Limits, MilpError, Program, Variable};

use crate::prices::cover::Pattern;
use crate::prices::round::{add_configurations, supply};
use crate::problem::{Configuration, Problem};
use crate::solver::{Allocation, Run};

/// The program and what its variables stand for.
pub(crate) struct PatternModel<'a> {
    problem: &'a Problem,
    patterns: &'a [Vec<Pattern>],
    program: Program,
    gpus: Vec<Variable>,
    chosen: Vec<Vec<Variable>>,
}

impl<'a> PatternModel<'a> {
    /// Plans of these patterns whose cost lies in this range.
    pub(crate) fn new(
        problem: &'a Problem,
        patterns: &'a [Vec<Pattern>],
        least: f64,
        most: f64,
    ) -> PatternModel<'a> {
        let mut program = Program::default();
        let gpus = add_configurations(problem, &mut program, |index| problem.cost(index), true);
        let costs: Vec<(Variable, f64)> =
            gpus.iter().enumerate().map(|(index, &variable)| (variable, problem.cost(index))).collect();
        program.at_least(&costs, least - 1e-7);
        program.at_most(&costs, most + 1e-7);
        let mut chosen = Vec::with_capacity(patterns.len());
        for patterns in patterns {
            let variables: Vec<Variable> = patterns.iter().map(|_| program.integer(0.0, 0.0, 1.0)).collect();
            let one: Vec<(Variable, f64)> = variables.iter().map(|&variable| (variable, 1.0)).collect();
            program.equal(&one, 1.0);
            chosen.push(variables);
        }
        for slice in 0..problem.slices.len() {
            let mut terms = supply(problem, &gpus, slice);
            for (variables, patterns) in chosen.iter().zip(patterns) {
                let used = variables.iter().zip(patterns).filter(|(_, pattern)| pattern.counts[slice] > 0);
                terms.extend(used.map(|(&variable, pattern)| (variable, -f64::from(pattern.counts[slice]))));
            }
            program.at_least(&terms, 0.0);
        }
        PatternModel { problem, patterns, program, gpus, chosen }
    }

    /// No more than so many GPUs of these pools together.
    pub(crate) fn limit_pools(&mut self, pools: &[usize], count: u32) {
        let own = |(&variable, configuration): (&Variable, &Configuration)| {
            pools.contains(&configuration.pool).then_some((variable, 1.0))
        };
        let gpus = self.gpus.iter().zip(&self.problem.configurations);
        self.program.at_most(&gpus.filter_map(own).collect::<Vec<_>>(), f64::from(count));
    }

    pub(crate) fn solve(&self, run: &Run<'_>, absolute_gap: f64) -> Result<Answer, MilpError> {
        run.backend.solve(&self.program, &Limits { stop: run.stop, start: None, absolute_gap })
    }

    /// The program with patterns taken in parts.
    pub(crate) fn relaxed(&self) -> Program {
        self.program.relaxed()
    }

    /// Each service's patterns in the parts they are taken in, rounded up: with values that add up, that serves it.
    pub(crate) fn mean_of_patterns(&self, values: &[f64]) -> Vec<Vec<u32>> {
        let mean = |(variables, patterns): (&Vec<Variable>, &Vec<Pattern>)| {
            let part = |slice: usize| -> f64 {
                variables
                    .iter()
                    .zip(patterns)
                    .map(|(variable, pattern)| values[variable.0] * f64::from(pattern.counts[slice]))
                    .sum()
            };
            (0..self.problem.slices.len()).map(|slice| (part(slice) - 1e-7).ceil().max(0.0) as u32).collect()
        };
        self.chosen.iter().zip(self.patterns).map(mean).collect()
    }

    pub(crate) fn allocation(&self, values: &[f64]) -> Allocation {
        let mut allocation = Allocation::empty(self.problem);
        for ((variables, patterns), counts) in
            self.chosen.iter().zip(self.patterns).zip(&mut allocation.instances)
        {
            let taken = variables.iter().position(|variable| values[variable.0] > 0.5).unwrap_or(0);
            counts.clone_from(&patterns[taken].counts);
        }
        for (count, variable) in allocation.gpus.iter_mut().zip(&self.gpus) {
            *count = values[variable.0].round() as u32;
        }
        allocation
    }
}
