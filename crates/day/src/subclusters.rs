//! Sub-clusters and the simulator composed: sizes are confirmed, plans replayed, divisions compared.
//!
//! The solver of `downbeat-subclusters` sizes sub-clusters by an estimate. Here each of them is run in the simulator,
//! under the real scheduler and at the rates that are asked for: where it fails, devices are added until it passes, and
//! where it passes, taken away as long as it does. The sizes of a plan are therefore the simulator's.

mod compare;
mod confirm;
mod page;
mod replay;
#[cfg(test)]
mod tests;
mod trial;

use downbeat_milp::Backend;
use downbeat_subclusters::{Epoch, Method, Plan, Problem, Run, Solution, Unsolved, solve};

pub use compare::{Comparison, Contender, compare};
pub use confirm::confirm;
pub use page::page;
pub use replay::{ModelReplay, SubclusterReplay, replay};

/// A plan, and the division that it was made from.
#[derive(Clone, Debug)]
pub struct Planned {
    /// The plan.
    pub plan: Plan,
    /// The division, with sizes by the estimate.
    pub solution: Solution,
}

/// Why there is no plan.
#[derive(Debug, thiserror::Error)]
pub enum SubclusterError {
    /// There is no division.
    #[error(transparent)]
    Unsolved(#[from] Unsolved),
    /// The simulator refused it.
    #[error("the sub-clusters cannot be simulated: {0}")]
    Simulation(String),
    /// The estimate was content, the simulator is not.
    #[error(
        "in simulation {needed} GPUs are needed, and there are {available}: the estimate was {estimated}; \
         give more GPUs, lower rates or longer SLOs"
    )]
    TooFewGpus {
        /// What the simulator asked for.
        needed: u32,
        /// How many there are.
        available: u32,
        /// What the estimate asked for.
        estimated: u32,
    },
}

/// Divides, and confirms the sizes by simulation unless `confirmed` is false. `on_confirmed` is told of each
/// sub-cluster that is done, from any thread.
pub fn plan(
    problem: &Problem,
    epoch: Epoch<'_>,
    method: Method,
    run: &Run<'_>,
    confirmed: bool,
    on_confirmed: &(dyn Fn() + Sync),
) -> Result<Planned, SubclusterError> {
    let solution = solve(problem, epoch, method, run)?;
    let counts = if confirmed {
        confirm(problem, &solution.subclusters, run.seed, on_confirmed)
            .map_err(SubclusterError::Simulation)?
    } else {
        solution.subclusters.iter().map(|subcluster| subcluster.count).collect()
    };
    let plan = written(problem, &solution, epoch, &counts, run.backend, confirmed)?;
    match problem.gpus.filter(|&available| plan.gpus > available) {
        Some(available) => {
            Err(SubclusterError::TooFewGpus { needed: plan.gpus, available, estimated: plan.estimated_gpus })
        }
        None => Ok(Planned { plan, solution }),
    }
}

fn written(
    problem: &Problem,
    solution: &Solution,
    epoch: Epoch<'_>,
    counts: &[u32],
    backend: &Backend,
    confirmed: bool,
) -> Result<Plan, SubclusterError> {
    let mut plan = Plan::new(problem, solution, epoch.previous, counts, backend)?;
    plan.confirmed = confirmed;
    Ok(plan)
}
