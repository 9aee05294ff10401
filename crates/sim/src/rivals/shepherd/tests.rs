use super::super::tests::{Log, cluster, run};
use super::*;

/// Runs arrivals for models l(b) = b + 4 ms with this SLO.
fn log(gpus: usize, slo_ms: f64, arrivals: &[(f64, u32)]) -> Log {
    let cluster = cluster(gpus, &[(1.0, 4.0, 32, slo_ms, 1.0); 2]);
    run(&cluster, &mut Shepherd::new(&cluster, &ShepherdSettings::default()), arrivals)
}

#[test]
fn a_batch_3_03_times_as_large_preempts_the_running_one() {
    // Three of model 1 against one running are too few, the fourth makes it: l(4) = 8. The work of 0..2 is lost, and
    // model 0 starts anew at 10.
    let log = log(1, 40.0, &[(0.0, 0), (1.0, 1), (1.0, 1), (1.0, 1), (2.0, 1)]);
    assert_eq!(log.batches(), [(0, 0, 1, 0.0, 2.0), (0, 1, 4, 2.0, 10.0), (0, 0, 1, 10.0, 15.0)]);
    assert_eq!(log.ran.iter().map(|ran| ran.preempted).collect::<Vec<_>>(), [true, false, false]);
}

#[test]
fn a_running_batch_starts_again_with_those_that_wait_for_the_same_model() {
    // With the third arrival 1 + 3 >= 3.03.
    let log = log(1, 40.0, &[(0.0, 0), (1.0, 0), (1.0, 0), (2.0, 0)]);
    assert_eq!(log.batches(), [(0, 0, 1, 0.0, 2.0), (0, 0, 4, 2.0, 10.0)]);
    assert_eq!(log.ran[1].requests, [0, 1, 2, 3]);
}

#[test]
fn a_running_batch_that_could_not_start_again_in_time_is_left_alone() {
    // SLO 9: the running request, due at 9, would end at 2 + l(4) = 10.
    let log = log(1, 9.0, &[(0.0, 0), (1.0, 0), (1.0, 0), (2.0, 0)]);
    assert_eq!(log.batches()[0], (0, 0, 1, 0.0, 5.0));
}

#[test]
fn an_idle_device_runs_an_arrival_at_once_and_the_first_one_is_taken() {
    let log = log(3, 40.0, &[(0.0, 0), (1.0, 0), (9.0, 1)]);
    assert_eq!(log.batches(), [(0, 0, 1, 0.0, 5.0), (1, 0, 1, 1.0, 6.0), (0, 1, 1, 9.0, 14.0)]);
}

#[test]
fn a_free_device_runs_the_largest_batch_of_any_model() {
    // Nothing preempts: of model 0 there are 1 + 2, of model 1 there are 3 < 3.03. At 5 the three go first.
    let log = log(1, 40.0, &[(0.0, 0), (1.0, 0), (1.0, 0), (1.0, 1), (1.0, 1), (1.0, 1)]);
    assert_eq!(log.batches(), [(0, 0, 1, 0.0, 5.0), (0, 1, 3, 5.0, 12.0), (0, 0, 2, 12.0, 18.0)]);
}

#[test]
fn the_earliest_deadline_limits_the_batch() {
    // SLO 12. Four of model 1 run until 8 (the first alone, until the others preempt it at once). Then five of model 0
    // wait, the head due at 16: l(4) = 8 just ends in time, l(5) = 9 does not.
    let running = [(0.0, 1), (0.0, 1), (0.0, 1), (0.0, 1)];
    let waiting = [(4.0, 0), (5.5, 0), (5.5, 0), (5.5, 0), (5.5, 0)];
    let arrivals: Vec<(f64, u32)> = running.into_iter().chain(waiting).collect();
    let log = log(1, 12.0, &arrivals);
    assert_eq!(log.batches()[1..3], [(0, 1, 4, 0.0, 8.0), (0, 0, 4, 8.0, 16.0)]);
}

#[test]
fn a_request_that_could_not_finish_alone_is_dropped() {
    // Due at 9; at 5, when the device is free, it would end at 10.
    let log = log(1, 8.0, &[(0.0, 0), (1.0, 1)]);
    assert_eq!(log.dropped, [(1, 5.0)]);
}

#[test]
fn a_lambda_of_one_is_refused() {
    assert!(ShepherdSettings::default().set("lambda", "1").is_err());
    assert_eq!(ShepherdSettings::default().to_string(), "lambda=3.03");
}
