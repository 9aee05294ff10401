//! Sub-clusters: which models share which GPUs.
//!
//! When the models do not all fit into one GPU's memory, the cluster is divided. Every GPU of a sub-cluster holds all
//! of its models, and one scheduler serves them on all of its GPUs. The question of an epoch is which models go
//! together and how many GPUs each sub-cluster gets, so that memory fits, demand is met, GPUs are few, and few models
//! move since the last epoch.
//!
//! - [`Problem`] is what is asked; [`Previous`] the last epoch; [`solve()`] answers with a [`Solution`], which has been checked.
//! - How many devices a set of models needs is an estimate (`need.rs` has the formula and where it comes from). Whoever acts on a
//!   solution confirms it by simulation; that is `downbeat-day`'s part, because this crate does not know the simulator.
//! - `heuristic.rs` is for thousands of models, with the bound of `bound.rs`; `exact.rs` proves that no division is better, for
//!   tens.
//! - A sub-cluster is made of whole GPUs or of MIG slices of one kind; `layout.rs` cuts GPUs into the slices.
//! - [`rivals`] are what others would do.
//!
//! No clock, no threads, no I/O but [`Problem::load`].

mod bound;
mod check;
mod division;
mod exact;
mod headroom;
mod heuristic;
mod infeasible;
mod layout;
mod need;
mod plan;
mod previous;
mod problem;
pub mod rivals;
mod solve;
#[cfg(test)]
mod testing;

pub use infeasible::Unsolved;
pub use layout::{PlacedSlice, SlicedGpu};
pub use plan::{ModelPlan, Move, Plan, SubclusterPlan};
pub use previous::{Previous, PreviousError, PreviousSubcluster};
pub use problem::{Device, Model, Problem, ProblemError};
pub use solve::{Epoch, Method, Run, Solution, Subcluster, solve};
