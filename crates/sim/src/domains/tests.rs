use std::path::Path;

use crate::{PolicySpec, RunReport, Scenario, Until, fluid_bound_rps};

const MODELS: &str = r#"
    duration_s = 3
    [[model]]
    name = "a"
    slo_ms = 25
    rate_rps = 600
    profile = { alpha_ms = 1, beta_ms = 5, max_batch = 8 }
    [[model]]
    name = "b"
    slo_ms = 40
    rate_rps = 300
    profile = { alpha_ms = 2, beta_ms = 5, max_batch = 8 }
    [[model]]
    name = "c"
    slo_ms = 60
    rate_rps = 100
    profile = { alpha_ms = 2, beta_ms = 9, max_batch = 8 }
"#;

const POLICIES: [&str; 6] = ["adaptive", "deferred", "delayed", "clockwork", "nexus", "shepherd"];

fn scenario(head: &str, tail: &str) -> Scenario {
    Scenario::parse(&format!("{head}\n{MODELS}\n{tail}"), Path::new("test.toml")).unwrap()
}

fn run(policy: &str, scenario: &Scenario) -> RunReport {
    policy.parse::<PolicySpec>().unwrap().run(scenario, 1, Until::End).unwrap()
}

fn numbers(report: &RunReport) -> String {
    serde_json::to_string(report).unwrap()
}

#[test]
fn one_subcluster_of_everything_is_the_cluster_itself() {
    let whole = scenario("gpus = 4", "");
    let one =
        scenario("gpus = 4", "[[subcluster]]\nname = \"all\"\ngpus = 4\nmodels = [\"a\", \"b\", \"c\"]");
    for policy in POLICIES {
        assert_eq!(numbers(&run(policy, &whole)), numbers(&run(policy, &one)), "{policy}");
    }
    assert_eq!(fluid_bound_rps(&whole), fluid_bound_rps(&one));
}

/// The last device is nobody's; c's comes first in the file, and so takes the first device.
#[test]
fn a_model_runs_on_the_devices_of_its_subcluster_and_nowhere_else() {
    let split = scenario(
        "gpus = 5",
        "[[subcluster]]\nname = \"x\"\ngpus = 1\nmodels = [\"c\"]\n\
         [[subcluster]]\nname = \"y\"\ngpus = 3\nmodels = [\"b\", \"a\"]",
    );
    for policy in POLICIES {
        let report = run(policy, &split);
        assert!(report.models.iter().all(|model| model.in_slo > 0), "{policy}");
        assert!(!report.detail.timeline.is_empty());
        for batch in &report.detail.timeline {
            let own = if batch.model == 2 { 0..1 } else { 1..4 };
            assert!(own.contains(&batch.gpu), "{policy}: model {} on {}", batch.model, batch.gpu);
        }
        assert_eq!(report.gpus.busy_fraction[4], 0.0);
    }
}

#[test]
fn a_subcluster_behaves_as_it_would_alone() {
    let split = scenario(
        "gpus = 3",
        "[[subcluster]]\nname = \"x\"\ngpus = 2\nmodels = [\"a\", \"b\"]\n\
         [[subcluster]]\nname = \"y\"\ngpus = 1\nmodels = [\"c\"]",
    );
    // The first models of a scenario keep their numbers, and so their arrivals, in its first part.
    let alone = &split.parts()[0].scenario;
    let (together, apart) = (run("adaptive", &split), run("adaptive", alone));
    for (model, same) in together.models.iter().zip(&apart.models) {
        assert_eq!((model.offered, model.in_slo, model.p99_ms), (same.offered, same.in_slo, same.p99_ms));
    }
    let total_of = |part: usize| {
        let part = &split.parts()[part].scenario;
        fluid_bound_rps(part) * split.total_rps / part.total_rps
    };
    assert_eq!(fluid_bound_rps(&split), total_of(0).min(total_of(1)));
}

#[test]
fn subclusters_of_slices_have_devices_by_class() {
    let text = r#"
        gpu_class = [{ name = "1g", count = 4 }, { name = "3g", count = 2 }]
        [[model]]
        name = "a"
        slo_ms = 50
        rate_rps = 100
        profiles = { 1g = { alpha_ms = 4, beta_ms = 5, max_batch = 8 }, 3g = { alpha_ms = 1, beta_ms = 5, max_batch = 8 } }
        [[model]]
        name = "b"
        slo_ms = 50
        rate_rps = 200
        profiles = { 3g = { alpha_ms = 1, beta_ms = 5, max_batch = 8 } }
        [[subcluster]]
        name = "small"
        gpus_by_class = { 1g = 3 }
        models = ["a"]
        [[subcluster]]
        name = "large"
        gpus_by_class = { 3g = 1, 1g = 1 }
        models = ["b"]
    "#;
    let scenario = Scenario::parse(text, Path::new("test.toml")).unwrap();
    let parts = scenario.parts();
    let ids = |part: usize| parts[part].gpus.iter().map(|gpu| gpu.0).collect::<Vec<u32>>();
    assert_eq!((ids(0), ids(1)), (vec![0, 1, 2], vec![3, 4]));
    let report = run("adaptive", &scenario);
    assert!(report.bad_rate_worst < 0.01, "{}", report.bad_rate_worst);
    assert!(report.detail.timeline.iter().all(|batch| (batch.model == 0) == (batch.gpu < 3)));
}
