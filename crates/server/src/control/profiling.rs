//! How the control task learns how long models take.

use std::collections::BTreeMap;

use downbeat_profile::{Beyond, DeviceClass, LatencyProfile};
use downbeat_sched::ClassId;

use super::Control;
use super::cast::{Instance, Phase, Staff};
use crate::dispatch::{Command, InstanceId};
use crate::link::WorkerId;
use crate::link::message::{FromServer, Measure, Point};
use crate::profiles::ProfileKey;

/// How an emulated model behaves that says nothing about it: l(b) = alpha * b + beta.
const EMULATED_ALPHA_MS: f64 = 1.0;
const EMULATED_BETA_MS: f64 = 5.0;

impl Control {
    /// Finds the profile of a model on every class that has loaded it, or has it measured.
    pub(super) fn find_profiles(&mut self, id: InstanceId) {
        let Some(instance) = self.instances.get(&id) else { return };
        if !instance.awaiting.is_empty() {
            return;
        }
        let missing = |class: &ClassId| {
            !instance.profiles.contains_key(class)
                && !instance.measuring.contains_key(class)
                && !instance.troubles.contains_key(class)
        };
        // One worker of each class.
        let mut loaded = BTreeMap::new();
        for worker in &instance.loaded {
            if let Some(class) = self.workers.get(worker).map(|staff| staff.class).filter(missing) {
                loaded.entry(class).or_insert(*worker);
            }
        }
        for (class, worker) in loaded {
            self.find_profile(id, class, worker);
        }
    }

    fn find_profile(&mut self, id: InstanceId, class: ClassId, worker: WorkerId) {
        let (Some(instance), Some(staff)) = (self.instances.get(&id), self.workers.get(&worker)) else {
            return;
        };
        let name = &self.classes[class.0 as usize];
        let emulated = staff.worker.devices.first().is_some_and(|device| device.emulated);
        let known = if emulated {
            self.emulated_profile(instance, name)
        } else {
            self.profiles.find(&self.key(instance, name))
        };
        match known {
            Some(profile) => self.use_profile(id, class, profile),
            // The worker could not load it.
            None if emulated => {}
            None => self.measure(id, class, worker),
        }
    }

    /// Has a worker measure a model. Until it has, its devices take no batches, which would disturb the measurement and be
    /// disturbed by it; unless there is no other worker to run them.
    fn measure(&mut self, id: InstanceId, class: ClassId, worker: WorkerId) {
        let joined =
            |(other, staff): (&WorkerId, &Staff)| *other != worker && staff.joined && staff.class == class;
        let others = self.workers.iter().any(joined);
        let (Some(instance), Some(staff)) = (self.instances.get_mut(&id), self.workers.get_mut(&worker))
        else {
            return;
        };
        let (model, of) = (&instance.definition.name, &self.classes[class.0 as usize]);
        tracing::info!(model, "no profile for the class {of}: measuring on {}", staff.worker.name);
        instance.measuring.insert(class, worker);
        if others && std::mem::take(&mut staff.joined) {
            for device in &staff.worker.devices {
                self.runtime.send(Command::DeviceLeft { gpu: device.gpu });
            }
        }
        staff
            .worker
            .tell(FromServer::Measure(Measure { instance: id.0, latency_max_ns: instance.slo.as_nanos() }));
    }

    pub(super) fn measured(&mut self, worker: WorkerId, id: InstanceId, result: Result<Vec<Point>, String>) {
        let (Some(instance), Some(staff)) = (self.instances.get_mut(&id), self.workers.get(&worker)) else {
            return self.settle_workers();
        };
        let class = staff.class;
        instance.measuring.remove(&class);
        let max_batch = instance.definition.max_batch.max(1);
        let profile = result.and_then(|points| {
            let points: Vec<(u32, f64)> =
                points.iter().map(|point| (point.batch, point.latency_ms)).collect();
            let profile = LatencyProfile::from_points(&points, max_batch, Beyond::Extrapolate);
            profile.map(|profile| (profile, points)).map_err(|error| error.to_string())
        });
        match profile {
            Ok((profile, points)) => {
                let Some(instance) = self.instances.get(&id) else { return };
                let key = self.key(instance, &self.classes[class.0 as usize]);
                match self.profiles.keep(&key, &points) {
                    Ok(Some(path)) => tracing::info!(model = key.model, "profile kept in {}", path.display()),
                    Ok(None) => {}
                    Err(error) => tracing::warn!(model = key.model, "the profile cannot be kept: {error}"),
                }
                self.use_profile(id, class, profile);
            }
            Err(trouble) => {
                let trouble = format!("it cannot be measured: {trouble}");
                instance.troubles.insert(class, trouble);
            }
        }
        self.advance_all();
    }

    fn use_profile(&mut self, id: InstanceId, class: ClassId, profile: LatencyProfile) {
        let Some(instance) = self.instances.get_mut(&id) else { return };
        instance.profiles.insert(class, profile.clone());
        if instance.phase == Phase::Ready {
            self.runtime.send(Command::Profile { instance: id, class, profile });
        }
    }

    fn key<'a>(&'a self, instance: &'a Instance, class: &'a DeviceClass) -> ProfileKey<'a> {
        ProfileKey {
            model: &instance.definition.name,
            max_batch: instance.definition.max_batch,
            file: instance.version.file.as_deref(),
            class,
            variant: &self.settings.variant,
        }
    }

    /// How long a model takes on an emulated device: as a profile says, else as its configuration does, else as any.
    pub(super) fn emulated_profile(
        &self,
        instance: &Instance,
        class: &DeviceClass,
    ) -> Option<LatencyProfile> {
        let max_batch = instance.definition.max_batch.max(1);
        let parameter = |key: &str| {
            let value = instance.definition.parameter(key)?;
            value.parse::<f64>().ok().filter(|value| *value >= 0.0)
        };
        let linear = || {
            let alpha = parameter("alpha_ms").unwrap_or(EMULATED_ALPHA_MS);
            let beta = parameter("beta_ms").unwrap_or(EMULATED_BETA_MS);
            LatencyProfile::linear(alpha, beta, max_batch).ok()
        };
        self.profiles.find(&self.key(instance, class)).or_else(linear)
    }
}
