//! What is wrong with a problem file, and where.

use std::io;
use std::path::PathBuf;

use downbeat_input::Mistake;
use downbeat_mig::GeometryError;
use downbeat_profile::ProfileFileError;

pub(super) use downbeat_input::suggestion;

/// A problem's text.
pub(super) type Source<'a> = downbeat_input::Source<'a, ProblemError>;

/// Why there is nothing to plan. One line that names the file, the line in it and the key.
#[derive(Debug, thiserror::Error)]
pub enum ProblemError {
    /// The file cannot be read.
    #[error("{}: cannot be read: {cause}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        cause: io::Error,
    },
    /// The text is not a problem.
    #[error(transparent)]
    Invalid(#[from] Mistake),
    /// A profile file that it names is of no use.
    #[error(transparent)]
    Profiles(#[from] ProfileFileError),
    /// A file of GPU models that it names is of no use.
    #[error(transparent)]
    Geometry(#[from] GeometryError),
}
