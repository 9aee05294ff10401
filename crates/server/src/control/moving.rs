//! Models in sub-clusters, and how they move between them.
//!
//! A model that moves is loaded in its new sub-cluster as if it were loaded anew: requests go there as soon as it is
//! ready, those from before are served where they are, and then it is unloaded there.

use std::collections::BTreeMap;

use downbeat_oip::{Failure, Reason};
use downbeat_repository::ModelDefinition;
use tokio::sync::oneshot;

use super::Control;
use super::cast::{Instance, Phase, Staff};
use crate::service::SubclusterState;
use crate::subcluster::{Subcluster, SubclusterError};

/// Whether a worker's devices run the models of a sub-cluster; of none, for those that are in none.
pub(super) fn runs_on(home: Option<&Subcluster>, staff: &Staff) -> bool {
    home.is_none() || home == staff.subcluster()
}

impl Staff {
    /// The sub-cluster that a worker's devices are in.
    pub(super) fn subcluster(&self) -> Option<&Subcluster> {
        self.worker.devices.first().and_then(|device| device.pool.subcluster.as_ref())
    }
}

impl Control {
    /// The sub-cluster that a model is to be in: where it was moved or assigned to, else as its configuration says.
    pub(super) fn home_of(&self, definition: &ModelDefinition) -> Result<Option<Subcluster>, Failure> {
        if let Some(home) = self.assigned.get(&definition.name) {
            return Ok(Some(home.clone()));
        }
        let invalid = |error: SubclusterError| Failure::new(Reason::Invalid, format!("subcluster: {error}"));
        definition.parameter("subcluster").map(str::parse).transpose().map_err(invalid)
    }

    /// The sub-clusters that devices or models are in.
    pub(super) fn subclusters(&self) -> BTreeMap<String, SubclusterState> {
        let mut all: BTreeMap<String, SubclusterState> = BTreeMap::new();
        for staff in self.workers.values() {
            if let Some(subcluster) = staff.subcluster() {
                let devices = if staff.joined { staff.worker.devices.len() } else { 0 };
                all.entry(subcluster.to_string()).or_default().devices += devices;
            }
        }
        for instance in self.instances.values().filter(|it| it.phase == Phase::Ready) {
            if let Some(home) = &instance.home {
                let models = &mut all.entry(home.to_string()).or_default().models;
                if !models.contains(&instance.definition.name) {
                    models.push(instance.definition.name.clone());
                }
            }
        }
        all
    }

    pub(super) fn move_model(
        &mut self,
        model: &str,
        to: &Subcluster,
        reply: oneshot::Sender<Result<(), Failure>>,
    ) {
        let serves = |it: &Instance| it.definition.name == model && it.phase == Phase::Ready;
        let served = self.ids(serves).last().and_then(|id| self.instances.get(id));
        let result = match served {
            None => Err(Failure::new(Reason::Unknown, format!("the model {model:?} is not loaded"))),
            Some(served) if served.home.as_ref() == Some(to) => Ok(()),
            Some(_) if !self.workers.values().any(|staff| staff.subcluster() == Some(to)) => {
                let message = format!("no worker of the sub-cluster {to} is there");
                Err(Failure::new(Reason::Unavailable, message))
            }
            Some(served) => {
                tracing::info!(model, "moving to the sub-cluster {to}");
                let config = served.config.clone();
                return self.read(model, config, Some(to.clone()), reply);
            }
        };
        // Whoever asked may be gone.
        let _ = reply.send(result);
    }
}
