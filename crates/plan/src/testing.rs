//! Random problems for tests.

use std::sync::Arc;

use downbeat_mig::{Catalogue, Partitions};
use downbeat_profile::ProfileFile;
use proptest::prelude::*;

use crate::problem::{Configuration, Pool, Problem, Service, Slice};
use crate::rule::{Curve, Rule, Step};

/// A service: its demand, and what 1, 2 and 3 instances serve on each of five slices; nothing where it cannot run.
pub(crate) type Table = (f64, Vec<Option<[f64; 3]>>);

/// Services with throughputs roughly by size, some slices missing, some rules superlinear.
pub(crate) fn random_tables(services: usize, most_demand: f64) -> impl Strategy<Value = Vec<Table>> {
    let slice = (0.3f64..1.6, 0.0f64..1.0, 0u8..8)
        .prop_map(|(speed, bend, there)| (there > 0).then_some((speed, bend)));
    let service = (0.2f64..1.0, prop::collection::vec(slice, 5), any::<bool>());
    prop::collection::vec(service, services).prop_map(move |services| {
        let table = |(share, slices, bent): (f64, Vec<Option<(f64, f64)>>, bool)| {
            let sizes = [1.0, 2.0, 3.0, 4.0, 7.0];
            let capacities = |(size, slice): (f64, Option<(f64, f64)>)| {
                slice.map(|(speed, bend)| {
                    let rate = size * speed;
                    let bend = if bent { bend } else { 0.0 };
                    [rate * (1.0 - 0.4 * bend), 2.0 * rate * (1.0 - 0.2 * bend), 3.0 * rate]
                })
            };
            (share * most_demand, sizes.into_iter().zip(slices).map(capacities).collect())
        };
        services.into_iter().map(table).collect()
    })
}

/// The problem of these services on A100s.
pub(crate) fn problem_of(tables: &[Table]) -> Problem {
    let gpu = Arc::new(Catalogue::builtin().find("A100-40GB").unwrap().clone());
    let measured =
        Arc::new(ProfileFile::parse(b"model,slice,batch,latency_ms\nm,1g,1,1\n", "a100.csv").unwrap());
    let profiles = gpu.plain();
    let multisets = Partitions::of(&gpu, &profiles).maximal_multisets();
    let slices: Vec<Slice> = profiles.iter().map(|&profile| Slice { pool: 0, profile }).collect();
    let configuration = |multiset: Vec<u8>| Configuration {
        pool: 0,
        slices: slices.iter().map(|slice| u32::from(multiset[slice.profile])).collect(),
    };
    let service = |(index, (demand, _)): (usize, &Table)| Service {
        name: format!("s{index}"),
        model: "m".to_owned(),
        rate_rps: *demand,
        slo_ms: 10.0,
        min_replicas: 1,
        memory_mib: None,
        headroom: 1.0,
    };
    let curve = |capacities: &Option<[f64; 3]>| {
        let steps = capacities.as_ref()?.map(|capacity_rps| Step { capacity_rps, batch: 1 });
        let linear = (steps[2].capacity_rps / 3.0 - steps[0].capacity_rps).abs() < 1e-12;
        if linear { Some(Curve::linear(steps[0].capacity_rps, 1)) } else { Curve::from_steps(steps.to_vec()) }
    };
    Problem {
        name: "random".to_owned(),
        rule: Rule::Paper,
        configurations: multisets.into_iter().map(configuration).collect(),
        services: tables.iter().enumerate().map(service).collect(),
        curves: tables.iter().map(|(_, slices)| slices.iter().map(curve).collect()).collect(),
        pools: vec![Pool {
            gpu,
            count: None,
            cost: 1.0,
            gpus_per_node: 8,
            profiles,
            measured,
            device: "a100".to_owned(),
        }],
        slices,
        notes: Vec::new(),
    }
}

/// A run to the end, quietly.
pub(crate) fn run_by(backend: &downbeat_milp::Backend) -> crate::Run<'_> {
    crate::Run { stop: &|| false, on_progress: &|_| {}, backend, seed: 1 }
}

/// A second pool of GPUs that do the same, at another cost.
pub(crate) fn add_pool(problem: &mut Problem, cost: f64, count: Option<u32>) {
    let mut pool = problem.pools[0].clone();
    pool.count = count;
    pool.cost = cost;
    problem.pools.push(pool);
    let kinds = problem.slices.len();
    for index in 0..kinds {
        let mut slice = problem.slices[index];
        slice.pool = 1;
        problem.slices.push(slice);
    }
    let own = problem.configurations.clone();
    for configuration in &mut problem.configurations {
        configuration.slices.extend(vec![0; kinds]);
    }
    for mut configuration in own {
        configuration.pool = 1;
        configuration.slices = [vec![0; kinds], configuration.slices].concat();
        problem.configurations.push(configuration);
    }
    for curves in &mut problem.curves {
        curves.extend(curves.clone());
    }
}
