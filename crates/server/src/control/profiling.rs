//! How the control task learns how long models take.

use std::collections::BTreeMap;

use downbeat_profile::{Beyond, DeviceClass, LatencyProfile, Span};
use downbeat_sched::ClassId;

use super::Control;
use super::cast::{Instance, Phase, Staff};
use crate::dispatch::{Command, InstanceId};
use crate::link::message::{FromServer, Measure};
use crate::link::{Measurement, WorkerId};
use crate::profiles::ProfileKey;

/// How an emulated model behaves that says nothing about it: l(b) = alpha * b + beta.
const EMULATED_ALPHA_MS: f64 = 1.0;
const EMULATED_BETA_MS: f64 = 5.0;

/// The fraction of the tightest objective for which the models of a device can do without it while another is measured.
const AWAY_MAX: u64 = 4;

/// How long an emulated model takes, and how that is known.
pub(super) struct Emulated {
    pub(super) profile: LatencyProfile,
    /// Whether nobody has said so.
    made_up: bool,
}

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
        let name = &self.pools[class.0 as usize].class;
        let emulated = staff.worker.devices.first().is_some_and(|device| device.emulated);
        if emulated {
            return self.emulate(id, class);
        }
        match self.profiles.find(&self.key(instance, name)) {
            Some(profile) => self.use_profile(id, class, profile),
            None => self.measure(id, class, worker),
        }
    }

    /// Takes the profile of a model on emulated devices. One that is made up is announced; and where profiles were
    /// given for the class, a model that is missing there is missing by mistake.
    fn emulate(&mut self, id: InstanceId, class: ClassId) {
        let name = &self.pools[class.0 as usize].class;
        let Some(instance) = self.instances.get(&id) else { return };
        let model = instance.definition.name.clone();
        let Some(emulated) = self.emulated_profile(instance, name) else { return };
        if emulated.made_up && self.profiles.are_given_for(name) {
            let trouble = format!(
                "the profiles that were given have rows for the class {name}, but none for {model:?} on it; add them, or \
                 set the parameters alpha_ms and beta_ms in config.pbtxt"
            );
            if let Some(instance) = self.instances.get_mut(&id) {
                instance.troubles.insert(class, trouble);
            }
            return;
        }
        if emulated.made_up {
            tracing::warn!(
                model,
                "nothing says how long it takes on the class {name}: taken for {EMULATED_ALPHA_MS} ms a row and \
                 {EMULATED_BETA_MS} ms a batch, which is made up; give --profile with that class, or set the parameters \
                 alpha_ms and beta_ms"
            );
        }
        self.use_profile(id, class, emulated.profile);
    }

    /// Has a worker measure a model. Until it has, its devices take no batches, which would disturb the measurement and
    /// be disturbed by it; unless there is no other worker to run them.
    fn measure(&mut self, id: InstanceId, class: ClassId, worker: WorkerId) {
        let joined =
            |(other, staff): (&WorkerId, &Staff)| *other != worker && staff.joined && staff.class == class;
        let others = self.workers.iter().any(joined);
        let (Some(instance), Some(staff)) = (self.instances.get_mut(&id), self.workers.get_mut(&worker))
        else {
            return;
        };
        let (model, of) = (&instance.definition.name, &self.pools[class.0 as usize].class);
        let open_size = self.settings.open_size;
        let open = if instance.definition.has_open_shapes() {
            format!(", with {open_size} for every dimension that is open (--open-size)")
        } else {
            String::new()
        };
        tracing::info!(model, "no profile for the class {of}: measuring on {}{open}", staff.worker.name);
        instance.measuring.insert(class, worker);
        if others && std::mem::take(&mut staff.joined) {
            for device in &staff.worker.devices {
                self.runtime.send(Command::DeviceLeft { gpu: device.gpu, settled: None });
            }
        }
        let latency_max_ns = instance.slo.as_nanos();
        let run_max_ns = self.away_max(class).unwrap_or_default().as_nanos();
        if let Some(staff) = self.workers.get(&worker) {
            let measure = Measure { instance: id.0, latency_max_ns, run_max_ns, open_size };
            staff.worker.tell(FromServer::Measure(measure));
        }
    }

    /// How long the models that are served on a class can do without one of its devices; `None` where there are none.
    fn away_max(&self, class: ClassId) -> Option<Span> {
        let served = |it: &&Instance| it.phase == Phase::Ready && it.profiles.contains_key(&class);
        let tightest = self.instances.values().filter(served).map(|it| it.slo).min()?;
        Some(Span::from_nanos((tightest.as_nanos() / AWAY_MAX).max(1)))
    }

    pub(super) fn measured(&mut self, worker: WorkerId, id: InstanceId, result: Result<Measurement, String>) {
        let (Some(instance), Some(staff)) = (self.instances.get_mut(&id), self.workers.get(&worker)) else {
            return self.settle_workers();
        };
        let class = staff.class;
        instance.measuring.remove(&class);
        let max_batch = instance.definition.max_batch.max(1);
        let profile = result.and_then(|Measurement { points, curtailed }| {
            let points: Vec<(u32, f64)> =
                points.iter().map(|point| (point.batch, point.latency_ms)).collect();
            let profile = LatencyProfile::from_points(&points, max_batch, Beyond::Extrapolate);
            profile.map(|profile| (profile, points, curtailed)).map_err(|error| error.to_string())
        });
        match profile {
            Ok((profile, points, true)) => {
                let (model, measured) = (&instance.definition.name, points.last().map_or(0, |point| point.0));
                tracing::info!(
                    model,
                    "measured up to batches of {measured} only, not to hold up the other models; larger ones are predicted, \
                     and the profile is not kept: `downbeat profile` measures all"
                );
                self.use_profile(id, class, profile);
            }
            Ok((profile, points, false)) => {
                let Some(instance) = self.instances.get(&id) else { return };
                let key = self.key(instance, &self.pools[class.0 as usize].class);
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
            open_size: instance.definition.has_open_shapes().then_some(self.settings.open_size),
        }
    }

    /// How long a model takes on an emulated device: as a profile says, else as its configuration does, else as any.
    pub(super) fn emulated_profile(&self, instance: &Instance, class: &DeviceClass) -> Option<Emulated> {
        let parameter = |key: &str| {
            let value = instance.definition.parameter(key)?;
            value.parse::<f64>().ok().filter(|value| *value >= 0.0)
        };
        if let Some(profile) = self.profiles.find(&self.key(instance, class)) {
            return Some(Emulated { profile, made_up: false });
        }
        let (alpha, beta) = (parameter("alpha_ms"), parameter("beta_ms"));
        let profile = LatencyProfile::linear(
            alpha.unwrap_or(EMULATED_ALPHA_MS),
            beta.unwrap_or(EMULATED_BETA_MS),
            instance.definition.max_batch.max(1),
        );
        Some(Emulated { profile: profile.ok()?, made_up: alpha.is_none() && beta.is_none() })
    }
}
