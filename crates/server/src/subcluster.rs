//! Sub-clusters: devices that serve some of the models only.
//!
//! A device may be in one, and so may a model; a model's requests go only to the devices of its sub-cluster. A model
//! that is in none runs on all devices. To the scheduler, the devices of one class in one sub-cluster are a class of
//! their own.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;
use std::{fmt, fs, io};

use downbeat_profile::DeviceClass;
use serde::Deserialize;

/// The name of a sub-cluster.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, PartialOrd, Ord)]
#[serde(try_from = "String")]
pub struct Subcluster(Arc<str>);

/// Why a name is not that of a sub-cluster.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a sub-cluster: use letters, digits, '-', '_' and '.'")]
pub struct SubclusterError(String);

impl FromStr for Subcluster {
    type Err = SubclusterError;

    fn from_str(name: &str) -> Result<Subcluster, SubclusterError> {
        let fits = |letter: char| letter.is_ascii_alphanumeric() || "-_.".contains(letter);
        if name.is_empty() || !name.chars().all(fits) {
            return Err(SubclusterError(name.to_owned()));
        }
        Ok(Subcluster(name.into()))
    }
}

impl TryFrom<String> for Subcluster {
    type Error = SubclusterError;

    fn try_from(name: String) -> Result<Subcluster, SubclusterError> {
        name.parse()
    }
}

impl fmt::Display for Subcluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Devices of one class in one sub-cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Pool {
    pub(crate) class: DeviceClass,
    pub(crate) subcluster: Option<Subcluster>,
}

impl fmt::Display for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.subcluster {
            Some(subcluster) => write!(f, "{}#{subcluster}", self.class),
            None => write!(f, "{}", self.class),
        }
    }
}

/// Which models are in which sub-cluster.
pub(crate) type Assignment = BTreeMap<String, Subcluster>;

/// Why an assignment cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum AssignmentError {
    /// The file.
    #[error("cannot read {}: {error}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What happened.
        error: io::Error,
    },
    /// What is in it.
    #[error(
        "{} is no assignment to sub-clusters, as `downbeat plan subclusters --format json` writes it: {error}",
        path.display()
    )]
    Json {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        error: serde_json::Error,
    },
    /// A model that is in two.
    #[error("{} has the model {model:?} in two sub-clusters", path.display())]
    Twice {
        /// The file.
        path: PathBuf,
        /// The model.
        model: String,
    },
}

/// As much of a plan as is of interest here.
#[derive(Deserialize)]
struct Plan {
    subclusters: Vec<Part>,
}

#[derive(Deserialize)]
struct Part {
    name: Subcluster,
    models: Vec<String>,
}

/// Reads which models are in which sub-cluster from a plan.
pub(crate) fn read_assignment(path: &Path) -> Result<Assignment, AssignmentError> {
    let text =
        fs::read_to_string(path).map_err(|error| AssignmentError::Read { path: path.to_owned(), error })?;
    let plan: Plan = serde_json::from_str(&text)
        .map_err(|error| AssignmentError::Json { path: path.to_owned(), error })?;
    let mut assignment = Assignment::new();
    for Part { name, models } in plan.subclusters {
        for model in models {
            if assignment.insert(model.clone(), name.clone()).is_some() {
                return Err(AssignmentError::Twice { path: path.to_owned(), model });
            }
        }
    }
    Ok(assignment)
}
