//! Plans that are near enough.

use downbeat_milp::{Limits, Program};

use super::{PATTERNS, Search, improve};
use crate::prices::dual;
use crate::prices::round::{add_configurations, supply};
use crate::problem::Problem;
use crate::solver::{Allocation, Run, Solved, Unsolved};
use crate::solvers::patterns::PatternModel;

/// A plan that is proved to cost at most (1 + `epsilon`) times the least, where values add up: by one rounding of the
/// relaxation over patterns where that does, otherwise by searching on.
pub(crate) fn within(problem: &Problem, run: &Run<'_>, epsilon: f64) -> Result<Solved, Unsolved> {
    let Some(prices) = dual::best_prices(problem, run, &|_| {})? else {
        return Err(Unsolved::NotApplicable { solver: "cms-ptas", why: "a job cannot be served".to_owned() });
    };
    let mut search = Search::new(problem, run, None);
    search.prove(prices.bound, "prices of slices");
    let patterns = search.supported_patterns(&prices, PATTERNS[0]);
    let model = PatternModel::new(problem, &patterns, 0.0, f64::MAX);
    let relaxed = run.backend.solve(&model.relaxed(), &Limits::none())?;
    if let Some(instances) = relaxed.values.map(|values| model.mean_of_patterns(&values))
        && let Some(gpus) = cover_used(problem, run, &instances)?
    {
        search.offer(Allocation { instances, gpus });
    }
    let enough = search.bound.cost * (1.0 + epsilon);
    match search.best {
        Some(allocation) if allocation.cost(problem) <= enough => {
            Ok(Solved { allocation, bound: search.bound, notes: Vec::new() })
        }
        known => improve(problem, run, known),
    }
}

/// The fewest GPUs that have the slices used: an integer program as small as the table of configurations.
fn cover_used(
    problem: &Problem,
    run: &Run<'_>,
    instances: &[Vec<u32>],
) -> Result<Option<Vec<u32>>, Unsolved> {
    let mut program = Program::default();
    let gpus = add_configurations(problem, &mut program, |index| problem.cost(index), true);
    for slice in 0..problem.slices.len() {
        let used: u32 = instances.iter().map(|counts| counts[slice]).sum();
        program.at_least(&supply(problem, &gpus, slice), f64::from(used));
    }
    let answer = run.backend.solve(&program, &Limits { stop: run.stop, start: None, absolute_gap: 1e-6 })?;
    Ok(answer.values.map(|values| gpus.iter().map(|variable| values[variable.0].round() as u32).collect()))
}
