//! What is wrong with a scenario, and where.

use std::io;
use std::path::PathBuf;

use downbeat_input::Mistake;

pub(super) use downbeat_input::suggestion;

/// A scenario's text.
pub(super) type Source<'a> = downbeat_input::Source<'a, ScenarioError>;

/// Why a scenario cannot be simulated. One line that names the file, the line in it and the key.
#[derive(Debug, thiserror::Error)]
pub enum ScenarioError {
    /// The file cannot be read.
    #[error("{}: cannot be read: {cause}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        cause: io::Error,
    },
    /// The text is not a scenario.
    #[error(transparent)]
    Invalid(#[from] Mistake),
}
