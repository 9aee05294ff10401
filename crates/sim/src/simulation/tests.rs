use std::path::Path;

use downbeat_sched::{Priority, Span};

use crate::policies::PolicySpec;
use crate::report::RunReport;
use crate::scenario::Scenario;
use crate::simulation::Until;

fn run(policy: &str, text: &str) -> RunReport {
    let scenario = Scenario::parse(text, Path::new("test.toml")).unwrap();
    policy.parse::<PolicySpec>().unwrap().run(&scenario, scenario.seed, Until::End).unwrap()
}

/// The paper's example: l(b) = b + 5, SLO 12, 3 GPUs, one arrival per 0.75 ms. A batch of 4 takes 9 ms and is gathered
/// in 3 ms, so that the GPUs start one after the other, 3 ms apart, and nobody is late.
#[test]
fn deferred_staggers_three_gpus_in_batches_of_four() {
    let report = run(
        "deferred",
        "gpus = 3
         arrival = { kind = \"uniform\" }
         [[model]]
         name = \"m\"
         slo_ms = 12
         rate_rps = 1333.3333333333333
         profile = { alpha_ms = 1, beta_ms = 5, max_batch = 32 }",
    );
    assert_eq!(report.bad_rate_worst, 0.0);
    let sizes = &report.detail.batch_sizes[0];
    let fours = sizes[3] as f64 / sizes.iter().sum::<u64>() as f64;
    assert!(fours > 0.99, "{sizes:?}");
    assert!(report.gpus.busy_fraction.iter().all(|busy| *busy > 0.97), "{:?}", report.gpus);
}

#[test]
fn requests_of_a_device_that_fails_run_elsewhere_and_it_does_nothing_more() {
    let text = "gpus = 4
         duration_s = 9
         total_rps = 600
         fault = [{ gpu = 0, at_s = 5 }]
         [[model]]
         name = \"m\"
         slo_ms = 40
         profile = { alpha_ms = 1, beta_ms = 5, max_batch = 32 }";
    let whole = run("adaptive", &text.replace("at_s = 5", "at_s = 10"));
    let failed = run("adaptive", text);
    assert_eq!(whole.bad_rate_worst, 0.0);
    // What is lost had too little time left to start again.
    let lost = failed.models[0].expired + failed.models[0].late;
    assert!(lost <= 32, "{lost} lost");
    assert_eq!(failed.models[0].in_slo + lost, failed.models[0].offered);
    let (before, after) = (whole.gpus.busy_fraction[0], failed.gpus.busy_fraction[0]);
    assert!((after / before - 0.5).abs() < 0.05, "busy {after} instead of {before}");
}

#[test]
fn a_priority_is_not_disturbed_by_overload_below_it() {
    let model = |name: &str, rate: u32, priority: u8| {
        format!(
            "[[model]]
             name = \"{name}\"
             slo_ms = 40
             rate_rps = {rate}
             priority = {priority}
             profile = {{ alpha_ms = 1, beta_ms = 5, max_batch = 32 }}\n"
        )
    };
    let report = run("adaptive", &format!("gpus = 4\n{}{}", model("high", 500, 1), model("low", 8_000, 2)));
    assert!(report.models[0].bad_rate < 0.001, "{:?}", report.models[0]);
    assert!(report.models[1].bad_rate > 0.5, "that was no overload");
}

/// Those above have devices enough, and must not give up heads for larger batches because there are too few for those
/// below.
#[test]
fn several_models_of_a_priority_keep_their_objective_beside_five_times_the_load_below() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/eight-models-8gpu.toml");
    let mut scenario = Scenario::load(&path).unwrap().with_rate(5.6 * 5_400.0);
    scenario.duration = Span::from_secs_f64(15.0);
    for (index, model) in scenario.models.iter_mut().enumerate() {
        let (share, level) = if index % 2 == 0 { (0.6, 1) } else { (5.0, 2) };
        model.share = share / 5.6 / 4.0;
        model.priority = Priority(level);
    }
    let policy: PolicySpec = "adaptive".parse().unwrap();
    let report = policy.run(&scenario, scenario.seed, Until::End).unwrap();
    let worst = |level: usize| {
        let of_level = report.models.iter().skip(level).step_by(2);
        of_level.map(|model| model.bad_rate).fold(0.0, f64::max)
    };
    assert!(worst(0) < 0.01, "{} of the worst model above", worst(0));
    assert!(worst(1) > 0.5, "that was no overload");
}

/// Every request runs alone and takes 6 ms: one in ten is held up for 1 to 2 ms more, of which the SLO has room for a
/// half.
#[test]
fn what_is_measured_on_top_of_the_profile_makes_as_many_late_as_it_should() {
    let text = "gpus = 8
         duration_s = 100
         total_rps = 20
         arrival = { kind = \"uniform\" }
         JITTER
         [[model]]
         name = \"m\"
         slo_ms = 7.5
         profile = { alpha_ms = 1, beta_ms = 5, max_batch = 1 }";
    let late = |jitter: &str| run("eager", &text.replace("JITTER", jitter)).bad_rate_worst;
    let held_up = late("jitter = { kind = \"added\", added_us = [[0.9, 0], [0.900001, 1000], [1, 2000]] }");
    assert!((held_up - 0.05).abs() < 0.015, "{held_up}");
    let on_the_way = late("response_us = [[0.9, 0], [0.900001, 1000], [1, 2000]]");
    assert!((on_the_way - 0.05).abs() < 0.015, "{on_the_way}");
    assert_eq!(late("response_us = [[1, 1000]]"), 0.0);
}
