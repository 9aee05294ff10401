//! Which models and devices there are.

use std::collections::BTreeMap;

use crate::{ClassId, Event, GpuId, ID_LIMIT, ModelId, ModelSpec};

/// The models and devices that there are, so that a shadow can start at any time.
#[derive(Clone, Debug, Default)]
pub(super) struct ClusterSnapshot {
    models: BTreeMap<ModelId, ModelSpec>,
    gpus: BTreeMap<GpuId, ClassId>,
}

impl ClusterSnapshot {
    /// Notes what an event says of them; `false` where it is of something else, or of a number that no scheduler takes.
    pub(super) fn note(&mut self, event: &Event) -> bool {
        match event {
            Event::ModelAdded { model, .. } if model.0 >= ID_LIMIT => return false,
            Event::ModelAdded { model, spec } => drop(self.models.insert(*model, spec.clone())),
            Event::ModelRemoved { model } => drop(self.models.remove(model)),
            Event::ProfileChanged { model, class, profile } => {
                if let Some(spec) = self.models.get_mut(model) {
                    spec.profiles.retain(|(of, _)| of != class);
                    spec.profiles.push((*class, profile.clone()));
                }
            }
            Event::GpuJoined { gpu, class } => drop(self.gpus.insert(*gpu, *class)),
            Event::GpuLeft { gpu } | Event::GpuFailed { gpu } => drop(self.gpus.remove(gpu)),
            Event::Arrived(_)
            | Event::Cancelled(_)
            | Event::BatchFinished { .. }
            | Event::ModelDraining { .. }
            | Event::GpuLate { .. }
            | Event::RuleChanged { .. }
            | Event::Timer => return false,
        }
        true
    }

    pub(super) fn has(&self, model: ModelId) -> bool {
        self.models.contains_key(&model)
    }

    /// What a scheduler is to be told that begins now.
    pub(super) fn introductions(&self) -> impl Iterator<Item = Event> {
        let models = self.models.iter().map(|(&model, spec)| Event::ModelAdded { model, spec: spec.clone() });
        let gpus = self.gpus.iter().map(|(&gpu, &class)| Event::GpuJoined { gpu, class });
        models.chain(gpus)
    }

    /// The models that run on a class.
    pub(super) fn models_on(&self, class: ClassId) -> impl Iterator<Item = ModelId> {
        let runs = move |spec: &ModelSpec| spec.profiles.iter().any(|(of, _)| *of == class);
        self.models.iter().filter(move |(_, spec)| runs(spec)).map(|(&model, _)| model)
    }

    /// The classes of which there is a device.
    pub(super) fn classes(&self) -> Vec<ClassId> {
        let mut classes: Vec<ClassId> = self.gpus.values().copied().collect();
        classes.sort_unstable();
        classes.dedup();
        classes
    }
}
