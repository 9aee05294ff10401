use std::fs;
use std::path::Path;

use downbeat_milp::Backend;
use downbeat_plan::Run;

use super::*;
use crate::{Goodput, IN_SLO_LEAST};

/// Three services, two of which take turns: two hours that are a day to them.
fn write(folder: &Path, more: &str) {
    let profiles = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../profiles/a100.csv");
    let problem = format!(
        "gpu = \"A100-40GB\"\nprofiles = {:?}\nrule = \"half\"\ncount = 8\ngpus_per_node = 4\n\
         [[service]]\nname = \"early\"\nmodel = \"roberta-large\"\nrate_rps = 400\nslo_ms = 250\n\
         [[service]]\nname = \"late\"\nmodel = \"albert-large-v2\"\nrate_rps = 300\nslo_ms = 350\n\
         [[service]]\nname = \"both\"\nmodel = \"bert-base-uncased\"\nrate_rps = 40\nslo_ms = 120\n",
        profiles.display()
    );
    fs::write(folder.join("problem.toml"), problem).unwrap();
    let trace = |peak_s: f64| -> String {
        let row = |at: u32| {
            let away = f64::from(at) - peak_s;
            format!("{at},{:.3}\n", 1.0 + 5.0 * (-0.5 * (away / 900.0).powi(2)).exp())
        };
        "time_s,rate\n".to_owned() + &(0..=240).map(|piece| row(30 * piece)).collect::<String>()
    };
    fs::write(folder.join("early.csv"), trace(2_000.0)).unwrap();
    fs::write(folder.join("late.csv"), trace(5_200.0)).unwrap();
    fs::write(folder.join("flat.csv"), "time_s,rate\n0,1\n7200,1\n").unwrap();
    let day = format!(
        "duration_s = 7200\nseed = 3\n[day]\nproblem = \"problem.toml\"\ntrace = \"flat.csv\"\nseason_s = 7200\n\
         history_days = 1\nepoch_s = 1200\nlead_s = 500\nspare = 2\nprovision_s = 60\n\
         [[day.service]]\nname = \"early\"\ntrace = \"early.csv\"\n\
         [[day.service]]\nname = \"late\"\ntrace = \"late.csv\"\n{more}"
    );
    fs::write(folder.join("day.toml"), day).unwrap();
}

fn simulated(more: &str, change: impl FnOnce(&mut DayScenario)) -> DayReport {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), more);
    let mut day = DayScenario::load(&folder.path().join("day.toml"), &Goodput::forgetful()).unwrap();
    change(&mut day);
    let backend = Backend::best(None).unwrap();
    let run = Run { stop: &|| false, on_progress: &|_| {}, backend: &backend, seed: 1 };
    simulate_day(&day, day.seed, &run, &|| {}).unwrap()
}

/// What happened, for a test that fails.
fn story(report: &DayReport) -> String {
    let changes = report.changes.iter().map(|change| {
        format!("{} to {:?} s: {} {} steps\n", change.at_s, change.ended_s, change.why, change.planned_steps)
    });
    let missed = report
        .minutes
        .iter()
        .enumerate()
        .filter(|(_, minute)| minute.in_slo.iter().any(|share| *share < 0.99));
    let missed = missed.map(|(index, minute)| {
        format!(
            "{} s: {:?} of {:?} rps, {:?}\n",
            60 * index,
            minute.rate_rps,
            minute.capacity_rps,
            minute.in_slo
        )
    });
    changes
        .chain(missed)
        .chain(report.log.iter().map(|line| format!("{} s: {}\n", line.at_s, line.what)))
        .collect()
}

/// What holds of every day, whatever happens in it.
fn check(report: &DayReport) {
    assert_eq!(report.violations, Vec::<String>::new());
    assert_eq!(report.lost, 0);
    assert!(report.requests > 500_000, "{}", report.requests);
    assert_eq!(report.minutes.len() as f64, report.duration_s / 60.0);
    let answered: u64 = report.services.iter().map(|service| service.requests).sum();
    assert_eq!(answered, report.requests);
    for change in &report.changes {
        for step in &change.steps {
            assert!(step.from_s >= change.at_s && step.until_s.is_none_or(|until| until > step.from_s));
        }
    }
    // No two instances on one unit of a GPU at a time.
    for (index, one) in report.instances.iter().enumerate() {
        for other in &report.instances[..index] {
            let (end, other_end) = (one.until_s.unwrap_or(1e9), other.until_s.unwrap_or(1e9));
            let at_once = one.asked_s < other_end && other.asked_s < end;
            let overlap = one.start < other.start + other.size && other.start < one.start + one.size;
            assert!(!(one.gpu == other.gpu && at_once && overlap), "{one:?} {other:?}");
        }
    }
}

#[test]
fn layouts_follow_the_demand_and_nobody_misses_an_objective() {
    let report = simulated("", |_| {});
    check(&report);
    assert!(report.changes.len() >= 3, "{:?}", report.log);
    assert!(report.windows.is_empty(), "{:?}", report.windows);
    assert_eq!(report.missed_unexcused, 0, "{}", story(&report));
    assert!(report.in_slo >= IN_SLO_LEAST);
    assert!(report.gpus_least < report.gpus_most);
    assert!(report.gpu_hours < report.fixed_gpu_hours, "{} {}", report.gpu_hours, report.fixed_gpu_hours);
    // Memory units that a service's instances have at a time.
    let units = |service: &str, at_s: f64| -> u32 {
        let there = |life: &&crate::report::InstanceLife| {
            life.service == service
                && life.from_s.is_some_and(|from| from <= at_s)
                && life.until_s.is_none_or(|until| until > at_s)
        };
        report.instances.iter().filter(there).map(|life| u32::from(life.size)).sum()
    };
    assert!(units("early", 2_000.0) > units("early", 6_000.0), "{}", story(&report));
    assert!(units("late", 2_000.0) < units("late", 5_200.0), "{}", story(&report));
}

#[test]
fn mig_parted_and_quick_steps_keep_the_promise_too() {
    let report = simulated("", |day| {
        day.settings.driver = Driver::MigParted;
        day.settings.times = downbeat_transition::StepTimes::PAPER_2024;
    });
    check(&report);
    assert!(report.changes.len() >= 2);
    assert_eq!(report.missed_unexcused, 0, "{}", story(&report));
}

#[test]
fn a_gpu_that_fails_is_replaced() {
    let report = simulated("[[fault]]\ngpu = 0\nat_s = 1850\n", |_| {});
    check(&report);
    assert_eq!(report.windows.len(), 1);
    let loss = report.changes.iter().find(|change| change.cause == "loss");
    let loss = loss.unwrap_or_else(|| panic!("{:?}", report.changes));
    assert!((1_850.0..2_400.0).contains(&loss.at_s), "{loss:?}");
    assert!(
        report.gpus.iter().filter(|stay| stay.gpu == 0).count() >= 2
            || report.gpus.iter().any(|stay| stay.from_s > 1_850.0)
    );
}

#[test]
fn without_a_history_the_day_is_followed_by_its_trend() {
    let report = simulated("", |day| day.settings.history = Span::ZERO);
    check(&report);
    assert!(report.in_slo > 0.97, "{}", report.in_slo);
}

#[test]
fn too_few_gpus_are_used_for_what_they_serve() {
    let report = simulated("", |day| {
        day.problem.pools[0].count = Some(1);
        day.duration = Span::from_millis(2_400_000);
    });
    check(&report);
    assert!(report.changes.iter().all(|change| change.gpus == 1), "{:?}", report.changes);
    // Two more on the way.
    assert!(report.gpus_most <= 3);
    assert!(report.bad > 0);
}

#[test]
fn the_same_seed_gives_the_same_day() {
    let json =
        || serde_json::to_string(&simulated("", |day| day.duration = Span::from_millis(3_000_000))).unwrap();
    assert_eq!(json(), json());
}
