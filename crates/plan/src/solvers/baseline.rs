//! What people do without a planner: every GPU cut the same way.

use super::exact;
use crate::infeasible::{self, Infeasible};
use crate::problem::Problem;
use crate::solver::{Run, Solved, Solver, Unsolved};

/// A fixed way to cut GPUs.
pub enum Baseline {
    /// Not at all.
    Whole,
    /// Into as many of the smallest slice as there are: seven 1g.
    Smallest,
    /// Into 4g, 2g and 1g.
    Mix421,
}

impl Solver for Baseline {
    fn name(&self) -> &'static str {
        match self {
            Baseline::Whole => "whole",
            Baseline::Smallest => "seven",
            Baseline::Mix421 => "mix421",
        }
    }

    fn about(&self) -> &'static str {
        match self {
            Baseline::Whole => "baseline: whole GPUs, one service each",
            Baseline::Smallest => "baseline: every GPU cut into its smallest slices (seven 1g)",
            Baseline::Mix421 => "baseline: every GPU cut into 4g, 2g and 1g",
        }
    }

    /// The best that can be done with the one way to cut. A service that cannot run on its slices gets whole GPUs.
    fn solve(&self, problem: &Problem, run: &Run<'_>) -> Result<Solved, Unsolved> {
        if let Some(unservable) = infeasible::unservable(problem) {
            return Err(unservable.into());
        }
        let cut: Vec<usize> = self.configurations(problem);
        if cut.is_empty() {
            let why = "no GPU of the problem can be cut that way with the slices that may be used".to_owned();
            return Err(Unsolved::NotApplicable { solver: self.name(), why });
        }
        let (restricted, kept, notes) = restrict(problem, &cut);
        let solved = exact::improve(&restricted, run, None).map_err(|unsolved| self.own_failing(unsolved))?;
        let mut allocation = solved.allocation;
        let mut gpus = vec![0; problem.configurations.len()];
        for (&index, &count) in kept.iter().zip(&allocation.gpus) {
            gpus[index] = count;
        }
        allocation.gpus = gpus;
        // What bounds this way of cutting does not bound the others; the planner's own bound is asked for separately.
        let bound = crate::bound::rule_free_or_nothing(problem);
        Ok(Solved { allocation, bound, notes })
    }
}

impl Baseline {
    /// Pools that are too small for GPUs cut this way may be large enough for others: only this baseline has failed.
    fn own_failing(&self, unsolved: Unsolved) -> Unsolved {
        match unsolved {
            Unsolved::Infeasible(Infeasible::Pools { short, .. }) => {
                let short: Vec<String> = short.iter().map(ToString::to_string).collect();
                let why = format!(
                    "GPUs cut that way are too few ({}); other solvers may find a plan",
                    short.join("; ")
                );
                Unsolved::NotApplicable { solver: self.name(), why }
            }
            other => other,
        }
    }

    fn configurations(&self, problem: &Problem) -> Vec<usize> {
        let fits = |index: &usize| {
            let configuration = &problem.configurations[*index];
            let gpu = &problem.pools[configuration.pool].gpu;
            let mut computes: Vec<u8> = Vec::new();
            for (slice, count) in problem.slices_of(configuration) {
                computes.extend(std::iter::repeat_n(gpu.profiles[slice.profile].compute, count as usize));
            }
            computes.sort_unstable();
            match self {
                Baseline::Whole => computes == [gpu.compute],
                Baseline::Smallest => computes.len() == usize::from(gpu.compute),
                Baseline::Mix421 => computes == [1, 2, 4],
            }
        };
        (0..problem.configurations.len()).filter(fits).collect()
    }
}

/// The problem with these configurations only; whole GPUs beside them for services that cannot run otherwise.
fn restrict(problem: &Problem, cut: &[usize]) -> (Problem, Vec<usize>, Vec<String>) {
    let mut restricted = problem.clone();
    let offered = |slice: usize| cut.iter().any(|&index| problem.configurations[index].slices[slice] > 0);
    let mut notes = Vec::new();
    let mut kept = cut.to_vec();
    for (service, curves) in problem.services.iter().zip(&mut restricted.curves) {
        if (0..curves.len()).any(|slice| offered(slice) && curves[slice].is_some()) {
            for (slice, curve) in curves.iter_mut().enumerate() {
                if !offered(slice) {
                    *curve = None;
                }
            }
        } else {
            notes.push(format!("{} cannot run on these slices and gets others", service.name));
            kept = (0..problem.configurations.len()).collect();
        }
    }
    if notes.is_empty() {
        kept.sort_unstable();
    }
    restricted.configurations = kept.iter().map(|&index| problem.configurations[index].clone()).collect();
    (restricted, kept, notes)
}
