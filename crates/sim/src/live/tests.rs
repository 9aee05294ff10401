use std::path::Path;

use super::*;

/// One model at 200 requests a second, 5 ms each: one device is just too few.
fn scenario() -> Scenario {
    let text = "gpus = 1\nduration_s = 60\n[[model]]\nname = \"m\"\nslo_ms = 50\nrate_rps = 250\n\
                profile = { alpha_ms = 4, beta_ms = 1, max_batch = 8 }\n";
    Scenario::parse(text, Path::new("live.toml")).unwrap()
}

fn time(seconds: u64) -> Time {
    Time::ZERO + Span::from_millis(1_000 * seconds)
}

#[test]
fn every_request_is_answered_while_devices_come_go_and_fail() {
    let mut cluster = LiveCluster::new(&scenario(), 7);
    let mut there = vec![cluster.join(ClassId(0)).unwrap(), cluster.join(ClassId(0)).unwrap()];
    for second in 1..60 {
        cluster.run_to(time(second));
        let oldest = there.remove(0);
        if second % 3 == 0 {
            cluster.fail(oldest);
        } else {
            cluster.leave(oldest);
        }
        there.push(cluster.join(ClassId(0)).unwrap());
    }
    let outcome = cluster.finish();
    let ModelOutcome { arrivals, answered, bad } = outcome.models[0];
    assert!(arrivals > 10_000, "{arrivals}");
    assert_eq!(arrivals, answered);
    assert!(bad < arrivals / 20, "{bad} of {arrivals}");
    let in_minutes: u64 = outcome.minutes.iter().flatten().map(|tally| tally.answered).sum();
    assert_eq!(in_minutes, answered);
}

#[test]
fn signals_tell_what_each_model_did_since_the_last_time() {
    let mut cluster = LiveCluster::new(&scenario(), 7);
    cluster.join(ClassId(0)).unwrap();
    cluster.join(ClassId(0)).unwrap();
    cluster.run_to(time(10));
    let needs = cluster.needs();
    let first = cluster.signals(Span::from_millis(10_000), &needs);
    assert_eq!((first[0].gpus, first[0].busy.len()), (2, 2));
    assert!((2_300..2_700).contains(&first[0].arrivals), "{:?}", first[0]);
    assert!(first[0].busy_gpus() > 0.7 && first[0].needed > 0.7, "{:?}", first[0]);
    let again = cluster.signals(Span::from_millis(10_000), &needs);
    assert_eq!((again[0].arrivals, again[0].batches), (0, 0));
}
