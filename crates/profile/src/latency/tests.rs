use proptest::prelude::*;

use super::*;

fn ms(ms: f64) -> Span {
    Span::from_millis_f64(ms)
}

#[test]
fn a_linear_profile_is_alpha_b_plus_beta() {
    let profile = LatencyProfile::linear(1.5, 4.0, 8).unwrap();
    assert_eq!(profile.max_batch(), 8);
    for b in 1..=8 {
        assert_eq!(profile.latency(b), ms(1.5 * f64::from(b) + 4.0));
    }
}

#[test]
fn sizes_outside_the_table_are_clamped_to_it() {
    let profile = LatencyProfile::linear(1.0, 1.0, 4).unwrap();
    assert_eq!(profile.latency(0), ms(2.0));
    assert_eq!(profile.latency(u32::MAX), ms(5.0));
}

/// 8 rows take 2 ms, 9 to 16 take 3.5: a row costs 0.25 ms in 8, 0.35 in 10, 0.25 in 14, and 0.22 in 16.
#[test]
fn the_cheapest_size_fills_a_step_and_does_not_begin_the_next_one_until_that_pays() {
    let points = [(1, 2.0), (8, 2.0), (9, 3.5), (16, 3.5)];
    let profile = LatencyProfile::from_points(&points, 16, Beyond::Refuse).unwrap();
    let cheapest = [1, 5, 8, 9, 13, 14, 15, 16, 99].map(|batch| profile.cheapest_up_to(batch));
    assert_eq!(cheapest, [1, 5, 8, 8, 8, 14, 15, 16, 16]);
}

proptest! {
    #[test]
    fn the_cheapest_size_costs_least_of_all_up_to_it(
        latencies in prop::collection::vec(0.1f64..20.0, 1..40),
        batch in 1u32..50,
    ) {
        let points: Vec<(u32, f64)> = (1..).zip(latencies).collect();
        let profile = LatencyProfile::from_points(&points, points.len() as u32, Beyond::Refuse).unwrap();
        let cost = |b: u32| profile.latency(b).as_nanos() as f64 / f64::from(b);
        let cheapest = profile.cheapest_up_to(batch);
        let most = batch.min(profile.max_batch());
        prop_assert!(cheapest <= most);
        prop_assert!((1..=most).all(|b| cost(cheapest) <= cost(b) * (1.0 + 1e-12)));
        prop_assert!((cheapest + 1..=most).all(|b| cost(b) > cost(cheapest)));
    }

    #[test]
    fn without_steps_the_cheapest_size_is_the_largest(alpha in 0.0f64..3.0, beta in 0.1f64..9.0, batch in 1u32..64) {
        let profile = LatencyProfile::linear(alpha, beta, 64).unwrap();
        // Latencies are whole nanoseconds.
        let cost = |b: u32| profile.latency(b).as_nanos() as f64 / f64::from(b);
        prop_assert!(cost(batch) - cost(profile.cheapest_up_to(batch)) < 1.0);
    }
}

#[test]
fn a_size_between_two_measured_ones_is_interpolated() {
    let profile = LatencyProfile::from_points(&[(8, 9.0), (4, 5.0), (2, 4.0)], 8, Beyond::Refuse).unwrap();
    assert_eq!(profile.latency(1), ms(4.0), "below the smallest measured size its latency holds");
    assert_eq!(profile.latency(3), ms(4.5));
    assert_eq!(profile.latency(6), ms(7.0));
}

#[test]
fn past_the_largest_measured_size_the_last_segment_goes_on() {
    let profile =
        LatencyProfile::from_points(&[(1, 1.0), (2, 3.0), (4, 4.0)], 8, Beyond::Extrapolate).unwrap();
    assert_eq!(profile.latency(8), ms(6.0));
}

#[test]
fn past_the_largest_measured_size_the_caller_may_refuse() {
    let refused = LatencyProfile::from_points(&[(1, 1.0), (2, 3.0)], 3, Beyond::Refuse);
    assert_eq!(refused, Err(ProfileError::PastMeasured { wanted: 3, measured: 2 }));
}

#[test]
fn a_falling_last_segment_goes_on_flat() {
    let profile =
        LatencyProfile::from_points(&[(1, 9.0), (2, 10.0), (4, 2.0)], 1_000, Beyond::Extrapolate).unwrap();
    for b in 2..=1_000 {
        assert_eq!(profile.latency(b), ms(10.0));
    }
}

#[test]
fn an_early_outlier_does_not_flatten_what_the_last_points_say() {
    let points = [(1, 10.0), (4, 5.0), (8, 6.0)];
    let profile = LatencyProfile::from_points(&points, 64, Beyond::Extrapolate).unwrap();
    assert_eq!(profile.latency(8), ms(10.0));
    assert_eq!(profile.latency(64), ms(20.0));
}

#[test]
fn a_single_point_holds_for_every_size() {
    let profile = LatencyProfile::from_points(&[(4, 2.0)], 100, Beyond::Extrapolate).unwrap();
    assert_eq!((profile.latency(1), profile.latency(100)), (ms(2.0), ms(2.0)));
}

#[test]
fn a_profile_may_be_cut_below_the_largest_measured_size() {
    let profile = LatencyProfile::from_points(&[(1, 1.0), (64, 64.0)], 3, Beyond::Refuse).unwrap();
    assert_eq!(profile.max_batch(), 3);
    assert_eq!(profile.latency(3), ms(3.0));
}

#[test]
fn samples_count_with_the_median_of_their_size() {
    let samples = [(2, 5.0), (1, 900.0), (1, 2.0), (1, 3.0), (2, 7.0)];
    assert_eq!(medians(&samples), Ok(vec![(1, 3.0), (2, 6.0)]));
    let profile = LatencyProfile::from_samples(&samples, 3, Beyond::Extrapolate).unwrap();
    assert_eq!(profile, LatencyProfile::from_points(&[(1, 3.0), (2, 6.0)], 3, Beyond::Extrapolate).unwrap());
}

#[test]
fn one_bad_sample_among_good_ones_is_refused_and_not_outvoted() {
    let samples = [(1, 1.0), (1, -1.0), (1, 2.0)];
    let refused = LatencyProfile::from_samples(&samples, 1, Beyond::Refuse);
    assert_eq!(refused, Err(ProfileError::BadLatency { batch: 1, latency_ms: -1.0 }));
}

#[test]
fn numbers_that_make_no_profile_are_refused() {
    let of = |points: &[(u32, f64)], max| LatencyProfile::from_points(points, max, Beyond::Extrapolate);
    assert_eq!(of(&[], 1), Err(ProfileError::Empty));
    assert_eq!(medians(&[]), Err(ProfileError::Empty));
    assert_eq!(of(&[(0, 1.0)], 1), Err(ProfileError::BadBatch(0)));
    assert_eq!(of(&[(1, 1.0)], 0), Err(ProfileError::BadBatch(0)));
    assert_eq!(of(&[(1, 1.0)], LARGEST_BATCH + 1), Err(ProfileError::BadBatch(LARGEST_BATCH + 1)));
    assert_eq!(of(&[(2, 1.0), (1, 1.0), (2, 3.0)], 1), Err(ProfileError::DuplicateBatch(2)));
    for bad in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        assert!(matches!(of(&[(1, bad)], 1), Err(ProfileError::BadLatency { batch: 1, .. })));
    }
    assert!(matches!(LatencyProfile::linear(-1.0, 1.0, 1), Err(ProfileError::BadCoefficient { .. })));
    assert!(matches!(LatencyProfile::linear(0.0, 0.0, 1), Err(ProfileError::BadLatency { .. })));
}

#[test]
fn absurdly_long_latencies_saturate() {
    let points = [(1, f64::MIN_POSITIVE), (2, f64::MAX)];
    let profile = LatencyProfile::from_points(&points, 100, Beyond::Extrapolate).unwrap();
    assert_eq!(profile.latency(1), Span::from_nanos(1));
    assert_eq!(profile.latency(100), Span::MAX);
}

/// Up to a dozen points of distinct sizes; latencies from a nanosecond to a quarter of an hour.
fn points() -> impl Strategy<Value = Vec<(u32, f64)>> {
    let latency_ms = prop_oneof![0.1..10.0, (-6.0..6.0f64).prop_map(|exponent| 10f64.powf(exponent))];
    proptest::collection::btree_map(1..200u32, latency_ms, 1..12)
        .prop_map(|points| points.into_iter().collect())
        .prop_shuffle()
}

#[test]
fn a_scaled_profile_takes_so_many_times_as_long_for_every_size() {
    let profile = LatencyProfile::linear(1.0, 4.0, 8).unwrap();
    assert_eq!(profile.scaled(1.5), LatencyProfile::linear(1.5, 6.0, 8));
    assert_eq!(profile.scaled(0.5), LatencyProfile::linear(0.5, 2.0, 8));
    assert_eq!(profile.scaled(1.0), Ok(profile));
}

#[test]
fn a_scaled_profile_neither_vanishes_nor_overflows() {
    let profile = LatencyProfile::linear(1.0, 4.0, 8).unwrap();
    assert_eq!(profile.scaled(f64::MIN_POSITIVE).map(|fast| fast.latency(1)), Ok(Span::from_nanos(1)));
    assert_eq!(profile.scaled(f64::MAX).map(|slow| slow.latency(1)), Ok(Span::MAX));
}

#[test]
fn a_factor_that_makes_no_latency_is_refused() {
    let profile = LatencyProfile::linear(1.0, 4.0, 8).unwrap();
    for factor in [0.0, -1.0, f64::INFINITY] {
        assert_eq!(profile.scaled(factor), Err(ProfileError::BadFactor(factor)));
    }
    let refused = profile.scaled(f64::NAN).unwrap_err();
    assert_eq!(refused.to_string(), "the factor is NaN; it must be a finite number above 0");
}

proptest! {
    #[test]
    fn any_points_give_a_monotone_table_through_those_no_smaller_batch_exceeds(
        mut points in points(),
        max_batch in 1..400u32,
    ) {
        let profile = LatencyProfile::from_points(&points, max_batch, Beyond::Extrapolate).unwrap();
        prop_assert_eq!(profile.max_batch(), max_batch);
        prop_assert!(profile.latency(1) >= Span::from_nanos(1));
        for b in 1..max_batch {
            prop_assert!(profile.latency(b) <= profile.latency(b + 1));
        }
        points.sort_by_key(|point| point.0);
        let mut slowest_ms = 0f64;
        for &(b, latency_ms) in points.iter().filter(|point| point.0 <= max_batch) {
            slowest_ms = slowest_ms.max(latency_ms);
            prop_assert_eq!(profile.latency(b), ms(slowest_ms).max(Span::from_nanos(1)));
        }
    }

    #[test]
    fn any_samples_give_the_profile_of_their_medians_in_any_order(
        samples in proptest::collection::vec((1..6u32, 0.1..10.0), 1..40).prop_shuffle(),
    ) {
        for &(b, median_ms) in &medians(&samples).unwrap() {
            let of = |keep: fn(f64, f64) -> bool| {
                samples.iter().filter(|sample| sample.0 == b && keep(sample.1, median_ms)).count()
            };
            let all = of(|_, _| true);
            prop_assert!(2 * of(|sample_ms, median_ms| sample_ms < median_ms) <= all);
            prop_assert!(2 * of(|sample_ms, median_ms| sample_ms > median_ms) <= all);
        }
    }

    #[test]
    fn the_largest_batch_within_a_budget_is_the_one_a_linear_scan_finds(
        points in points(),
        max_batch in 1..400u32,
        budget_ms in 0.0..100.0,
        per_request_ms in prop_oneof![Just(0.0), 0.0..1.0],
    ) {
        let profile = LatencyProfile::from_points(&points, max_batch, Beyond::Extrapolate).unwrap();
        // Also budgets that some batch meets to the nanosecond.
        let per_request = ms(per_request_ms);
        let exact = profile.latency(max_batch / 2) + per_request * u64::from(max_batch / 2);
        for budget in [ms(budget_ms), exact, exact - Span::from_nanos(1), Span::MAX] {
            let scanned = (1..=max_batch)
                .filter(|&b| per_request * u64::from(b) + profile.latency(b) <= budget)
                .max()
                .unwrap_or(0);
            prop_assert_eq!(profile.largest_within(budget, per_request), scanned);
        }
    }

    #[test]
    fn a_scaled_profile_never_falls_and_is_undone_by_the_inverse(
        alpha_ms in 0.0..10.0f64, beta_ms in 0.001..100.0f64, factor in 0.01..100.0f64,
    ) {
        let profile = LatencyProfile::linear(alpha_ms, beta_ms, 64).unwrap();
        let scaled = profile.scaled(factor).unwrap();
        let back = scaled.scaled(1.0 / factor).unwrap();
        prop_assert_eq!(scaled.max_batch(), 64);
        for b in 1..=64 {
            prop_assert!(scaled.latency(b + 1) >= scaled.latency(b));
            let off = back.latency(b).as_nanos().abs_diff(profile.latency(b).as_nanos());
            prop_assert!(off as f64 <= 1.0 + 1.0 / factor, "{} ns", off);
        }
    }
}
