//! Partitions GPUs and places models: a problem in, a plan and a certificate out.
//!
//! [`Problem`] says what is wanted; [`plan()`] has a [`Solver`] solve it, lays the solution out on GPUs and has it
//! checked; [`Plan`] is what is written down. The solvers ([`solvers`]) differ in speed and in what they prove; all of
//! them decide counts of instances and GPUs ([`Allocation`]), because slices of a kind are interchangeable.
//!
//! Nothing here knows the simulator, reads a clock or prints. Throughput that must be measured comes through the trait
//! [`Simulator`]; a solver is told when to stop through [`Run`].

pub mod bound;
pub mod check;
pub mod cms;
pub mod emit;
pub mod infeasible;
mod keep;
mod older;
mod page;
mod place;
pub mod plan;
mod planning;
mod prices;
pub mod problem;
pub mod rule;
pub mod solver;
pub mod solvers;
#[cfg(test)]
mod testing;

pub use infeasible::Infeasible;
pub use page::page;
pub use plan::{GpuLayout, Instance, Objective, Plan, ServiceSupply, number_devices};
pub use planning::plan;
pub use problem::{
    Configuration, GoodputQuery, Pool, Problem, ProblemError, Service, Simulator, Slice, Unsimulated,
};
pub use rule::{Curve, Rule, Step};
pub use solver::{Allocation, Bound, Progress, Run, Solved, Solver, Unsolved};
