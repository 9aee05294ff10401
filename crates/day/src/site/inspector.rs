//! Watches a change while it is carried out: it knows the steps as they are written and the GPUs' tables, and nothing
//! of how they were planned.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use downbeat_epochs::Undertaking;
use downbeat_mig::{Catalogue, GpuModel, Placed};
use downbeat_transition::{Instance, Layout, Slice, Step, StepKind};

/// Requests per second that are less than a rounding error.
const ROUNDING: f64 = 1e-6;

/// What there is at one moment of a change.
#[derive(Clone, Debug)]
pub(super) struct Inspector {
    models: BTreeMap<u32, GpuModel>,
    slices: Vec<(u32, Slice)>,
    instances: Vec<(u32, Instance, Life)>,
    /// What an instance serves, by service, GPU type and profile: the lower of the two layouts' figures.
    rates: BTreeMap<[String; 3], f64>,
    /// What each service must have; nothing once a GPU has failed.
    floors: BTreeMap<String, f64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Life {
    Starting,
    Serving,
    Stopping,
}

impl Inspector {
    /// `to` is the layout that was planned: what its instances are counted to serve counts, where that is less.
    pub(super) fn new(
        catalogue: &Catalogue,
        from: &Layout,
        to: &Layout,
        undertaking: &Undertaking,
    ) -> Inspector {
        let target = undertaking.target();
        let steps = &undertaking.transition().steps;
        let mut inspector = Inspector {
            models: BTreeMap::new(),
            slices: Vec::new(),
            instances: Vec::new(),
            rates: BTreeMap::new(),
            floors: BTreeMap::new(),
        };
        let gpus = from.gpus.iter().chain(&target.gpus).map(|gpu| (gpu.gpu, &gpu.gpu_type));
        for (gpu, name) in gpus.chain(steps.iter().map(|step| (step.gpu, &step.gpu_type))) {
            if let Ok(model) = catalogue.find(name) {
                inspector.models.insert(gpu, model.clone());
            }
        }
        for gpu in &from.gpus {
            inspector.slices.extend(gpu.idle.iter().map(|slice| (gpu.gpu, slice.clone())));
            for instance in &gpu.instances {
                inspector.slices.push((gpu.gpu, instance.slice()));
                inspector.instances.push((gpu.gpu, instance.clone(), Life::Serving));
            }
        }
        for gpu in from.gpus.iter().chain(&to.gpus) {
            for instance in gpu.instances.iter().filter(|instance| instance.throughput_rps > 0.0) {
                let key = inspector.key(gpu.gpu, instance);
                let rate = inspector.rates.entry(key).or_insert(f64::INFINITY);
                *rate = rate.min(instance.throughput_rps);
            }
        }
        let [old, new] = [from, &target].map(|layout| inspector.totals(layout));
        for (service, old) in old {
            let new = new.get(&service).copied().unwrap_or(0.0);
            inspector.floors.insert(service, old.min(new));
        }
        inspector
    }

    /// A GPU has failed: what services have is no longer promised, how GPUs are cut still is.
    pub(super) fn gives_up(&mut self) {
        self.floors.clear();
    }

    /// A step begins; what is wrong then.
    pub(super) fn begin(&mut self, step: &Step) -> Option<String> {
        if matches!(step.kind, StepKind::Create | StepKind::Repartition) {
            self.remove(step.gpu, &step.removes);
        }
        if matches!(step.kind, StepKind::Create | StepKind::Migrate) {
            self.slices.extend(step.makes.iter().map(|slice| (step.gpu, slice.clone())));
            self.instances.extend(step.instance.iter().map(|new| (step.gpu, new.clone(), Life::Starting)));
        }
        if let (StepKind::Delete, Some(instance)) = (step.kind, &step.instance) {
            self.set(step.gpu, instance.start, Life::Stopping);
        }
        self.fault().map(|fault| format!("when step {} begins: {fault}", step.id))
    }

    /// A step ends; what is wrong then.
    pub(super) fn end(&mut self, step: &Step) -> Option<String> {
        match (step.kind, &step.instance) {
            (StepKind::Repartition, _) => {
                self.slices.extend(step.makes.iter().map(|slice| (step.gpu, slice.clone())));
            }
            (StepKind::Delete, Some(instance)) => {
                self.instances.retain(|(gpu, there, _)| (*gpu, there.start) != (step.gpu, instance.start));
                self.remove(step.gpu, &step.removes);
            }
            (_, Some(instance)) => self.set(step.gpu, instance.start, Life::Serving),
            _ => {}
        }
        if let Some(from) = step.from.as_ref().filter(|_| step.kind == StepKind::Migrate) {
            self.instances.retain(|(gpu, there, _)| (*gpu, there.start) != (from.gpu, from.start));
            self.remove(from.gpu, &step.removes);
        }
        self.fault().map(|fault| format!("when step {} ends: {fault}", step.id))
    }

    /// What is wrong now, if anything is.
    fn fault(&self) -> Option<String> {
        for (gpu, model) in &self.models {
            let own = self.slices.iter().filter(|(on, _)| on == gpu);
            let placed: Option<Vec<Placed>> = own
                .map(|(_, slice)| {
                    Some(Placed { start: slice.start, profile: model.profile(&slice.profile)? })
                })
                .collect();
            if !placed.is_some_and(|placed| model.allows(&placed)) {
                return Some(format!("GPU {gpu} is cut as it must not be"));
            }
        }
        for (index, (gpu, instance, _)) in self.instances.iter().enumerate() {
            if !self.slices.contains(&(*gpu, instance.slice())) {
                return Some(format!("{} on GPU {gpu} has no slice", instance.service));
            }
            let shares = |(on, other, _): &(u32, Instance, Life)| on == gpu && other.start == instance.start;
            if self.instances[..index].iter().any(shares) {
                return Some(format!("two instances share a slice of GPU {gpu}"));
            }
        }
        self.floors.iter().find_map(|(service, floor)| {
            let own = self.instances.iter().filter(|(_, there, life)| {
                there.service == *service && *life == Life::Serving && there.throughput_rps > 0.0
            });
            let rps: f64 = own.map(|(gpu, there, _)| self.rate(*gpu, there)).sum();
            (rps < floor - ROUNDING)
                .then(|| format!("{service} has {rps:.3} of {floor:.3} requests per second"))
        })
    }

    fn totals(&self, layout: &Layout) -> BTreeMap<String, f64> {
        let mut totals = BTreeMap::new();
        for gpu in &layout.gpus {
            for instance in gpu.instances.iter().filter(|instance| instance.throughput_rps > 0.0) {
                *totals.entry(instance.service.clone()).or_insert(0.0) += self.rate(gpu.gpu, instance);
            }
        }
        totals
    }

    fn rate(&self, gpu: u32, instance: &Instance) -> f64 {
        self.rates.get(&self.key(gpu, instance)).copied().unwrap_or(0.0)
    }

    fn key(&self, gpu: u32, instance: &Instance) -> [String; 3] {
        let model = self.models.get(&gpu).map_or_else(String::new, |model| model.name.clone());
        [instance.service.clone(), model, instance.profile.clone()]
    }

    fn set(&mut self, gpu: u32, start: u8, life: Life) {
        for (on, instance, now) in &mut self.instances {
            if (*on, instance.start) == (gpu, start) {
                *now = life;
            }
        }
    }

    fn remove(&mut self, gpu: u32, slices: &[Slice]) {
        self.slices.retain(|(on, slice)| *on != gpu || !slices.contains(slice));
    }
}
