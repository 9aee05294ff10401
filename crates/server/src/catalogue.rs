//! The models that can be asked for, as the frontends see them.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use downbeat_oip::{Failure, Reason};
use downbeat_profile::Span;
use downbeat_repository::ModelDefinition;

use crate::dispatch::InstanceId;
use crate::metrics::ModelMeter;

/// A version of a model that can be asked for.
#[derive(Debug)]
pub(crate) struct Served {
    pub(crate) instance: InstanceId,
    pub(crate) version: u64,
    pub(crate) definition: Arc<ModelDefinition>,
    pub(crate) slo: Span,
    pub(crate) meter: Arc<ModelMeter>,
}

/// Why a version cannot be asked for that was unloaded.
pub(crate) const UNLOADED: &str = "unloaded";

/// How a version of a model stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Loading,
    Ready,
    Unloading,
    Unavailable,
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            State::Loading => "LOADING",
            State::Ready => "READY",
            State::Unloading => "UNLOADING",
            State::Unavailable => "UNAVAILABLE",
        })
    }
}

/// A version of a model.
#[derive(Clone, Debug)]
pub(crate) struct Version {
    pub(crate) state: State,
    /// Why it is in that state.
    pub(crate) reason: String,
    /// While it can be asked for: also while it is being loaded anew.
    pub(crate) served: Option<Arc<Served>>,
}

/// All models that were ever to be loaded, by name and version; version 0 stands for a model of which not even the
/// versions are known.
#[derive(Debug, Default)]
pub(crate) struct Catalogue {
    models: RwLock<BTreeMap<String, BTreeMap<u64, Version>>>,
}

impl Catalogue {
    /// The version asked for; the newest one that is ready where none is.
    pub(crate) fn find(&self, model: &str, version: &str) -> Result<Arc<Served>, Failure> {
        let models = self.read();
        let Some(versions) = models.get(model) else {
            let message = format!("unknown model: {model:?} is not found");
            return Err(Failure::new(Reason::Unknown, message));
        };
        let unavailable = |version: Option<&Version>| match version {
            None => {
                Failure::new(Reason::Unknown, format!("unknown model: {model:?} has no available versions"))
            }
            Some(Version { reason, .. }) if reason == UNLOADED => {
                Failure::new(Reason::Unknown, format!("unknown model: {model:?} is not loaded"))
            }
            Some(Version { state, reason, .. }) => {
                let why = if reason.is_empty() { String::new() } else { format!(": {reason}") };
                Failure::new(Reason::Unavailable, format!("the model {model:?} is {state}{why}"))
            }
        };
        if version.is_empty() {
            let ready = versions.values().rev().find_map(|version| version.served.clone());
            return ready.ok_or_else(|| unavailable(versions.values().next_back()));
        }
        let number = version.parse().ok().filter(|&number: &u64| number > 0);
        // While it is not known which versions there will be, it may be one of them.
        let on_its_way = || versions.get(&0).filter(|version| version.state == State::Loading);
        let found = number.and_then(|number| versions.get(&number).or_else(on_its_way));
        let Some(found) = found else {
            let message = format!("unknown version: {version:?} of model {model:?} is not found");
            return Err(Failure::new(Reason::Unknown, message));
        };
        found.served.clone().ok_or_else(|| unavailable(Some(found)))
    }

    /// All versions of a model that can be asked for.
    pub(crate) fn served(&self, model: &str) -> Vec<Arc<Served>> {
        let models = self.read();
        models
            .get(model)
            .into_iter()
            .flat_map(BTreeMap::values)
            .filter_map(|version| version.served.clone())
            .collect()
    }

    /// The names of all models.
    pub(crate) fn names(&self) -> Vec<String> {
        self.read().keys().cloned().collect()
    }

    /// The versions of a model.
    pub(crate) fn versions(&self, model: &str) -> BTreeMap<u64, Version> {
        self.read().get(model).cloned().unwrap_or_default()
    }

    /// Changes what is known of a version.
    pub(crate) fn set(&self, model: &str, version: u64, state: State, reason: &str) {
        let mut models = self.write();
        let versions = models.entry(model.to_owned()).or_default();
        // As soon as a version is known, not to know any is out of date.
        versions.retain(|&number, _| number > 0 || version == 0);
        let entry = versions.entry(version).or_insert(Version { state, reason: String::new(), served: None });
        entry.state = state;
        reason.clone_into(&mut entry.reason);
        if !matches!(state, State::Ready | State::Loading) {
            entry.served = None;
        }
    }

    /// Lets a version be asked for, in place of the one before.
    pub(crate) fn serve(&self, served: Served) {
        let mut models = self.write();
        let versions = models.entry(served.definition.name.clone()).or_default();
        versions.retain(|&number, _| number > 0);
        let number = served.version;
        let version = Version { state: State::Ready, reason: String::new(), served: Some(Arc::new(served)) };
        versions.insert(number, version);
    }

    fn read(&self) -> RwLockReadGuard<'_, BTreeMap<String, BTreeMap<u64, Version>>> {
        self.models.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, BTreeMap<String, BTreeMap<u64, Version>>> {
        self.models.write().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
