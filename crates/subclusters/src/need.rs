//! How many devices a set of models needs: an estimate that is quick enough to be asked millions of times.
//!
//! A sub-cluster of `n` devices has a *rhythm*: how long its longest batch runs. A request that finds all devices busy
//! waits for one of them; the longer the rhythm and the fewer the devices, the longer. So at a given size and rhythm
//! each model has
//!
//! ```text
//!   wait   = rhythm * max(0, 1 - 0.01^(1/n) / 0.7)      99 of 100 requests find a device within it
//!   batch  = the largest b with l(b) <= rhythm and (b - 1) / rate + l(b) + wait <= SLO
//!   load   = rate * l(b) / b at the best b up to that   the devices it keeps busy
//! ```
//!
//! and a set of models fits where its loads sum to at most what `n` devices carry, `0.97 n - 0.09`, at *some* rhythm.
//! That is the trade-off in one formula: many models on few devices collide (the wait), one model alone cannot fill its
//! last device (the rounding), long batches and short objectives do not go together (no rhythm suits both). It is
//! linear in the models at each size and rhythm, which is what the bound and the exact solver live on.
//!
//! The wait is the 99th percentile of the shortest of `n` remainders of batches, each device being busy with one for
//! 0.7 of the time; the 0.7 and the two numbers of [`capacity`] were fitted to simulated goodput of random sets
//! (`docs/subclusters.md`). The estimate errs: whoever acts on it confirms it by simulation.

#[cfg(test)]
mod tests;

use std::cmp::Reverse;
use std::ops::Range;

use downbeat_profile::{LatencyProfile, Span};

use crate::problem::{Model, Problem};

/// A load that fits nowhere: the model cannot meet its objective at that size and rhythm.
pub(crate) const BLOCKED: u64 = 1 << 44;

/// Loads are counted in millionths of a device, rounded up: sums do not depend on their order.
const PER_DEVICE: f64 = 1e6;

/// From this size on, a device is free soon enough whatever the rhythm.
pub(crate) const CALM: u32 = 13;

/// How much longer each rhythm is than the one before.
const RHYTHM_STEP: f64 = 1.35;

/// The most rhythms that are told apart.
const MOST_RHYTHMS: usize = 14;

/// How much of the rhythm a request waits, at most, for one of `count` devices, in 99 of 100 cases.
pub(crate) fn wait_share(count: u32) -> f64 {
    (1.0 - 0.01f64.powf(1.0 / f64::from(count.max(1))) / 0.7).max(0.0)
}

/// What `count` devices carry, in millionths of a device.
pub(crate) fn capacity(count: u32) -> u64 {
    ((0.97 * f64::from(count) - 0.09).max(0.0) * PER_DEVICE) as u64
}

/// The largest batch that a model can fill and finish in time, after a wait, and what that costs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Filled {
    pub(crate) batch: u32,
    /// The devices it keeps busy.
    pub(crate) load: f64,
}

/// The batches of a model at a rate; `None` where it cannot meet its objective.
pub(crate) fn filled(
    profile: &LatencyProfile,
    rate_rps: f64,
    slo_ms: f64,
    wait_ms: f64,
    rhythm_ms: f64,
) -> Option<Filled> {
    let mut best: Option<Filled> = None;
    for batch in 1..=profile.max_batch() {
        let takes_ms = profile.latency(batch).as_millis_f64();
        let fill_ms = f64::from(batch - 1) / rate_rps * 1e3;
        // A nanosecond of grace: times are rounded to it.
        if takes_ms > rhythm_ms + 1e-6 || fill_ms + takes_ms + wait_ms > slo_ms + 1e-6 {
            break;
        }
        let load = rate_rps * takes_ms / 1e3 / f64::from(batch);
        if best.is_none_or(|best| load <= best.load) {
            best = Some(Filled { batch, load });
        }
    }
    best
}

/// What a set of models can be run on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Choice {
    /// The kind of device, by its index in the problem.
    pub(crate) device: usize,
    /// How many.
    pub(crate) count: u32,
    /// What they cost, in units.
    pub(crate) cost: u64,
    /// What they carry beyond the load, in millionths of a device.
    pub(crate) slack: u64,
    /// The rhythm, by its index; the last one where the size makes it unimportant.
    pub(crate) rhythm: usize,
}

/// A kind of sub-cluster: so many of a device, at a rhythm.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Kind {
    pub(crate) device: usize,
    pub(crate) count: u32,
    pub(crate) rhythm: usize,
}

/// The loads of all models in all kinds of sub-clusters.
#[derive(Clone, Debug)]
pub(crate) struct Needs {
    /// Up to [`CALM`] devices, every kind; the last kinds of a device stand for larger sizes, too.
    pub(crate) kinds: Vec<Kind>,
    /// By model and kind.
    loads: Vec<u64>,
    pub(crate) memory: Vec<Memory>,
    /// By device.
    pub(crate) room_kib: Vec<u64>,
    pub(crate) units: Vec<u64>,
    /// By device and size, from 1 to [`CALM`]: its kinds.
    sizes: Vec<Vec<Range<usize>>>,
}

/// The memory of a model, in KiB, rounded up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Memory {
    pub(crate) weights: u64,
    pub(crate) activation: u64,
}

fn kib(mib: f64) -> u64 {
    (mib * 1024.0).ceil() as u64
}

impl Needs {
    pub(crate) fn of(problem: &Problem) -> Needs {
        let rhythms_ms = rhythms(&problem.models);
        let mut kinds = Vec::new();
        for device in 0..problem.devices.len() {
            for count in 1..=CALM {
                // Where nobody waits, the longest rhythm is as good as any.
                let from = if wait_share(count) > 0.0 { 0 } else { rhythms_ms.len() - 1 };
                kinds.extend((from..rhythms_ms.len()).map(|rhythm| Kind { device, count, rhythm }));
            }
        }
        let load = |model: &Model, kind: &Kind| {
            let Some(profile) = &model.profiles[kind.device] else { return BLOCKED };
            let rhythm_ms = rhythms_ms[kind.rhythm];
            let wait_ms = wait_share(kind.count) * rhythm_ms;
            filled(profile, model.rate_rps, model.slo_ms, wait_ms, rhythm_ms)
                .map_or(BLOCKED, |filled| ((filled.load * PER_DEVICE).ceil() as u64).min(BLOCKED))
        };
        let loads = problem.models.iter().flat_map(|model| kinds.iter().map(move |kind| load(model, kind)));
        let memory =
            |model: &Model| Memory { weights: kib(model.weights_mib), activation: kib(model.activation_mib) };
        let mut needs = Needs {
            loads: loads.collect(),
            memory: problem.models.iter().map(memory).collect(),
            room_kib: problem.devices.iter().map(|device| (device.memory_mib * 1024.0) as u64).collect(),
            units: problem.devices.iter().map(|device| u64::from(device.units)).collect(),
            kinds,
            sizes: Vec::new(),
        };
        needs.drop_dominated();
        needs
    }

    /// Forgets rhythms at which no model does better than at another one of the same size.
    fn drop_dominated(&mut self) {
        let models = self.memory.len();
        let load = |model: usize, kind: usize| self.loads[model * self.kinds.len() + kind];
        let mut keep = vec![true; self.kinds.len()];
        for kind in 0..self.kinds.len() {
            let alike = |other: usize| {
                let (a, b) = (self.kinds[kind], self.kinds[other]);
                (a.device, a.count) == (b.device, b.count) && a.rhythm != b.rhythm
            };
            let no_worse = |other: usize| (0..models).all(|model| load(model, other) <= load(model, kind));
            // Of two that are the same, the longer rhythm stays.
            let equal_and_first = |other: usize| {
                self.kinds[kind].rhythm < self.kinds[other].rhythm
                    || (0..models).any(|model| load(model, other) < load(model, kind))
            };
            keep[kind] = !(0..self.kinds.len())
                .any(|other| keep[other] && alike(other) && no_worse(other) && equal_and_first(other));
        }
        let kept: Vec<usize> = (0..keep.len()).filter(|&kind| keep[kind]).collect();
        self.loads = (0..models)
            .flat_map(|model| kept.iter().map(move |&kind| (model, kind)))
            .map(|(m, k)| load(m, k))
            .collect();
        self.kinds = kept.iter().map(|&kind| self.kinds[kind]).collect();
        let first_of = |device: usize, count: u32| {
            self.kinds.partition_point(|kind| (kind.device, kind.count) < (device, count))
        };
        let of_device = |device: usize| {
            (1..=CALM).map(|count| first_of(device, count)..first_of(device, count + 1)).collect()
        };
        self.sizes = (0..self.units.len()).map(of_device).collect();
    }

    /// How many models there are.
    pub(crate) fn models(&self) -> usize {
        self.memory.len()
    }

    /// A model's loads, by kind.
    pub(crate) fn loads(&self, model: usize) -> &[u64] {
        &self.loads[model * self.kinds.len()..][..self.kinds.len()]
    }

    /// The cheapest devices for a set with these loads by kind; of equally cheap ones those with the most to spare.
    /// `None` where none will do. `least` says how many of each device a part of the set needs, and is told how many
    /// the set does.
    pub(crate) fn choose(
        &self,
        load: impl Fn(usize) -> u64,
        weights: u64,
        activation: u64,
        least: &mut [u32],
    ) -> Option<Choice> {
        let mut best: Option<Choice> = None;
        for (device, least) in least.iter_mut().enumerate() {
            if weights + activation > self.room_kib[device] {
                continue;
            }
            if let Some(choice) = self.choose_on(device, *least, &load) {
                *least = choice.count;
                let better =
                    |best: &Choice| (choice.cost, Reverse(choice.slack)) < (best.cost, Reverse(best.slack));
                if best.as_ref().is_none_or(better) {
                    best = Some(choice);
                }
            }
        }
        best
    }

    /// The fewest of a device, and not fewer than `least`.
    fn choose_on(&self, device: usize, least: u32, load: impl Fn(usize) -> u64) -> Option<Choice> {
        let sizes = &self.sizes[device];
        for count in least.clamp(1, CALM)..=CALM {
            let carried = capacity(count);
            let fitting = sizes[count as usize - 1].clone().filter_map(|kind| {
                let slack = carried.checked_sub(load(kind))?;
                Some((slack, self.kinds[kind].rhythm))
            });
            if let Some((slack, rhythm)) = fitting.max()
                && count >= least
            {
                let cost = u64::from(count) * self.units[device];
                return Some(Choice { device, count, cost, slack, rhythm });
            }
        }
        // Larger than any kind: the load no longer depends on the size.
        let last = sizes[CALM as usize - 1].end.checked_sub(1)?;
        let load = load(last);
        if load >= BLOCKED {
            return None;
        }
        let mut count = (((load as f64 / PER_DEVICE) + 0.09) / 0.97).floor().max(f64::from(least)) as u32;
        while capacity(count) < load {
            count += 1;
        }
        let cost = u64::from(count) * self.units[device];
        Some(Choice { device, count, cost, slack: capacity(count) - load, rhythm: self.kinds[last].rhythm })
    }

    /// The cheapest devices for these models.
    pub(crate) fn of_set(&self, models: &[usize]) -> Option<Choice> {
        let weights = models.iter().map(|&model| self.memory[model].weights).sum();
        let activation = models.iter().map(|&model| self.memory[model].activation).max().unwrap_or(0);
        let load = |kind: usize| models.iter().map(|&model| self.loads(model)[kind]).sum();
        self.choose(load, weights, activation, &mut vec![1; self.units.len()])
    }
}

/// The rhythms to choose from: from the shortest batch of all to the longest that is of use to anybody.
fn rhythms(models: &[Model]) -> Vec<f64> {
    let profiles =
        || models.iter().flat_map(|model| model.profiles.iter().flatten().map(move |p| (model, p)));
    let ms = |span: Span| span.as_millis_f64();
    let shortest = profiles().map(|(_, profile)| ms(profile.latency(1))).fold(f64::INFINITY, f64::min);
    let longest = profiles()
        .map(|(model, profile)| {
            ms(profile.latency(profile.max_batch())).min(model.slo_ms).max(ms(profile.latency(1)))
        })
        .fold(shortest, f64::max);
    let steps = ((longest / shortest).ln() / RHYTHM_STEP.ln()).ceil().max(0.0) as usize;
    let steps = steps.min(MOST_RHYTHMS - 1);
    let step = if steps == 0 { 1.0 } else { (longest / shortest).powf(1.0 / steps as f64) };
    let mut rhythms: Vec<f64> = (0..=steps).map(|power| shortest * step.powi(power as i32)).collect();
    if let Some(last) = rhythms.last_mut() {
        *last = longest;
    }
    rhythms
}
