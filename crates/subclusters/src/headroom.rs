//! By how much each model may grow before its sub-cluster is too small.

use crate::need::{capacity, filled, wait_share};
use crate::problem::{Model, Problem};
use crate::solve::Subcluster;

/// Growth past this is not looked for.
const MOST: f64 = 100.0;

/// A model in its sub-cluster, by the estimate of needs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Place {
    /// The factor by which its rate may grow alone; below 1 where the estimate asks for more than there is.
    pub(crate) headroom: f64,
    /// The batch it is expected to fill.
    pub(crate) batch: u32,
    /// The devices it keeps busy.
    pub(crate) load: f64,
}

/// A sub-cluster of `count` devices, by the estimate of needs.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Outlook {
    /// Its longest batch, in milliseconds.
    pub(crate) rhythm_ms: f64,
    /// The share of what its devices carry that is taken.
    pub(crate) load_share: f64,
    /// In the order of its models.
    pub(crate) models: Vec<Place>,
}

pub(crate) fn outlook(problem: &Problem, subcluster: &Subcluster, count: u32) -> Outlook {
    let models: Vec<&Model> = subcluster.models.iter().map(|&model| &problem.models[model]).collect();
    let at = |model: &Model, rhythm_ms: f64, factor: f64| {
        let profile = model.profiles[subcluster.device].as_ref()?;
        filled(profile, model.rate_rps * factor, model.slo_ms, wait_share(count) * rhythm_ms, rhythm_ms)
    };
    let total = |rhythm_ms: f64| {
        models.iter().map(|model| Some(at(model, rhythm_ms, 1.0)?.load)).sum::<Option<f64>>()
    };
    // The rhythm at which least is taken. Where none suits all, the shortest that every model can keep at all.
    let candidates = rhythms(&models, subcluster.device);
    let best = candidates.iter().filter_map(|&rhythm| Some((total(rhythm)?, rhythm)));
    let (load, rhythm_ms) = best
        .min_by(|a, b| a.0.total_cmp(&b.0))
        .unwrap_or((f64::INFINITY, candidates.last().copied().unwrap_or(0.0)));
    let room = capacity(count) as f64 / 1e6;
    let place = |model: &&Model| {
        let now = at(model, rhythm_ms, 1.0);
        let fits = |factor: f64| {
            at(model, rhythm_ms, factor)
                .is_some_and(|grown| load - now.map_or(0.0, |now| now.load) + grown.load <= room)
        };
        let (mut low, mut high) = (0.0, MOST);
        for _ in 0..24 {
            let middle = (low + high) / 2.0;
            if fits(middle) { low = middle } else { high = middle }
        }
        Place { headroom: low, batch: now.map_or(1, |now| now.batch), load: now.map_or(0.0, |now| now.load) }
    };
    Outlook { rhythm_ms, load_share: load / room, models: models.iter().map(place).collect() }
}

/// The rhythms worth trying: a dozen steps from the longest single request to the longest batch.
fn rhythms(models: &[&Model], device: usize) -> Vec<f64> {
    let profiles =
        || models.iter().filter_map(|model| Some((model.slo_ms, model.profiles[device].as_ref()?)));
    let ms = |profile: &downbeat_profile::LatencyProfile, batch: u32| profile.latency(batch).as_millis_f64();
    let shortest = profiles().map(|(_, profile)| ms(profile, 1)).fold(1e-6, f64::max);
    let longest =
        profiles().map(|(slo, profile)| ms(profile, profile.max_batch()).min(slo)).fold(shortest, f64::max);
    (0..=16).map(|step| shortest * (longest / shortest).powf(f64::from(step) / 16.0)).collect()
}
