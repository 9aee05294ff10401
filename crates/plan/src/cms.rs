//! Configurable machine scheduling: the same problem without GPUs, for any blocks, configurations and demand tables.
//!
//! A machine is set to one of some configurations, each a multiset of blocks; a block of type i serves job j by its
//! table's value; as few machines as possible are to serve every demand. MIG is the case in which blocks are slices. An
//! instance is read from JSON ([`Cms`]) and becomes a [`Problem`], so that every solver works on it; the approximation
//! algorithms of the theory are here, and work on GPUs as well where throughput is linear in the number of instances.

mod file;
mod fixed;
mod log;
mod lp_round;
mod ptas;
mod schedule;
#[cfg(test)]
mod tests;

pub use file::{Cms, CmsError};
pub use fixed::CmsFixed;
pub use log::CmsLog;
pub use lp_round::CmsLpRound;
pub use ptas::CmsPtas;
pub use schedule::{Block, Machine, Schedule, schedule};

use crate::infeasible;
use crate::problem::Problem;
use crate::solver::Unsolved;
use crate::solvers::compact::Compact;

/// The algorithms count machines that are all alike and values that add up; for anything else they promise nothing.
fn applies(problem: &Problem, solver: &'static str) -> Result<(), Unsolved> {
    if let Some(unservable) = infeasible::unservable(problem) {
        return Err(unservable.into());
    }
    let not = |why: &str| Err(Unsolved::NotApplicable { solver, why: why.to_owned() });
    if !Compact::is_exact(problem) {
        return not("throughput is not linear in the number of instances under this rule");
    }
    if problem.pools.iter().any(|pool| pool.count.is_some()) || problem.minimises_cost() {
        return not("it knows one type of machine, as many as are needed");
    }
    if problem.services.iter().any(|service| service.min_replicas > 1) {
        return not("it knows no least number of instances");
    }
    Ok(())
}
