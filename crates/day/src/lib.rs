//! Planner and simulator composed: neither knows the other.
//!
//! [`Goodput`] answers the planner's question what n slices serve under the real scheduler, and remembers the answers in a file.
//! [`subclusters`] confirms the sizes of sub-clusters by simulation.
//! [`verify()`] replays a plan in the simulator; [`plan_verified`] plans until the replay passes.

mod cluster;
mod goodput;
pub mod subclusters;
mod verify;

pub use goodput::{CacheError, Goodput};
pub use verify::{Replay, Replayed, VerifiedPlan, VerifyError, plan_verified, verify};

/// The share of a service's requests that must be in time for a plan to pass.
pub const IN_SLO_LEAST: f64 = 0.99;
