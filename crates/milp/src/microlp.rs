//! By microlp: pure Rust, always there, and good for small programs.

use std::time::Duration;

use microlp::{ComparisonOp, Error, OptimizationDirection, Problem, SolveOptions, SolveOutcome, Variable};

use crate::{Answer, Limits, MilpError, Program, Status};

/// How long it searches between two questions whether to stop.
const BETWEEN_QUESTIONS: Duration = Duration::from_millis(20);

pub(crate) fn solve(program: &Program, limits: &Limits<'_>) -> Result<Answer, MilpError> {
    let (problem, variables) = translate(program);
    let mut options = SolveOptions::default();
    options.time_limit = Some(BETWEEN_QUESTIONS);
    options.warm_start =
        limits.start.map(|start| variables.iter().copied().zip(start.iter().copied()).collect());
    let mut outcome = problem.solve_with(options);
    loop {
        let found = match outcome {
            Ok(found) => found,
            Err(Error::Infeasible) => return Ok(Answer::infeasible()),
            Err(error) => return Err(MilpError::Failed { backend: "microlp", why: error.to_string() }),
        };
        let optimal = found.is_optimal();
        let answer = answer(program, &variables, &found, optimal);
        let close = answer.objective - answer.bound <= limits.absolute_gap;
        if optimal || close || (limits.stop)() {
            let status = if optimal || close { Status::Optimal } else { Status::Stopped };
            return Ok(Answer { status, ..answer });
        }
        outcome = found.resume();
    }
}

fn answer(program: &Program, variables: &[Variable], found: &SolveOutcome, optimal: bool) -> Answer {
    let values: Option<Vec<f64>> = found.solution().map(|solution| {
        let whole = |(&variable, column): (&Variable, &crate::Column)| {
            let value = solution.var_value(variable);
            if column.integer { value.round() } else { value }
        };
        variables.iter().zip(&program.columns).map(whole).collect()
    });
    let objective = values.as_ref().map_or(f64::INFINITY, |values| program.objective(values));
    let bound = if optimal { objective } else { found.stats().best_bound.unwrap_or(f64::NEG_INFINITY) };
    Answer { status: Status::Stopped, values, objective, bound, duals: Vec::new() }
}

fn translate(program: &Program) -> (Problem, Vec<Variable>) {
    let mut problem = Problem::new(OptimizationDirection::Minimize);
    let variables: Vec<Variable> = program
        .columns
        .iter()
        .map(|column| {
            if column.integer {
                // Saturates: an integer without a limit may be any that fits.
                problem
                    .add_integer_var(column.cost, (column.lower.ceil() as i32, column.upper.floor() as i32))
            } else {
                problem.add_var(column.cost, (column.lower, column.upper))
            }
        })
        .collect();
    for row in &program.rows {
        let terms: Vec<(Variable, f64)> =
            row.terms.iter().map(|(variable, weight)| (variables[variable.0], *weight)).collect();
        if row.lower == row.upper {
            problem.add_constraint(&terms, ComparisonOp::Eq, row.lower);
            continue;
        }
        if row.lower.is_finite() {
            problem.add_constraint(&terms, ComparisonOp::Ge, row.lower);
        }
        if row.upper.is_finite() {
            problem.add_constraint(&terms, ComparisonOp::Le, row.upper);
        }
    }
    (problem, variables)
}
