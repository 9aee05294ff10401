//! Small clusters that come and go, by hand-worked numbers and by running them.

use std::path::Path;

use downbeat_sched::{Span, Time};
use proptest::prelude::*;

use super::elastic::Elastic;
use super::foresight::bill;
use super::ledger::Tally;
use super::report::{Excuse, Misses};
use super::surges::{excuses, rate_at};
use super::{Replay, ReplayError};
use crate::scenario::{Arrival, RatePiece, RateTrace, Scenario};

const MINUTE: Span = Span::from_millis(60_000);

/// Two models on a GPU or a few; each GPU takes about 90 requests a second.
fn scenario(minutes: u64, rates: &[f64], gpus: u32) -> Scenario {
    let text = format!(
        "gpus = {gpus}\nduration_s = {}\nwarmup_s = 0\ntotal_rps = 100\n\
         [autoscale]\nmin = 1\nmax = 12\nprovision_s = 60\n\
         [[model]]\nname = \"a\"\nslo_ms = 300\nprofile = {{ alpha_ms = 8, beta_ms = 30, max_batch = 32 }}\n\
         [[model]]\nname = \"b\"\nslo_ms = 400\nprofile = {{ alpha_ms = 9, beta_ms = 30, max_batch = 32 }}\n",
        60 * minutes
    );
    let mut scenario = Scenario::parse(&text, Path::new("small.toml")).unwrap();
    let length = MINUTE * minutes;
    let piece = |(index, &rate): (usize, &f64)| RatePiece {
        end: Span::from_nanos(length.as_nanos() * (index as u64 + 1) / rates.len() as u64),
        rate,
    };
    let trace = RateTrace::from_pieces(rates.iter().enumerate().map(piece).collect()).unwrap();
    scenario.total_rps = trace.mean_rate();
    let trace = std::sync::Arc::new(trace);
    scenario.models.iter_mut().for_each(|model| model.arrival = Arrival::Trace(trace.clone()));
    scenario
}

fn roomy(scenario: &Scenario) -> Scenario {
    let mut roomy = scenario.clone();
    roomy.classes[0].count = 12;
    roomy
}

fn at(seconds: u64) -> Time {
    Time::ZERO + Span::from_millis(1_000 * seconds)
}

#[test]
fn a_gpu_that_is_asked_for_takes_work_when_it_is_provisioned_and_is_paid_for_from_the_asking() {
    let scenario = roomy(&scenario(10, &[100.0], 2));
    let mut cluster = Elastic::new(&scenario, 1, MINUTE, 2);
    cluster.advance(at(30));
    cluster.scale_to(4);
    assert_eq!((cluster.gpus(), cluster.coming()), (2, 2));
    let signals = cluster.advance(at(89));
    assert_eq!((signals.gpus, signals.coming), (2, 2));
    let signals = cluster.advance(at(91));
    assert_eq!((signals.gpus, signals.coming), (4, 0));
    assert!((cluster.gpu_seconds() - (2.0 * 91.0 + 2.0 * 61.0)).abs() < 1e-6);
    cluster.scale_to(1);
    let signals = cluster.advance(at(95));
    assert_eq!(signals.busy.len(), 1);
}

#[test]
fn every_request_is_answered_once_however_gpus_come_and_go() {
    let scenario = roomy(&scenario(4, &[120.0], 2));
    let mut cluster = Elastic::new(&scenario, 1, Span::from_millis(3_000), 2);
    let mut answered = 0;
    for step in 1..=24u64 {
        answered += cluster.advance(at(10 * step)).answered;
        cluster.scale_to(1 + (step * 7 % 5) as u32);
    }
    let before = cluster.ledger().answered;
    assert_eq!(before, answered);
    cluster.close();
    let ledger = cluster.ledger();
    assert_eq!(ledger.answered, ledger.arrivals);
}

#[test]
fn a_failed_gpu_is_gone_and_another_takes_its_place() {
    let mut scenario = roomy(&scenario(4, &[100.0], 3));
    let gpu = downbeat_sched::GpuId(1);
    scenario.faults.push(crate::Fault { gpu, at: Span::from_millis(20_000) });
    let mut cluster = Elastic::new(&scenario, 1, Span::from_millis(10_000), 3);
    assert_eq!(cluster.advance(at(21)).gpus, 2);
    cluster.scale_to(3);
    let signals = cluster.advance(at(60));
    assert_eq!(signals.gpus, 3);
    assert!(signals.busy[1] > 0.0);
}

#[test]
fn a_rule_that_follows_the_load_pays_less_than_its_peak_and_more_than_the_clairvoyant() {
    let scenario = scenario(60, &[100.0, 100.0, 420.0, 420.0, 100.0, 100.0], 2);
    let report = Replay::new(&scenario, 1).unwrap().run(&|| {});
    let run = |name: &str| report.runs.iter().find(|run| run.name == name).unwrap();
    let (ours, fixed, least) = (run("downbeat"), run("fixed"), run("clairvoyant"));
    assert!(least.gpu_hours < ours.gpu_hours && ours.gpu_hours < fixed.gpu_hours);
    assert_eq!((ours.missed_unexcused, fixed.missed, least.missed), (0, 0, 0));
    assert!((least.saved_of_clairvoyant - 1.0).abs() < 1e-9 && fixed.saved == 0.0);
    assert_eq!(report.excuses.len(), 1);
    assert!(ours.log.iter().all(|change| !change.explanation.is_empty()));
    let again = Replay::new(&scenario, 1).unwrap().run(&|| {});
    assert_eq!(serde_json::to_string(&again).unwrap(), serde_json::to_string(&report).unwrap());
    let page = crate::replay_page(&report);
    assert!(page.contains("GPUs that each rule pays for") && page.contains("clairvoyant"));
}

#[test]
fn a_scenario_that_cannot_be_scaled_is_refused_in_a_sentence() {
    let mut fixed = scenario(2, &[10.0], 1);
    fixed.duration = Span::from_millis(30_000);
    assert!(matches!(Replay::new(&fixed, 1), Err(ReplayError::TooShort { .. })));
    fixed.autoscale = None;
    let error = Replay::new(&fixed, 1).unwrap_err().to_string();
    assert!(error.starts_with("small has no [autoscale]; add one"), "{error}");
}

#[test]
fn a_rise_of_the_rate_is_a_surge_and_a_fall_is_not() {
    let scenario = scenario(40, &[100.0, 104.0, 150.0, 100.0], 2);
    assert!((rate_at(&scenario, MINUTE * 25) - 150.0).abs() < 1e-6);
    let found = excuses(&scenario, MINUTE);
    let surge = Excuse { why: "surge".to_owned(), from_s: 1200.0, until_s: 1290.0 };
    assert_eq!(found, [surge]);
}

#[test]
fn a_model_minute_counts_from_1000_requests_on_and_is_missed_past_1_percent() {
    let tally = |answered, bad| Tally { answered, bad };
    let minutes = vec![
        vec![tally(999, 999), tally(1_000, 10)],
        vec![tally(1_000, 11), tally(1_000, 11)],
        vec![tally(2_000, 21)],
    ];
    let excuse = Excuse { why: String::new(), from_s: 100.0, until_s: 120.0 };
    let misses = Misses::of(&minutes, &[excuse]);
    assert_eq!(misses, Misses { counted: 4, missed: 3, unexcused: 1 });
}

/// Two GPUs for three minutes. The second is away for one minute, which is cheaper to wait through than 90 s of
/// provisioning.
#[test]
fn the_clairvoyant_keeps_a_gpu_when_that_is_cheaper_than_asking_for_it_again() {
    let seconds =
        |gpus: &[u32], provision_s: u64| bill(gpus, 2, Span::from_millis(1_000 * provision_s)).as_secs_f64();
    assert_eq!(seconds(&[2, 1, 2], 90), 180.0 + 120.0 + 60.0);
    assert_eq!(seconds(&[2, 1, 2], 30), 180.0 + 120.0 + 30.0);
    assert_eq!(seconds(&[1, 1, 3], 30), 180.0 + 60.0 + 30.0 + 60.0 + 30.0);
}

proptest! {
    /// Against every choice of keeping and giving back, for one GPU.
    #[test]
    fn the_bill_is_the_least_that_can_be_paid(
        needed in prop::collection::vec(any::<bool>(), 1..10),
        provision_s in 0u64..200,
    ) {
        let gpus: Vec<u32> = needed.iter().map(|&needed| u32::from(needed)).collect();
        let minutes = needed.len();
        let least = (0u32..1 << minutes)
            .filter(|kept| (0..minutes).all(|minute| !needed[minute] || kept >> minute & 1 == 1))
            .map(|kept| {
                let mut seconds = 0;
                let mut absent = u64::MAX;
                for minute in 0..minutes {
                    if kept >> minute & 1 == 1 {
                        // At the very beginning it is there.
                        let away = if absent == u64::MAX { 60 * minute as u64 } else { absent };
                        seconds += 60 + provision_s.min(away);
                        absent = 0;
                    } else if absent != u64::MAX {
                        absent += 60;
                    }
                }
                seconds
            })
            .min()
            .unwrap_or(0);
        let paid = bill(&gpus, 1, Span::from_millis(1_000 * provision_s));
        prop_assert_eq!(paid.as_secs_f64(), least as f64);
    }
}
