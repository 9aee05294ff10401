//! The replayer: do the steps keep the promise? It shares no code with the planner.
//!
//! It starts from the two layouts, the written steps and the GPUs' tables, and works everything out anew. The promise,
//! after every step and at every moment of every interleaving that the steps allow:
//! - each service's throughput is at least the lower of what it has before and after. An instance counts from the end of the step
//!   that creates it to the beginning of the one that deletes it;
//! - every GPU's slices are legal, and every instance runs in a slice of its own, from its beginning to its end;
//! - with mig-parted, nothing runs on a GPU whose slices are being changed.
//!
//! The steps are first played in their order (`machine`). For the interleavings, a step is two events, its beginning
//! and its end, and a moment is a set of events that holds everything its members wait for. The worst moment for a sum,
//! such as a service's throughput, is a *closure of largest weight*, which a largest flow finds (`closure`): exact,
//! however many interleavings there are. Where there are few, all are played too (`every`).

mod closure;
mod every;
mod interleavings;
mod machine;
mod precedence;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use downbeat_mig::{Catalogue, GpuModel};

use crate::layout::{Instance, Layout};
use crate::step::Transition;
use machine::Machine;
use precedence::Precedence;

/// Transitions of so many steps are also played moment by moment, unless there are too many; beyond, the analysis of
/// worst moments stands alone.
const STEPS_PLAYED: usize = 16;
const MOMENTS_MAX: usize = 3_000;

/// What is wrong with a transition, one sentence each; at least one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", .0.join("; "))]
pub struct Violations(pub Vec<String>);

/// Checks a transition between two layouts. For one that was renumbered, `to` is the [renumbered](crate::renumbered)
/// layout.
pub fn check(
    from: &Layout,
    to: &Layout,
    transition: &Transition,
    catalogue: &Catalogue,
) -> Result<(), Violations> {
    let one = |wrong: String| Violations(vec![wrong]);
    let ground = Ground::new(from, to, transition, catalogue).map_err(one)?;
    let precedence = Precedence::of(&transition.steps).map_err(one)?;
    let mut machine = Machine::new(&ground, from);
    for step in &transition.steps {
        let played = machine.begin(step).and_then(|()| machine.end(step));
        played.map_err(|wrong| one(format!("step {}: {wrong}", step.id)))?;
    }
    machine.is_at(to).map_err(one)?;
    interleavings::check(&ground, from, transition, &precedence)?;
    if transition.steps.len() > STEPS_PLAYED {
        return Ok(());
    }
    match every::play(&ground, from, transition, MOMENTS_MAX) {
        every::Outcome::AllFine(_) | every::Outcome::TooMany => Ok(()),
        every::Outcome::Wrong(wrong) => Err(one(wrong)),
    }
}

/// Plays every moment of every interleaving; how many there are, or `None` where they are more than `most`.
pub fn play_every_interleaving(
    from: &Layout,
    to: &Layout,
    transition: &Transition,
    catalogue: &Catalogue,
    most: usize,
) -> Result<Option<usize>, Violations> {
    let ground = Ground::new(from, to, transition, catalogue).map_err(|wrong| Violations(vec![wrong]))?;
    match every::play(&ground, from, transition, most) {
        every::Outcome::AllFine(moments) => Ok(Some(moments)),
        every::Outcome::TooMany => Ok(None),
        every::Outcome::Wrong(wrong) => Err(Violations(vec![wrong])),
    }
}

/// What does not change while steps are played.
struct Ground {
    models: BTreeMap<u32, GpuModel>,
    /// Requests per second of an instance in millionths, by service, model, GPU type and profile.
    rates: BTreeMap<[String; 4], i64>,
    floors: BTreeMap<String, i64>,
    mig_parted: bool,
}

impl Ground {
    fn new(
        from: &Layout,
        to: &Layout,
        transition: &Transition,
        catalogue: &Catalogue,
    ) -> Result<Ground, String> {
        let mut models = BTreeMap::new();
        let listed = from.gpus.iter().chain(&to.gpus).map(|gpu| (gpu.gpu, &gpu.gpu_type));
        for (number, name) in listed.chain(transition.spares.iter().map(|gpu| (gpu.gpu, &gpu.gpu_type))) {
            let model = catalogue.find(name).map_err(|error| error.to_string())?;
            models.insert(number, model.clone());
        }
        for spare in &transition.spares {
            if from.gpus.iter().chain(&to.gpus).any(|gpu| gpu.gpu == spare.gpu) {
                return Err(format!("GPU {} is no spare one: a layout has it", spare.gpu));
            }
        }
        let mut ground = Ground {
            models,
            rates: BTreeMap::new(),
            floors: BTreeMap::new(),
            mig_parted: transition.driver == crate::Driver::MigParted,
        };
        // Where the layouts count instances of a kind differently, the lower figure holds.
        for gpu in from.gpus.iter().chain(&to.gpus) {
            // One that serves nothing, because stopping it failed, says nothing about its siblings.
            for instance in gpu.instances.iter().filter(|instance| instance.throughput_rps > 0.0) {
                let rate = (instance.throughput_rps * 1e6).round() as i64;
                let key = ground.key(gpu.gpu, instance);
                let known = ground.rates.entry(key).or_insert(rate);
                *known = rate.min(*known);
            }
        }
        let (old, new) = (ground.totals(from), ground.totals(to));
        for (service, &old) in &old {
            let new = new.get(service).copied().unwrap_or(0);
            ground.floors.insert(service.clone(), old.min(new));
        }
        Ok(ground)
    }

    fn key(&self, gpu: u32, instance: &Instance) -> [String; 4] {
        let gpu_type = self.models.get(&gpu).map_or_else(String::new, |model| model.name.clone());
        [instance.service.clone(), instance.model.clone(), gpu_type, instance.profile.clone()]
    }

    /// What an instance serves; one that neither layout knows serves nothing.
    fn rate(&self, gpu: u32, instance: &Instance) -> i64 {
        if instance.throughput_rps == 0.0 {
            return 0;
        }
        self.rates.get(&self.key(gpu, instance)).copied().unwrap_or(0)
    }

    fn totals(&self, layout: &Layout) -> BTreeMap<String, i64> {
        let mut totals = BTreeMap::new();
        for gpu in &layout.gpus {
            for instance in &gpu.instances {
                *totals.entry(instance.service.clone()).or_insert(0) += self.rate(gpu.gpu, instance);
            }
        }
        totals
    }

    /// The profile's compute slices, size, starts and largest count.
    fn profile(&self, gpu: u32, name: &str) -> Result<&downbeat_mig::SliceProfile, String> {
        let model = self.models.get(&gpu).ok_or_else(|| format!("there is no GPU {gpu}"))?;
        let found = model.profiles.iter().find(|profile| profile.name == name);
        found.ok_or_else(|| format!("GPU {gpu} has no slice {name}"))
    }
}
