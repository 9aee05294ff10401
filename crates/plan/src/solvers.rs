//! The planners, by name.

mod auto;
mod baseline;
mod chromosome;
pub(crate) mod compact;
mod deployment;
pub(crate) mod exact;
mod fit;
mod ga;
mod greedy;
mod mcts;
pub(crate) mod patterns;
mod rollout;
mod taste;
#[cfg(test)]
mod tests;

use crate::cms::{CmsFixed, CmsLog, CmsLpRound, CmsPtas};
use crate::solver::Solver;

pub use auto::Auto;
pub use baseline::Baseline;
pub use exact::Exact;
pub(crate) use exact::raised;
pub use ga::Ga;
pub use greedy::Greedy;
pub(crate) use greedy::tidy;
pub use mcts::Mcts;

/// All planners for GPUs; the default first.
pub const ALL: [&dyn Solver; 12] = [
    &Auto,
    &Greedy,
    &Mcts,
    &Ga,
    &Exact,
    &Baseline::Whole,
    &Baseline::Smallest,
    &Baseline::Mix421,
    &CmsLog,
    &CmsLpRound,
    &CmsPtas,
    &CmsFixed,
];

/// The planner of this name.
pub fn by_name(name: &str) -> Option<&'static dyn Solver> {
    ALL.into_iter().find(|solver| solver.name() == name)
}
