use std::path::Path;

use downbeat_milp::Backend;
use downbeat_plan::solvers::Auto;

use super::*;
use crate::Goodput;

const PROFILES: &str =
    "model,slice,batch,latency_ms\na,1g,1,5\na,1g,8,20\na,3g,1,2\na,3g,8,8\na,7g,1,1\na,7g,8,4\n";

fn problem(rule: &str, services: &[(&str, f64, f64)]) -> Problem {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("h200.csv"), PROFILES).unwrap();
    let mut text = format!("gpu = \"H200\"\nprofiles = \"h200.csv\"\nrule = \"{rule}\"\n");
    for (name, rate, slo) in services {
        text +=
            &format!("[[service]]\nname = \"{name}\"\nmodel = \"a\"\nrate_rps = {rate}\nslo_ms = {slo}\n");
    }
    Problem::parse(&text, &folder.path().join("p.toml"), &Goodput::forgetful()).unwrap()
}

fn verified(problem: &Problem) -> VerifiedPlan {
    let backend = Backend::microlp();
    let run = Run { stop: &|| false, on_progress: &|_| {}, backend: &backend, seed: 1 };
    plan_verified(problem, &Auto, &run, None, &|| false).unwrap()
}

#[test]
fn plans_by_measured_goodput_pass_their_replay() {
    let verified = verified(&problem("measured", &[("x", 3000.0, 20.0), ("y", 700.0, 12.0)]));
    assert!(verified.replay.passed, "{:?}", verified.replay);
    assert!(Path::new(&verified.plan.layout[0].gpu_type).starts_with("H200-141GB"));
}

#[test]
fn the_papers_rule_promises_what_no_scheduler_keeps() {
    // Together they fill the smallest slices of one GPU.
    let services: Vec<(&str, f64, f64)> =
        ["a", "b", "c", "d", "e", "f", "g"].map(|name| (name, 395.0, 20.0)).into();
    let verified = verified(&problem("paper", &services));
    assert_eq!(verified.plan.gpus, 1);
    assert!(!verified.replay.passed, "a full batch that takes the whole SLO leaves no time to fill it");
    assert!(verified.plan.proved_optimal, "nothing was added: the plan is what was asked for");
}

/// What one whole GPU is counted to serve in the two tests below; the replay of just that much may fail by chance.
fn one_service(rate: f64, counted_rps: f64, count: Option<u32>) -> Problem {
    let mut problem = problem("measured", &[("x", rate, 20.0)]);
    problem.pools[0].count = count;
    for curve in &mut problem.curves[0] {
        *curve = None;
    }
    let whole = (0..problem.slices.len()).find(|&slice| problem.slice_name(slice).starts_with("7g")).unwrap();
    problem.curves[0][whole] = Some(downbeat_plan::Curve::linear(counted_rps, 8));
    problem
}

#[test]
fn a_plan_whose_headroom_does_not_fit_is_kept_and_says_what_would() {
    // A GPU serves at most 2,000: it is counted with what no scheduler keeps in time.
    let verified = verified(&one_service(2_100.0, 2_110.0, Some(1)));
    assert_eq!(verified.plan.gpus, 1);
    assert!(!verified.replay.passed);
    let note = verified.plan.notes.last().unwrap();
    assert!(note.contains("x ") && note.contains("H200-141GB has 1 GPUs, and 2 would do"), "{note}");
    assert!(verified.plan.proved_optimal, "the plan without headroom is as good as it was");
}

#[test]
fn a_plan_with_headroom_has_a_gap_or_a_proof() {
    let larger = verified(&one_service(2_100.0, 2_110.0, None));
    assert!(larger.replay.passed && larger.plan.gpus == 2, "{:?}", larger.replay);
    assert_eq!(larger.plan.lower_bound, 1.0);
    assert!(!larger.plan.proved_optimal && larger.plan.gap == 0.5, "{}", larger.plan.gap);
}

#[test]
fn requests_that_hardly_ever_come_are_replayed_all_the_same() {
    for rate in [1e-6, 1e-12] {
        let problem = problem("paper", &[("x", rate, 20.0)]);
        let verified = verified(&problem);
        assert!(verified.replay.passed, "{:?}", verified.replay);
        let slices = slices_of(&problem, &verified.plan, &problem.services[0]);
        assert!(!slices.is_empty());
    }
    // One that is always late is seen to be, however rare.
    let mut late = problem("paper", &[("x", 1e-12, 20.0)]);
    let plan = verified(&late).plan;
    late.services[0].slo_ms = 0.5;
    assert!(!verify(&late, &plan, 1, &|| false).unwrap().passed);
}

#[test]
fn an_interrupted_replay_says_what_was_not_replayed_and_claims_nothing() {
    let problem = problem("measured", &[("x", 300.0, 20.0), ("y", 300.0, 20.0), ("z", 300.0, 20.0)]);
    let backend = Backend::microlp();
    let run = Run { stop: &|| false, on_progress: &|_| {}, backend: &backend, seed: 1 };
    let asked = std::sync::atomic::AtomicU32::new(0);
    let after_one = || asked.fetch_add(1, std::sync::atomic::Ordering::Relaxed) > 0;
    let verified = plan_verified(&problem, &Auto, &run, None, &after_one).unwrap();
    assert_eq!((verified.replay.services.len(), verified.replay.not_replayed), (1, 2));
    assert!(!verified.replay.passed);
    let notes = verified.plan.notes.join("; ");
    assert!(notes.contains("2 of 3 services were not replayed"), "{notes}");
}
