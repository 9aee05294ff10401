//! The planners, by name.

mod auto;
mod baseline;
pub(crate) mod compact;
mod exact;
mod greedy;
pub(crate) mod patterns;
#[cfg(test)]
mod tests;

use crate::solver::Solver;

pub use auto::Auto;
pub use baseline::Baseline;
pub use exact::Exact;
pub(crate) use exact::raised;
pub use greedy::Greedy;

/// All planners for GPUs; the default first.
pub const ALL: [&dyn Solver; 6] =
    [&Auto, &Greedy, &Exact, &Baseline::Whole, &Baseline::Smallest, &Baseline::Mix421];

/// The planner of this name.
pub fn by_name(name: &str) -> Option<&'static dyn Solver> {
    ALL.into_iter().find(|solver| solver.name() == name)
}
