//! Why a model or a repository cannot be read.

use std::path::{Path, PathBuf};

/// Why a model or a repository cannot be read: where, and what to change, in one line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}: {problem}", path.display())]
pub struct ModelError {
    /// The file or directory that is to blame.
    pub path: PathBuf,
    /// What is wrong with it, and what to do.
    pub problem: String,
}

impl ModelError {
    pub(crate) fn new(path: &Path, problem: impl Into<String>) -> ModelError {
        ModelError { path: path.to_owned(), problem: problem.into() }
    }
}
