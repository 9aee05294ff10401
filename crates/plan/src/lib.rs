//! Partitions GPUs and places models: a problem in, a plan and a certificate out.

pub mod bound;
pub mod infeasible;
mod prices;
pub mod problem;
pub mod rule;
pub mod solver;
pub mod solvers;
#[cfg(test)]
mod testing;

pub use infeasible::Infeasible;
pub use problem::{
    Configuration, GoodputQuery, Pool, Problem, ProblemError, Service, Simulator, Slice, Unsimulated,
};
pub use rule::{Curve, Rule, Step};
pub use solver::{Allocation, Bound, Progress, Run, Solved, Solver, Unsolved};
