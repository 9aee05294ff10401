use std::collections::BTreeSet;

use downbeat_milp::Backend;

use super::*;
use crate::plan::Plan;
use crate::solver::Solver;
use crate::solvers::Auto;
use crate::testing::{Table, problem_of, run_by};

fn planned(tables: &[Table], from: Option<&Plan>) -> (Problem, Plan) {
    let mut problem = problem_of(tables);
    problem.pools[0].gpus_per_node = 2;
    let backend = Backend::microlp();
    let solved = Auto.solve(&problem, &run_by(&backend)).unwrap();
    let layout = layout(&problem, &solved.allocation, from.map(|from| &from.layout[..]));
    let plan = Plan::new(&problem, &solved.allocation, solved.bound, "auto", layout, Vec::new());
    (problem, plan)
}

/// Serves a slice's worth on each of five slices.
fn even(demand: f64) -> Table {
    (demand, [1.0, 2.0, 3.0, 4.0, 7.0].map(|rate| Some([rate, 2.0 * rate, 3.0 * rate])).to_vec())
}

/// Runs on 1g only.
fn small(demand: f64) -> Table {
    (demand, vec![Some([1.0, 2.0, 3.0]), None, None, None, None])
}

#[test]
fn every_gpu_is_cut_as_the_rule_of_placement_allows() {
    let (problem, plan) = planned(&[even(20.0), even(9.5), small(5.0)], None);
    for gpu in &plan.layout {
        let model = &problem.pools[0].gpu;
        let placed: Vec<_> = gpu
            .instances
            .iter()
            .map(|instance| downbeat_mig::Placed {
                start: instance.start,
                profile: model.profile(&instance.profile).unwrap(),
            })
            .collect();
        assert!(model.allows(&placed), "{gpu:?}");
    }
}

#[test]
fn instances_of_a_service_are_spread_over_gpus_and_nodes() {
    // Four services of seven small slices each fill four GPUs on two nodes: each service is on all of them.
    let (_, plan) = planned(&[small(7.0), small(7.0), small(7.0), small(7.0)], None);
    assert_eq!(plan.layout.len(), 4);
    for service in ["s0", "s1", "s2", "s3"] {
        let on: BTreeSet<u32> = plan
            .layout
            .iter()
            .filter(|gpu| gpu.instances.iter().any(|i| i.service == service))
            .map(|gpu| gpu.gpu)
            .collect();
        assert_eq!(on.len(), 4, "{service} is on {on:?}");
    }
    let two = planned(&[small(2.0), small(12.0), small(14.0)], None).1;
    let nodes: BTreeSet<u32> = two
        .layout
        .iter()
        .filter(|gpu| gpu.instances.iter().any(|i| i.service == "s0"))
        .map(|gpu| gpu.node)
        .collect();
    assert_eq!(nodes.len(), 2, "two instances are on two nodes");
}

/// Runs on slices of 3g and 4g only.
fn halves(demand: f64) -> Table {
    (demand, vec![None, None, Some([1.0, 2.0, 3.0]), Some([1.01, 2.02, 3.03]), None])
}

#[test]
fn gpus_that_are_cut_alike_are_on_different_nodes_and_a_service_is_not_twice_on_one() {
    // Six GPUs on three nodes, each with a 3g and a 4g slice: each service has both kinds of slices, and a node holds a
    // third of it.
    let (_, plan) = planned(&[halves(3.0), halves(3.0), halves(6.0)], None);
    assert_eq!(plan.layout.len(), 6);
    for (service, instances) in [("s0", 3), ("s1", 3), ("s2", 6)] {
        let of_service = |gpu: &&GpuLayout| gpu.instances.iter().filter(|i| i.service == service).count();
        assert!(plan.layout.iter().all(|gpu| of_service(&gpu) <= 1), "{service} twice on a GPU: {plan:?}");
        for node in 0..3 {
            let here: usize =
                plan.layout.iter().filter(|gpu| gpu.node == node).map(|gpu| of_service(&gpu)).sum();
            assert_eq!(here, instances / 3, "{service} on node {node}: {plan:?}");
        }
    }
}

#[test]
fn gpus_that_can_stay_as_they_are_stay() {
    let (_, before) = planned(&[small(21.0), small(14.0)], None);
    let (_, same) = planned(&[small(21.0), small(14.0)], Some(&before));
    assert_eq!(same.layout, before.layout);
    let (_, more) = planned(&[small(21.0), small(21.0)], Some(&before));
    let untouched = more.layout.iter().filter(|gpu| before.layout.contains(gpu)).count();
    assert_eq!(untouched, before.layout.len(), "one GPU is added, none is touched");
    assert_eq!(more.layout.len(), before.layout.len() + 1);
}
