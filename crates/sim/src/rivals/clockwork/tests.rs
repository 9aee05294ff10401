use super::super::tests::{cluster, run};
use super::estimate::Estimate;
use super::*;

fn settings(ahead_ms: u64) -> ClockworkSettings {
    ClockworkSettings { ahead: Span::from_millis(ahead_ms), ..ClockworkSettings::default() }
}

#[test]
fn a_device_is_filled_as_far_ahead_as_the_horizon() {
    // l(b) = b + 7. At 0: idle, a batch of 1 until 8. At 1: free at 8 < 1 + 10, so the next is fixed at once, until 16.
    // At 2 and 3: free at 16, too far ahead. Just after 6 it is not: both go, l(2) = 9.
    let cluster = cluster(1, &[(1.0, 7.0, 64, 100.0, 1.0)]);
    let arrivals = [(0.0, 0), (1.0, 0), (2.0, 0), (3.0, 0)];
    let log = run(&cluster, &mut Clockwork::new(&cluster, &settings(10)), &arrivals);
    assert_eq!(log.batches(), [(0, 0, 1, 0.0, 8.0), (0, 0, 1, 8.0, 16.0), (0, 0, 2, 16.0, 25.0)]);
}

#[test]
fn a_batch_has_exactly_a_size_that_the_model_was_compiled_for() {
    // l(b) = b + 3. Three wait when the device is filled again: 2 go, then 1; or all 3 where every size exists.
    let cluster = cluster(1, &[(1.0, 3.0, 64, 100.0, 1.0)]);
    let arrivals = [(0.0, 0), (1.0, 0), (1.0, 0), (1.0, 0)];
    let log = run(&cluster, &mut Clockwork::new(&cluster, &settings(1)), &arrivals);
    assert_eq!(log.batches(), [(0, 0, 1, 0.0, 4.0), (0, 0, 2, 4.0, 9.0), (0, 0, 1, 9.0, 13.0)]);
    let every_size = ClockworkSettings { sizes: Sizes::All, ..settings(1) };
    let log = run(&cluster, &mut Clockwork::new(&cluster, &every_size), &arrivals);
    assert_eq!(log.batches(), [(0, 0, 1, 0.0, 4.0), (0, 0, 3, 4.0, 10.0)]);
}

#[test]
fn a_larger_batch_passes_over_a_head_that_cannot_wait_for_it() {
    // Model 1 keeps the device until 10. Model 0, l(b) = 2b + 2, SLO 12: one request at 3, due at 15, and four at 9,
    // due at 21. From 10, four of them end at 20, for which the first cannot wait: it is dropped, although alone it
    // would end at 14.
    let cluster = cluster(1, &[(2.0, 2.0, 4, 12.0, 1.0), (1.0, 9.0, 1, 100.0, 1.0)]);
    let arrivals = [(0.0, 1), (3.0, 0), (9.0, 0), (9.0, 0), (9.0, 0), (9.0, 0)];
    let log = run(&cluster, &mut Clockwork::new(&cluster, &settings(1)), &arrivals);
    assert_eq!(log.batches(), [(0, 1, 1, 0.0, 10.0), (0, 0, 4, 10.0, 20.0)]);
    assert_eq!(log.dropped, [(1, 9.000001)]);
}

#[test]
fn a_head_that_can_wait_is_not_passed_over() {
    // The same with an SLO of 17: the head is due at 20, so the four earliest go; the last runs alone.
    let cluster = cluster(1, &[(2.0, 2.0, 4, 17.0, 1.0), (1.0, 9.0, 1, 100.0, 1.0)]);
    let arrivals = [(0.0, 1), (3.0, 0), (9.0, 0), (9.0, 0), (9.0, 0), (9.0, 0)];
    let log = run(&cluster, &mut Clockwork::new(&cluster, &settings(1)), &arrivals);
    assert_eq!(log.batches(), [(0, 1, 1, 0.0, 10.0), (0, 0, 4, 10.0, 20.0), (0, 0, 1, 20.0, 24.0)]);
    assert_eq!(log.ran[1].requests, [1, 2, 3, 4]);
}

#[test]
fn the_strategy_that_must_begin_first_goes_first() {
    // Until 10 the device is taken. Model 0 is due at 31 and runs 2: it must begin by 29. Model 1 is due at 36 and runs
    // 15: by 21.
    let cluster =
        cluster(1, &[(1.0, 1.0, 1, 30.0, 1.0), (1.0, 14.0, 1, 35.0, 1.0), (1.0, 9.0, 1, 100.0, 1.0)]);
    let arrivals = [(0.0, 2), (1.0, 0), (1.0, 1)];
    let log = run(&cluster, &mut Clockwork::new(&cluster, &settings(1)), &arrivals);
    assert_eq!(log.batches(), [(0, 2, 1, 0.0, 10.0), (0, 1, 1, 10.0, 25.0), (0, 0, 1, 25.0, 27.0)]);
}

#[test]
fn the_published_caps_limit_batch_and_execution() {
    // l(b) = b + 10: 8 take 18 ms, 16 take 26. l(b) = 0.1 b + 10: 16 take 11.6, but 32 are too many.
    let sizes = |alpha, settings: &ClockworkSettings| {
        let cluster = cluster(1, &[(alpha, 10.0, 40, 100.0, 1.0)]);
        let arrivals = [(0.0, 0); 50];
        let log = run(&cluster, &mut Clockwork::new(&cluster, settings), &arrivals);
        log.ran.iter().map(|ran| ran.requests.len()).max()
    };
    assert_eq!(sizes(1.0, &ClockworkSettings::published()), Some(8));
    assert_eq!(sizes(0.1, &ClockworkSettings::published()), Some(16));
    assert_eq!(sizes(0.1, &ClockworkSettings::default()), Some(40));
}

#[test]
fn a_request_that_could_not_finish_alone_is_dropped() {
    // The device is taken until 10; the second request, due at 9, cannot begin before.
    let cluster = cluster(1, &[(1.0, 4.0, 4, 8.0, 1.0), (1.0, 9.0, 1, 100.0, 1.0)]);
    let log = run(&cluster, &mut Clockwork::new(&cluster, &settings(10)), &[(0.0, 1), (1.0, 0)]);
    assert_eq!(log.dropped, [(1, 1.0)]);
}

#[test]
fn an_estimate_is_the_longest_of_the_last_ten_executions() {
    let (ms, now) = (Span::from_millis, Time::ZERO);
    let mut estimate = Estimate::new(ms(5), 10);
    assert_eq!(estimate.value(now), ms(5));
    estimate.measured(now, ms(7));
    (0..9).for_each(|_| estimate.measured(now, ms(4)));
    assert_eq!(estimate.value(now), ms(7));
    estimate.measured(now, ms(4));
    assert_eq!(estimate.value(now), ms(4));
}

#[test]
fn one_outlier_above_the_slo_does_not_end_a_model_for_good() {
    let cluster = cluster(1, &[(1.0, 4.0, 4, 8.0, 1.0)]);
    let mut policy = Clockwork::new(&cluster, &settings(10));
    policy.models[0].measured(Time::ZERO, ClassId(0), 1, Span::from_millis(50));
    // 5 ms alone by the profile, 50 ms by the estimate: the first is infeasible, the second comes after a second.
    let log = run(&cluster, &mut policy, &[(10.0, 0), (1010.0, 0)]);
    assert_eq!(log.dropped, [(0, 10.0)]);
    assert_eq!(log.batches(), [(0, 0, 1, 1010.0, 1015.0)]);
}
