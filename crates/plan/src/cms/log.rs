//! Logarithmic greedy: the configuration and assignment that cover most of what is left, again and again.

use super::applies;
use crate::problem::{Problem, ROUNDING};
use crate::solver::{Allocation, Run, Solved, Solver, Unsolved};
use crate::solvers::tidy;

/// The logarithmic approximation.
///
/// Guarantee: with n jobs and whole demands of at most D and whole values, at most 1 + 2 OPT ln(n D) machines. Covered
/// demand, as a share of each job's, is a submodular function of the blocks given out; giving out a configuration's
/// blocks one by one, each to where it covers most, covers at least half of the best (greedy over a partition matroid),
/// and the best covers at least the OPT-th part of what is left.
pub struct CmsLog;

impl Solver for CmsLog {
    fn name(&self) -> &'static str {
        "cms-log"
    }

    fn about(&self) -> &'static str {
        "CMS: cover most of what is left, machine by machine; within 2 ln(nD) of the optimum"
    }

    fn solve(&self, problem: &Problem, run: &Run<'_>) -> Result<Solved, Unsolved> {
        applies(problem, self.name())?;
        let mut left: Vec<f64> = vec![1.0; problem.services.len()];
        let mut allocation = Allocation::empty(problem);
        while left.iter().any(|&left| left > ROUNDING) {
            let fillings = (0..problem.configurations.len()).map(|index| fill(problem, index, &left));
            let best = fillings.enumerate().max_by(|a, b| a.1.covered.total_cmp(&b.1.covered));
            let Some((configuration, filling)) = best.filter(|(_, filling)| filling.covered > 0.0) else {
                let why = "what is left can be covered by no configuration".to_owned();
                return Err(Unsolved::NotApplicable { solver: self.name(), why });
            };
            // The same machine again as long as none of its jobs is near its end: its blocks would go to the same jobs.
            let repeats = repeats(problem, &filling, &left);
            allocation.gpus[configuration] += repeats;
            for (slice, job) in filling.given {
                allocation.instances[job][slice] += repeats;
                let value = share(problem, job, slice) * f64::from(repeats);
                left[job] = (left[job] - value).max(0.0);
            }
        }
        tidy(problem, &mut allocation);
        Ok(Solved { allocation, bound: crate::bound::relaxation(problem, run)?, notes: Vec::new() })
    }
}

/// What a block covers of a job, as a share of its demand.
fn share(problem: &Problem, job: usize, slice: usize) -> f64 {
    problem.curves[job][slice]
        .as_ref()
        .map_or(0.0, |curve| curve.best_rate() / problem.services[job].planned_rps())
}

/// A machine's blocks with the jobs they are given to, and how much that covers.
struct Filling {
    given: Vec<(usize, usize)>,
    covered: f64,
}

fn fill(problem: &Problem, configuration: usize, left: &[f64]) -> Filling {
    let mut left = left.to_vec();
    let mut filling = Filling { given: Vec::new(), covered: 0.0 };
    for (slice, &count) in problem.configurations[configuration].slices.iter().enumerate() {
        for _ in 0..count {
            let covers = |job: usize| share(problem, job, slice).min(left[job]);
            let best = (0..left.len()).map(|job| (covers(job), job)).max_by(|a, b| a.0.total_cmp(&b.0));
            let Some((covered, job)) = best.filter(|(covered, _)| *covered > 0.0) else { break };
            left[job] -= covered;
            filling.covered += covered;
            filling.given.push((slice, job));
        }
    }
    filling
}

/// How often a filling covers as much as the first time.
fn repeats(problem: &Problem, filling: &Filling, left: &[f64]) -> u32 {
    let mut taken = vec![0.0; left.len()];
    for &(slice, job) in &filling.given {
        taken[job] += share(problem, job, slice);
    }
    let often = (0..left.len()).filter(|&job| taken[job] > 0.0).map(|job| left[job] / taken[job]);
    (often.fold(f64::INFINITY, f64::min).floor() as u32).max(1)
}
