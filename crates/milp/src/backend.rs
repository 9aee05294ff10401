//! Who solves a program, and what is answered.

use std::path::Path;

use crate::highs::{Highs, LIBRARY};
use crate::{Program, microlp};

/// When to stop, and where to begin.
#[derive(Clone, Copy)]
pub struct Limits<'a> {
    /// Asked again and again while a program is solved; true ends the search with what there is.
    pub stop: &'a (dyn Fn() -> bool + Sync),
    /// Values that meet the program, as a first solution.
    pub start: Option<&'a [f64]>,
    /// The search may end when no better solution can be better by this much.
    pub absolute_gap: f64,
}

impl Limits<'static> {
    /// To the end, from nothing.
    pub fn none() -> Limits<'static> {
        Limits { stop: &|| false, start: None, absolute_gap: 0.0 }
    }
}

/// How a search ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// No solution is better, within the gap allowed.
    Optimal,
    /// There is no solution.
    Infeasible,
    /// Told to stop; [`Answer::values`] may hold a solution.
    Stopped,
}

/// What a backend found.
#[derive(Clone, Debug)]
pub struct Answer {
    /// How the search ended.
    pub status: Status,
    /// The best solution, where one was found.
    pub values: Option<Vec<f64>>,
    /// Its objective; infinite without one.
    pub objective: f64,
    /// No solution has a smaller objective than this.
    pub bound: f64,
    /// What one unit of each row's range is worth. Of continuous programs solved by HiGHS only; empty otherwise.
    pub duals: Vec<f64>,
}

impl Answer {
    pub(crate) fn infeasible() -> Answer {
        Answer {
            status: Status::Infeasible,
            values: None,
            objective: f64::INFINITY,
            bound: f64::INFINITY,
            duals: Vec::new(),
        }
    }
}

/// Why a program was not solved.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MilpError {
    /// The library of HiGHS was named, and cannot be used.
    #[error("HiGHS cannot be used: {0}")]
    Library(String),
    /// The backend gave up.
    #[error("{backend} could not solve the program: {why}")]
    Failed {
        /// Which.
        backend: &'static str,
        /// In its words.
        why: String,
    },
}

/// A solver of programs.
#[derive(Debug)]
pub struct Backend(Kind);

#[derive(Debug)]
enum Kind {
    Highs(Highs),
    Microlp,
}

impl Backend {
    /// HiGHS where its library is found, else microlp. A library that is named, by `setting` or in the environment,
    /// must be there.
    pub fn best(setting: Option<&Path>) -> Result<Backend, MilpError> {
        match LIBRARY.find(setting).map_err(|error| MilpError::Library(error.to_string()))? {
            Some(library) => Backend::highs(&library),
            None => Ok(Backend::microlp()),
        }
    }

    /// HiGHS, out of this library.
    pub fn highs(library: &Path) -> Result<Backend, MilpError> {
        Ok(Backend(Kind::Highs(Highs::load(library)?)))
    }

    /// The solver that needs nothing.
    pub fn microlp() -> Backend {
        Backend(Kind::Microlp)
    }

    /// `highs` or `microlp`.
    pub fn name(&self) -> &'static str {
        match self.0 {
            Kind::Highs(_) => "highs",
            Kind::Microlp => "microlp",
        }
    }

    /// Whether it is the one that proves most.
    pub fn is_strong(&self) -> bool {
        matches!(self.0, Kind::Highs(_))
    }

    /// Minimises.
    pub fn solve(&self, program: &Program, limits: &Limits<'_>) -> Result<Answer, MilpError> {
        match &self.0 {
            Kind::Highs(highs) => highs.solve(program, limits),
            Kind::Microlp => microlp::solve(program, limits),
        }
    }
}
