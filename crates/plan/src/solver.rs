//! What every planner takes and gives.

use downbeat_milp::{Backend, MilpError};

use crate::infeasible::Infeasible;
use crate::problem::Problem;

/// A way to find a plan.
pub trait Solver: Sync {
    /// As it is called on the command line.
    fn name(&self) -> &'static str;

    /// One line for a help text: what it does and what it promises.
    fn about(&self) -> &'static str;

    /// Plans until the end, or until it is told to stop: then the best so far is the answer.
    fn solve(&self, problem: &Problem, run: &Run<'_>) -> Result<Solved, Unsolved>;
}

/// What a solver may use while it runs.
#[derive(Clone, Copy)]
pub struct Run<'a> {
    /// Asked again and again; true ends the search with the best so far. The planner has no clock of its own.
    pub stop: &'a (dyn Fn() -> bool + Sync),
    /// Told of every better plan and every better bound.
    pub on_progress: &'a (dyn Fn(&Progress) + Sync),
    /// Who solves integer programs.
    pub backend: &'a Backend,
    /// What randomness grows from.
    pub seed: u64,
}

/// Where a search is.
#[derive(Clone, Debug, PartialEq)]
pub struct Progress {
    /// What is being done.
    pub phase: &'static str,
    /// The cost of the best plan so far; infinite without one.
    pub cost: f64,
    /// What no plan can cost less than.
    pub bound: f64,
}

/// How many instances of each service run on each kind of slice, and how many GPUs are cut in each way.
///
/// Slices of a kind are interchangeable, so that this is all there is to a plan but for who lies where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Allocation {
    /// By service, then by kind of slice.
    pub instances: Vec<Vec<u32>>,
    /// By configuration.
    pub gpus: Vec<u32>,
}

impl Allocation {
    /// Nothing on no GPU.
    pub fn empty(problem: &Problem) -> Allocation {
        Allocation {
            instances: vec![vec![0; problem.slices.len()]; problem.services.len()],
            gpus: vec![0; problem.configurations.len()],
        }
    }

    /// What it costs.
    pub fn cost(&self, problem: &Problem) -> f64 {
        self.gpus.iter().enumerate().map(|(index, &count)| problem.cost(index) * f64::from(count)).sum()
    }

    /// How many GPUs it takes.
    pub fn gpu_count(&self) -> u32 {
        self.gpus.iter().sum()
    }

    /// How many slices of each kind are used.
    pub fn used(&self, slices: usize) -> Vec<u32> {
        let mut used = vec![0; slices];
        for counts in &self.instances {
            for (sum, count) in used.iter_mut().zip(counts) {
                *sum += count;
            }
        }
        used
    }

    /// How many GPUs of each pool.
    pub fn by_pool(&self, problem: &Problem) -> Vec<u32> {
        let mut pools = vec![0; problem.pools.len()];
        for (configuration, count) in problem.configurations.iter().zip(&self.gpus) {
            pools[configuration.pool] += count;
        }
        pools
    }
}

/// What no plan can cost less than, and how that is known.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bound {
    /// The cost.
    pub cost: f64,
    /// The argument's name.
    pub name: &'static str,
}

impl Bound {
    /// The larger of two bounds.
    #[must_use]
    pub fn or(self, other: Bound) -> Bound {
        if other.cost > self.cost { other } else { self }
    }
}

/// A solver's answer.
#[derive(Clone, Debug)]
pub struct Solved {
    /// The plan, without places.
    pub allocation: Allocation,
    /// What no plan can cost less than.
    pub bound: Bound,
    /// What is to be known of it, such as that a weaker solver was used.
    pub notes: Vec<String>,
}

/// Why there is no plan.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Unsolved {
    /// There can be none.
    #[error(transparent)]
    Infeasible(#[from] Infeasible),
    /// The solver does not apply to this problem.
    #[error("{solver} does not apply: {why}")]
    NotApplicable {
        /// Which.
        solver: &'static str,
        /// Why.
        why: String,
    },
    /// An integer program could not be solved.
    #[error(transparent)]
    Milp(#[from] MilpError),
    /// A plan was found that breaks a rule: a defect of the solver, never handed out.
    #[error("the plan of {solver} was refused by the checker: {why}")]
    Refused {
        /// Which.
        solver: &'static str,
        /// What the checker says.
        why: String,
    },
}
