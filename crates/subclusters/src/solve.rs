//! From a problem to sub-clusters, with a bound on how few devices would do.

#[cfg(test)]
mod tests;

use downbeat_milp::{Backend, MilpError};

use crate::division::Division;
use crate::exact;
use crate::heuristic::{self, Search};
use crate::infeasible::{self, Unsolved};
use crate::need::Needs;
use crate::previous::{Homes, Previous};
use crate::problem::Problem;
use crate::{bound, check};

/// The most models that the exact solver is given.
const MOST_EXACT: usize = 60;

/// How to search.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Method {
    /// The heuristic; then, for tens of models, the exact solver.
    #[default]
    Auto,
    /// The heuristic alone.
    Heuristic,
    /// The exact solver whatever the number of models: for as long as it takes.
    Exact,
}

impl Method {
    /// All of them.
    pub const ALL: [Method; 3] = [Method::Auto, Method::Heuristic, Method::Exact];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Method::Auto => "auto",
            Method::Heuristic => "heuristic",
            Method::Exact => "exact",
        }
    }
}

/// What a search is given besides the problem.
pub struct Run<'a> {
    /// Told to stop: the best found so far is taken.
    pub stop: &'a (dyn Fn() -> bool + Sync),
    /// Who solves programs.
    pub backend: &'a Backend,
    /// Seed of what is random.
    pub seed: u64,
    /// Told how far it is: what is being done, the units of the best division, and the bound.
    pub on_progress: &'a dyn Fn(&str, u64, u64),
}

/// What the last epoch asks for.
#[derive(Clone, Copy, Debug, Default)]
pub struct Epoch<'a> {
    /// Its sub-clusters.
    pub previous: Option<&'a Previous>,
    /// How many models may move; as many as it takes where it is not said.
    pub max_moves: Option<usize>,
}

/// A sub-cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subcluster {
    /// Its name: that of the last epoch, or a new one.
    pub name: String,
    /// The kind of device, by its index in the problem.
    pub device: usize,
    /// How many devices it is estimated to need.
    pub count: u32,
    /// Its models, by their index in the problem.
    pub models: Vec<usize>,
}

/// A division of all models into sub-clusters, checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Solution {
    /// The sub-clusters, none of them empty.
    pub subclusters: Vec<Subcluster>,
    /// What they cost, in units of a GPU.
    pub units: u64,
    /// No division costs less, by the estimate of needs.
    pub bound_units: u64,
    /// How that is known.
    pub bound_name: &'static str,
    /// Who found it: `heuristic` or `exact`.
    pub algorithm: &'static str,
    /// The models that are elsewhere than in the last epoch.
    pub moved: Vec<usize>,
}

/// Divides the models into sub-clusters on as few GPUs as possible.
pub fn solve(
    problem: &Problem,
    epoch: Epoch<'_>,
    method: Method,
    run: &Run<'_>,
) -> Result<Solution, Unsolved> {
    let needs = Needs::of(problem);
    infeasible::check_each(problem, &needs)?;
    let homes = homes(problem, epoch);
    let lower = (bound::units(&needs) - 1e-6).ceil().max(0.0) as u64;
    let on_better = |cost: u64| (run.on_progress)("heuristic", cost, lower);
    let search = Search { stop: &run.stop, enough: lower, seed: run.seed, on_better: &on_better };
    let Some(found) = heuristic::search(&needs, &homes, &search) else {
        return Err(infeasible::too_many_moves(&needs, &homes, &search));
    };
    let exactly = method == Method::Exact || (method == Method::Auto && needs.models() <= MOST_EXACT);
    let (division, bound_units, bound_name, algorithm) = if exactly && found.cost > lower {
        (run.on_progress)("exact", found.cost, lower);
        let before = found.cost;
        let proof = exact::prove(&needs, &homes, found, lower, run.backend, run.stop)?;
        let better = proof.division.cost < before;
        let name = if proof.improved { exact::NAME } else { bound::NAME };
        (proof.division, proof.bound, name, if better { "exact" } else { "heuristic" })
    } else {
        (found, lower, bound::NAME, "heuristic")
    };
    let solution = Solution {
        bound_units: bound_units.min(division.cost),
        ..solution(problem, epoch, &homes, &division, bound_name, algorithm)
    };
    infeasible::check_count(problem, &needs, epoch, &solution, &search)?;
    check::check(problem, epoch, &solution).map_err(Unsolved::Broken)?;
    Ok(solution)
}

fn homes(problem: &Problem, epoch: Epoch<'_>) -> Homes {
    match epoch.previous {
        None => Homes::none(problem.models.len()),
        Some(previous) => Homes {
            of: previous.homes(problem),
            count: previous.subclusters.len(),
            most_moves: epoch.max_moves.unwrap_or(usize::MAX),
        },
    }
}

fn solution(
    problem: &Problem,
    epoch: Epoch<'_>,
    homes: &Homes,
    division: &Division<'_>,
    bound_name: &'static str,
    algorithm: &'static str,
) -> Solution {
    let old: Vec<&str> = epoch.previous.map_or_else(Vec::new, |previous| {
        previous.subclusters.iter().map(|subcluster| subcluster.name.as_str()).collect()
    });
    let mut number = 0;
    let mut fresh_name = || loop {
        number += 1;
        let name = format!("s{number}");
        if !old.contains(&name.as_str()) {
            return name;
        }
    };
    let mut subclusters = Vec::new();
    for (index, group) in division.groups.iter().enumerate() {
        let Some(choice) = group.choice else { continue };
        let mut models = group.members.clone();
        models.sort_unstable();
        let name = old.get(index).map_or_else(&mut fresh_name, |name| (*name).to_owned());
        subclusters.push(Subcluster { name, device: choice.device, count: choice.count, models });
    }
    let moved = |&model: &usize| homes.is_move(model, division.group_of[model]);
    Solution {
        subclusters,
        units: division.cost,
        bound_units: 0,
        bound_name,
        algorithm,
        moved: (0..problem.models.len()).filter(moved).collect(),
    }
}

impl From<MilpError> for Unsolved {
    fn from(error: MilpError) -> Unsolved {
        Unsolved::Backend(error)
    }
}
