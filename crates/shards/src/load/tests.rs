use downbeat_sched::Span;

use super::{Load, LoadError};

fn small() -> Load {
    Load {
        models: 6,
        gpus: 60,
        shards: 2,
        domains: 2,
        rate: 3_000.0,
        zipf: 0.9,
        slo: Span::from_millis(50),
        alpha_ms: 0.2,
        beta_ms: 3.0,
        max_batch: 64,
        duration: Span::from_millis(1_000),
        warmup: Span::from_millis(200),
        spin: false,
        pin: false,
        churn: 0.0,
        seed: 1,
    }
}

/// No rate and no lag is asserted: the machine may be busy with something else.
#[test]
fn every_request_of_a_load_is_accounted_for() {
    let report = small().run().unwrap();
    assert!(report.offered > 2_000, "{report:?}");
    assert_eq!(report.unfinished, 0.0, "{report:?}");
    let parts = report.in_slo + report.late + report.dropped;
    assert!((parts - 1.0).abs() < 1e-9, "{report:?}");
    assert!(report.mean_batch >= 1.0);
}

#[test]
fn every_request_is_accounted_for_while_devices_and_models_come_and_go() {
    let report = Load { churn: 500.0, ..small() }.run().unwrap();
    assert!(report.offered > 2_000 && report.unfinished == 0.0, "{report:?}");
}

#[test]
fn a_load_that_makes_no_sense_is_refused_with_a_reason() {
    let refused = |load: Load| match load.run() {
        Err(LoadError::Invalid(message)) => message,
        other => panic!("{other:?}"),
    };
    assert!(refused(Load { models: 1, ..small() }).contains("2 shards for 1 models"));
    assert!(refused(Load { churn: -1.0, ..small() }).contains("comes and goes"));
    assert!(refused(Load { rate: f64::NAN, ..small() }).contains("rate"));
    assert!(refused(Load { slo: Span::from_millis(4), ..small() }).contains("cannot be met"));
    assert!(refused(Load { gpus: 1, ..small() }).contains("2 domains for 1 devices"));
    assert!(refused(Load { alpha_ms: -1.0, ..small() }).contains("alpha"));
}

#[test]
fn popular_models_are_spread_over_the_shards() {
    let load = Load { models: 100, shards: 4, zipf: 0.8, ..small() };
    let weights = load.weights();
    assert!((weights.iter().sum::<f64>() - 1.0).abs() < 1e-9);
    for models in load.place(&weights) {
        let part: f64 = models.iter().map(|model| weights[model.0 as usize]).sum();
        assert!((0.2..0.3).contains(&part), "{part}");
    }
}

/// The threads must find as many requests a device in time as the single-threaded scheduler does; how many more are
/// lost depends on how late this machine wakes threads, so that only the latter is asserted.
#[test]
fn the_same_requests_go_through_the_single_threaded_scheduler() {
    let load = small();
    let one = load.run_on_one_thread().unwrap();
    let again = load.run_on_one_thread().unwrap();
    assert_eq!((one.offered, one.in_slo, one.mean_batch), (again.offered, again.in_slo, again.mean_batch));
    assert!(one.in_slo > 0.999 && one.unfinished == 0.0 && one.lag_us.max <= 1.0, "{one:?}");
    let threads = load.run().unwrap();
    assert_eq!(one.offered, threads.offered, "the same arrivals");
}
