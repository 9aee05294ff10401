//! Linear and mixed-integer programs, and who solves them.
//!
//! A [`Program`] is solved by a [`Backend`]: HiGHS, whose shared library is loaded when the program starts
//! ([`Backend::highs`]), or microlp, which is pure Rust and always there ([`Backend::microlp`]). [`Backend::best`]
//! takes the former where it is found.
//!
//! Both stop when they are told to, and then give the best that they have: a program stopped early is not an error.
//!
//! ```
//! use downbeat_milp::{Backend, Limits, Program, Status};
//!
//! let mut program = Program::default();
//! let x = program.integer(1.0, 0.0, 10.0);
//! let y = program.continuous(1.0, 0.0, f64::INFINITY);
//! program.at_least(&[(x, 2.0), (y, 1.0)], 3.0);
//! let answer = Backend::microlp().solve(&program, &Limits::none())?;
//! assert_eq!(answer.status, Status::Optimal);
//! assert!((answer.objective - 2.0).abs() < 1e-6);
//! # Ok::<(), downbeat_milp::MilpError>(())
//! ```

mod backend;
mod highs;
mod microlp;
mod program;
#[cfg(test)]
mod tests;

pub use backend::{Answer, Backend, Limits, MilpError, Status};
pub use highs::LIBRARY_VARIABLE;
pub use program::{Column, Program, Row, Variable};
