use std::path::Path;
use std::sync::Arc;

use downbeat_sched::{Span, Time};
use proptest::prelude::*;

use super::Arrivals;
use crate::scenario::{Arrival, RateTrace};

fn trace(text: &str) -> Arrival {
    Arrival::Trace(Arc::new(RateTrace::parse(text, Path::new("t.csv")).unwrap()))
}

fn surges() -> Arrival {
    Arrival::OnOff { on: Span::from_millis(500), off: Span::from_millis(1_500), factor: 4.0 }
}

fn times(arrival: &Arrival, rate_rps: f64, seed: u64, model: usize, count: usize) -> Vec<Time> {
    let mut arrivals = Arrivals::new(arrival, rate_rps, seed, model);
    (0..count).map(|_| arrivals.next()).collect()
}

fn seconds(times: &[Time]) -> Vec<f64> {
    times.iter().map(|time| time.since_origin().as_secs_f64()).collect()
}

/// Any arrival process, with the standard deviation of the number of arrivals over the root of its mean.
fn any_arrival() -> impl Strategy<Value = (Arrival, f64)> {
    prop_oneof![
        Just((Arrival::Poisson, 1.0)),
        Just((Arrival::Uniform, 0.1)),
        (0.05..4.0f64).prop_map(|shape| (Arrival::Gamma { shape }, (1.0 / shape).sqrt())),
        (1u64..400, 1u64..400, 1.0..50.0f64).prop_map(|(on, off, factor)| {
            (Arrival::OnOff { on: Span::from_millis(on), off: Span::from_millis(off), factor }, 1.0)
        }),
        (0.0..9.0f64, 0.1..9.0f64, 0.0..9.0f64)
            .prop_map(|(a, b, c)| (trace(&format!("time_s,rate\n0,{a}\n0.1,{b}\n0.35,{c}\n0.5,0\n")), 1.0)),
    ]
}

proptest! {
    #[test]
    fn arrivals_are_repeatable_never_go_back_and_keep_their_mean_rate(
        (arrival, deviation) in any_arrival(),
        rate in 200.0..5_000.0f64,
        seed: u64,
        model in 0usize..1_000,
    ) {
        let count = 20_000;
        let first = times(&arrival, rate, seed, model, count);
        prop_assert_eq!(&first, &times(&arrival, rate, seed, model, count));
        prop_assert!(first.is_sorted());
        let length_s = first.last().unwrap().since_origin().as_secs_f64();
        // Five standard deviations, and the part of a surge or trace that the end may cut through.
        let slack = 5.0 * deviation * (count as f64).sqrt() + rate;
        prop_assert!((length_s * rate - count as f64).abs() < slack, "{length_s} s for {count} at {rate} rps");
    }

    #[test]
    fn at_twice_the_rate_the_same_arrivals_come_twice_as_fast(shape in 0.05..4.0f64, rate in 1.0..1e5f64, seed: u64) {
        for arrival in [Arrival::Poisson, Arrival::Uniform, Arrival::Gamma { shape }] {
            let slow = times(&arrival, rate, seed, 3, 100);
            let fast = times(&arrival, 2.0 * rate, seed, 3, 100);
            for (slow, fast) in slow.iter().zip(&fast) {
                prop_assert!((slow.as_nanos() / 2).abs_diff(fast.as_nanos()) <= 1);
            }
        }
    }

    /// However slow the model or short the trace, the walk along the trace ends.
    #[test]
    fn extreme_rates_and_traces_still_give_the_next_arrival(
        rate_exponent in -12.0..9.0f64,
        length_exponent in -9.0..6.5f64,
        seed: u64,
    ) {
        let length_s = 10f64.powf(length_exponent);
        let arrival = trace(&format!("time_s,rate\n0,0\n{length_s:.9},1e-9\n{:.9},0\n", 2.1 * length_s + 2e-9));
        let arrivals = times(&arrival, 10f64.powf(rate_exponent), seed, 0, 1_000);
        prop_assert!(arrivals.is_sorted());
    }
}

#[test]
fn nothing_arrives_at_a_rate_of_zero() {
    for rate in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e-300] {
        assert_eq!(times(&Arrival::Poisson, rate, 1, 0, 2), [Time::NEVER; 2]);
    }
}

#[test]
fn models_and_seeds_have_arrivals_of_their_own() {
    for arrival in [Arrival::Poisson, Arrival::Uniform, surges()] {
        let of = |seed, model| times(&arrival, 100.0, seed, model, 3);
        assert_ne!(of(1, 0), of(1, 1));
        assert_ne!(of(1, 0), of(2, 0));
        assert_ne!(of(1, 0), of(0, 1));
    }
}

#[test]
fn gamma_gaps_have_the_variation_their_shape_says() {
    for shape in [0.1, 0.2, 1.0, 3.0] {
        let arrivals = seconds(&times(&Arrival::Gamma { shape }, 1.0, 1, 0, 200_000));
        let gaps: Vec<f64> = arrivals.windows(2).map(|pair| pair[1] - pair[0]).collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
        let squared_variation = variance / mean.powi(2);
        assert!((squared_variation * shape - 1.0).abs() < 0.05, "shape {shape} has {squared_variation}");
    }
}

#[test]
fn uniform_arrivals_are_evenly_spaced_without_drift() {
    let arrivals = times(&Arrival::Uniform, 3.0, 1, 0, 300_001);
    let length = arrivals[300_000].since(arrivals[0]);
    assert!(length.as_nanos().abs_diff(100_000_000_000_000) <= 100, "{length:?}");
}

#[test]
fn a_surge_has_the_factor_it_is_given_and_a_phase_of_its_own() {
    let mut phases = Vec::new();
    for model in 0..4 {
        let arrivals = seconds(&times(&surges(), 1_000.0, 1, model, 200_000));
        // Arrivals by tenth of the two-second cycle: a quarter of the time at four times the rate is 4/7 of all.
        let mut tenths = [0.0; 20];
        for at in &arrivals {
            tenths[(at * 10.0) as usize % 20] += 1.0 / arrivals.len() as f64;
        }
        let window = |begin: usize| (begin..begin + 5).map(|tenth| tenths[tenth % 20]).sum::<f64>();
        let busiest = (0..20).max_by(|a, b| window(*a).total_cmp(&window(*b))).unwrap();
        assert!((0.5..0.58).contains(&window(busiest)), "{}", window(busiest));
        phases.push(busiest);
    }
    phases.dedup();
    assert!(phases.len() > 1, "all models surge together");
}

#[test]
fn a_trace_is_followed_and_repeated() {
    let arrival = trace("time_s,rate\n0,1\n10,0\n20,3\n30,99\n");
    let arrivals = seconds(&times(&arrival, 100.0, 1, 0, 60_000));
    let share = |from: f64, to: f64| {
        arrivals.iter().filter(|at| (from..to).contains(&(*at % 30.0))).count() as f64 / arrivals.len() as f64
    };
    assert!((share(0.0, 10.0) - 0.25).abs() < 0.02);
    assert_eq!(share(10.0, 20.0), 0.0);
    assert!((share(20.0, 30.0) - 0.75).abs() < 0.02);
    assert!(*arrivals.last().unwrap() > 500.0);
}
