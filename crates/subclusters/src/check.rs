//! The checker: says what is wrong with a solution. It shares the formula of needs with the solvers, and none of their
//! sums.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use crate::need::{capacity, filled, wait_share};
use crate::problem::Problem;
use crate::solve::{Epoch, Solution, Subcluster};

/// Loads are summed as they are here, and rounded up in the solvers: this much may differ, in devices.
const TOLERANCE: f64 = 1e-6;

/// Checks that every model is in one sub-cluster, that each of these has the memory and the devices for its models, and
/// that no more models moved than may.
pub(crate) fn check(problem: &Problem, epoch: Epoch<'_>, solution: &Solution) -> Result<(), String> {
    let mut homes: BTreeMap<usize, &str> = BTreeMap::new();
    for subcluster in &solution.subclusters {
        for &model in &subcluster.models {
            if homes.insert(model, &subcluster.name).is_some() {
                return Err(format!("model {:?} is in two sub-clusters", problem.models[model].name));
            }
        }
        fits(problem, subcluster)?;
    }
    if let Some(missing) = (0..problem.models.len()).find(|model| !homes.contains_key(model)) {
        return Err(format!("model {:?} is in no sub-cluster", problem.models[missing].name));
    }
    let moved = |(model, now): (&usize, &&str)| {
        let name = &problem.models[*model].name;
        let mut old = epoch.previous.iter().flat_map(|previous| &previous.subclusters);
        old.any(|old| old.models.contains(name) && old.name != **now)
    };
    let moves = homes.iter().filter(|&(model, now)| moved((model, now))).count();
    if moves != solution.moved.len() || epoch.max_moves.is_some_and(|most| moves > most) {
        return Err(format!("{moves} models moved, {} are said to have", solution.moved.len()));
    }
    Ok(())
}

fn fits(problem: &Problem, subcluster: &Subcluster) -> Result<(), String> {
    let device = &problem.devices[subcluster.device];
    let models = || subcluster.models.iter().map(|&model| &problem.models[model]);
    let weights: f64 = models().map(|model| model.weights_mib).sum();
    let activation = models().map(|model| model.activation_mib).fold(0.0, f64::max);
    if weights + activation > device.memory_mib {
        return Err(format!("sub-cluster {:?} takes more memory than a device has", subcluster.name));
    }
    // Some rhythm must suit all: it is enough to try those at which somebody's batch grows.
    let share = wait_share(subcluster.count);
    let rhythms = models().flat_map(|model| {
        let profile = model.profiles[subcluster.device].as_ref();
        profile
            .into_iter()
            .flat_map(|profile| (1..=profile.max_batch()).map(|batch| profile.latency(batch).as_millis_f64()))
    });
    let mut rhythms: Vec<f64> = rhythms.collect();
    rhythms.sort_by(f64::total_cmp);
    rhythms.dedup();
    let suits = |&rhythm: &f64| {
        let load = |model: &crate::problem::Model| {
            let profile = model.profiles[subcluster.device].as_ref()?;
            Some(filled(profile, model.rate_rps, model.slo_ms, share * rhythm, rhythm)?.load)
        };
        let load: Option<f64> = models().map(load).sum();
        load.is_some_and(|load| load <= capacity(subcluster.count) as f64 / 1e6 + TOLERANCE)
    };
    if rhythms.iter().any(suits) {
        Ok(())
    } else {
        Err(format!("sub-cluster {:?} has too few devices", subcluster.name))
    }
}
