//! Transitions: from one layout of a cluster to another, without any service ever falling below the lower of what it
//! has and what it is to have.
//!
//! [`plan()`] makes a [`Transition`]: steps, each with the steps it waits for, so that independent ones run side by
//! side. It is MIG-serving's exchange-and-compact, for targets at given places: a *sequence* that keeps every floor,
//! then the *order* that is really needed, then *times*. [`replay::check`], which shares no code with that, goes
//! through every transition before anybody sees it: in order, and under every interleaving that the steps allow.
//! [`state_after`] is the layout that a half-done transition leaves, failed steps included; planning from there
//! finishes the job.
//!
//! Nothing here knows the simulator, reads a clock or prints.

// What makes random layouts for the benchmark makes them for the tests.
#[cfg(test)]
extern crate self as downbeat_transition;
#[cfg(test)]
#[path = "../benches/transitions/random.rs"]
mod random;

mod bound;
mod case;
mod layout;
mod order;
mod page;
mod planning;
pub mod replay;
mod resume;
mod sequence;
mod step;
mod times;

pub use case::{CaseError, Comparison};
pub use layout::{Gpu, Instance, Layout, ServiceName, Slice};
pub use page::page;
pub use planning::{Options, PlanError, plan, renumbered};
pub use resume::{ResumeError, state_after};
pub use step::{Driver, Phase, Source, SpareGpu, Step, StepKind, Transition};
pub use times::StepTimes;
