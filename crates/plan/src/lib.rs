//! Partitions GPUs and places models: a problem in, a plan and a certificate out.

pub mod problem;
pub mod rule;

pub use problem::{Configuration, Pool, Problem, ProblemError, Service, Slice};
pub use rule::{Curve, Rule, Step};
