//! Planner and simulator composed: neither knows the other.
//!
//! [`Goodput`] answers the planner's question what n slices serve under the real scheduler, and remembers the answers
//! in a file. [`verify()`] replays a plan in the simulator; [`plan_verified`] plans until the replay passes.
//! [`subclusters`] confirms the sizes of sub-clusters by simulation. [`simulate_day`] lets a conductor
//! ([`downbeat_epochs`]) forecast, plan, change layouts and react over a day of virtual time.

mod cluster;
mod goodput;
mod outcome;
mod page;
pub mod report;
mod run;
mod scenario;
mod site;
pub mod subclusters;
mod verify;

pub use goodput::{CacheError, Goodput};
pub use page::day_page;
pub use report::DayReport;
pub use run::{DayRunError, simulate_day};
pub use scenario::{DayError, DayScenario, GpuFault};
pub use verify::{Replay, Replayed, VerifiedPlan, VerifyError, plan_verified, verify};

/// The share of a service's requests that must be in time for a plan to pass.
pub const IN_SLO_LEAST: f64 = 0.99;
