use std::collections::BTreeSet;

use downbeat_mig::{Catalogue, Partitions, Placed};
use rand::RngExt;

use super::*;
use crate::case::Comparison;
use crate::random::Random;

/// By GPU: its slices and what runs on them.
type Everything = Vec<(Vec<Placed>, Vec<Pod>)>;

/// Goes through every state that there is, one creation, deletion or cut at a time.
fn is_reachable(case: &Case, driver: Driver) -> bool {
    let all_cuts: Vec<Vec<Placed>> = {
        let profiles: Vec<usize> = (0..case.types[0].profiles.len()).collect();
        Partitions::of(&case.types[0], &profiles).states().to_vec()
    };
    let start: Everything = (case.gpus.iter())
        .map(|gpu| {
            let slices = gpu.old.iter().map(|&pod| case.placed(pod)).chain(gpu.idle.iter().copied());
            (slices.collect(), sorted(gpu.old.clone()))
        })
        .collect();
    let mut seen = BTreeSet::from([start.clone()]);
    let mut open = vec![start];
    while let Some(state) = open.pop() {
        let is_end =
            |(gpu, (_, pods)): (usize, &(Vec<Placed>, Vec<Pod>))| sorted(case.gpus[gpu].new.clone()) == *pods;
        if state.iter().enumerate().all(is_end) {
            return true;
        }
        for next in neighbours(case, driver, &all_cuts, &state) {
            if seen.insert(next.clone()) {
                open.push(next);
            }
        }
    }
    false
}

fn neighbours(case: &Case, driver: Driver, all_cuts: &[Vec<Placed>], state: &Everything) -> Vec<Everything> {
    let mut rates = vec![0; case.services.len()];
    for pod in state.iter().flat_map(|(_, pods)| pods) {
        rates[case.service(pod.kind)] += case.rate(pod.kind);
    }
    let mut found = Vec::new();
    for (gpu, (slices, pods)) in state.iter().enumerate() {
        let mut with = |slices: Vec<Placed>, pods: Vec<Pod>| {
            let mut next = state.clone();
            next[gpu] = (slices, sorted(pods));
            found.push(next);
        };
        let slices_of = |pods: &[Pod]| {
            match driver {
                Driver::Nvml => Vec::new(),
                Driver::MigParted => slices.clone(),
            }
            .into_iter()
            .chain(pods.iter().filter(|_| driver == Driver::Nvml).map(|&pod| case.placed(pod)))
            .collect::<Vec<_>>()
        };
        for (kind, known) in case.kinds.iter().enumerate() {
            for &start in &case.types[0].profiles[known.profile].starts {
                let pod = Pod { start, kind };
                let after = [&pods[..], &[pod]].concat();
                let placed: Vec<Placed> = after.iter().map(|&pod| case.placed(pod)).collect();
                let has_slice = driver == Driver::Nvml || slices.contains(&case.placed(pod));
                if has_slice && case.types[0].allows(&placed) {
                    with(slices_of(&after), after);
                }
            }
        }
        for pod in pods {
            let service = case.service(pod.kind);
            if rates[service] - case.rate(pod.kind) >= case.floors[service] {
                let after: Vec<Pod> = pods.iter().copied().filter(|other| other != pod).collect();
                with(slices_of(&after), after);
            }
        }
        if driver == Driver::MigParted && pods.is_empty() {
            all_cuts.iter().for_each(|cut| with(cut.clone(), Vec::new()));
        }
    }
    found
}

fn sorted(mut pods: Vec<Pod>) -> Vec<Pod> {
    pods.sort_unstable();
    pods
}

/// The search says that there is a way exactly where going through every state finds one.
#[test]
fn a_way_is_found_exactly_where_there_is_one() {
    let catalogue = Catalogue::builtin();
    let gpu = catalogue.find("A30").unwrap();
    let effort = Effort { visits: 100_000, states: 1_000_000, quick: 0 };
    let mut counts = [[0; 2]; 2];
    for seed in 0..40 {
        let mut random = Random::new(gpu, 2, seed);
        let gpus = random.rng.random_range(1..=2);
        let empty = [0.0, 0.3][seed as usize % 2];
        let from = random.layout(gpus, empty);
        let to = if seed % 3 == 0 { random.rearranged(&from) } else { random.layout(gpus, empty) };
        let comparison = Comparison { services_may_differ: true, ..Comparison::default() };
        let case = Case::new(&from, &to, &catalogue, comparison).unwrap();
        let spares = 2 - case.gpus.len().min(2);
        for (index, driver) in [Driver::Nvml, Driver::MigParted].into_iter().enumerate() {
            for spares in 0..=spares {
                let found = search(&case, driver, spares, effort);
                let mut with_spares = case.clone();
                for _ in 0..spares {
                    with_spares.add_spare(0);
                }
                let is_way = matches!(found, Searched::Way(_));
                assert!(is_way || matches!(found, Searched::Proof), "seed {seed} {driver:?}: no answer");
                assert_eq!(is_way, is_reachable(&with_spares, driver), "seed {seed} {driver:?} {spares}");
                counts[index][usize::from(is_way)] += 1;
            }
        }
    }
    assert!(counts.iter().flatten().all(|&count| count > 5), "both answers must come up: {counts:?}");
}
