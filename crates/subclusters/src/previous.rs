//! The sub-clusters of the last epoch, and which models have moved since.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::problem::Problem;

/// The sub-clusters of the last epoch: what is read of a plan's JSON.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Previous {
    /// All of them.
    pub subclusters: Vec<PreviousSubcluster>,
}

/// One of them.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct PreviousSubcluster {
    /// Its name.
    pub name: String,
    /// The names of its models.
    pub models: Vec<String>,
}

/// A previous assignment that makes no sense.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PreviousError {
    /// The text is not a plan.
    #[error("this is not a plan of sub-clusters; write one with --format json ({0})")]
    NotAPlan(String),
    /// A model is in two sub-clusters.
    #[error("model {model:?} is in two sub-clusters, {first:?} and {second:?}")]
    Twice {
        /// The model.
        model: String,
        /// One of them.
        first: String,
        /// The other.
        second: String,
    },
    /// A sub-cluster is there twice.
    #[error("sub-cluster {0:?} is given twice")]
    SameName(String),
}

impl Previous {
    /// Reads a plan's JSON.
    pub fn parse(text: &str) -> Result<Previous, PreviousError> {
        let previous: Previous =
            serde_json::from_str(text).map_err(|error| PreviousError::NotAPlan(error.to_string()))?;
        let mut names = BTreeMap::new();
        let mut homes: BTreeMap<&str, &str> = BTreeMap::new();
        for subcluster in &previous.subclusters {
            if names.insert(&subcluster.name, ()).is_some() {
                return Err(PreviousError::SameName(subcluster.name.clone()));
            }
            for model in &subcluster.models {
                if let Some(first) = homes.insert(model, &subcluster.name) {
                    return Err(PreviousError::Twice {
                        model: model.clone(),
                        first: first.to_owned(),
                        second: subcluster.name.clone(),
                    });
                }
            }
        }
        Ok(previous)
    }

    /// Where each model of the problem is at home, by the sub-cluster's index; `None` for those that are new.
    pub(crate) fn homes(&self, problem: &Problem) -> Vec<Option<usize>> {
        let homes: BTreeMap<&str, usize> = (self.subclusters.iter().enumerate())
            .flat_map(|(index, subcluster)| {
                subcluster.models.iter().map(move |model| (model.as_str(), index))
            })
            .collect();
        problem.models.iter().map(|model| homes.get(model.name.as_str()).copied()).collect()
    }
}

/// What must stay where it is, as far as it must.
#[derive(Clone, Debug, Default)]
pub(crate) struct Homes {
    /// By model; all `None` without a last epoch.
    pub(crate) of: Vec<Option<usize>>,
    /// How many sub-clusters there were.
    pub(crate) count: usize,
    /// How many models may move.
    pub(crate) most_moves: usize,
}

impl Homes {
    /// Nothing is anywhere yet.
    pub(crate) fn none(models: usize) -> Homes {
        Homes { of: vec![None; models], count: 0, most_moves: usize::MAX }
    }

    /// Whether a model in this sub-cluster has moved.
    pub(crate) fn is_move(&self, model: usize, group: usize) -> bool {
        self.of[model].is_some_and(|home| home != group)
    }
}
