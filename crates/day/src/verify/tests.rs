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
    plan_verified(problem, &Auto, &run, None).unwrap()
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
