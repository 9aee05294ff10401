use proptest::prelude::*;

use super::cover;
use crate::problem::Problem;
use crate::testing::{Table, problem_of, random_tables};

/// The cheapest pattern by trying all of them up to a count per kind.
fn brute_force(problem: &Problem, service: usize, prices: &[f64], most: u32) -> Option<f64> {
    let mut best: Option<f64> = None;
    let mut counts = vec![0; prices.len()];
    loop {
        if problem.is_served(service, &counts) {
            let worth: f64 = counts.iter().zip(prices).map(|(&count, price)| f64::from(count) * price).sum();
            best = Some(best.map_or(worth, |best| best.min(worth)));
        }
        let mut at = 0;
        while at < counts.len() && counts[at] == most {
            counts[at] = 0;
            at += 1;
        }
        if at == counts.len() {
            return best;
        }
        counts[at] += 1;
    }
}

/// The problem with so many replicas wanted; where `idle`, one instance of a service alone serves nothing, and two do.
fn with_replicas(tables: &[Table], replicas: u32, idle: bool) -> Problem {
    let mut tables = tables.to_vec();
    for capacities in tables.iter_mut().flat_map(|(_, slices)| slices.iter_mut().flatten()).filter(|_| idle) {
        capacities[0] = 0.0;
    }
    let mut problem = problem_of(&tables);
    for service in &mut problem.services {
        service.min_replicas = replicas;
    }
    problem
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn the_cheapest_cover_is_that_of_brute_force(
        tables in random_tables(1, 6.0),
        prices in prop::collection::vec(0.0f64..1.0, 5),
        replicas in 1u32..6,
        idle in 0u8..3,
    ) {
        let problem = with_replicas(&tables, replicas, idle == 0);
        let found = cover::cheapest(&problem, 0, &prices);
        let expected = brute_force(&problem, 0, &prices, 6);
        if let Some(expected) = expected {
            let (pattern, bound) = found.unwrap();
            prop_assert!(problem.is_served(0, &pattern.counts));
            // More than six of a kind may be cheaper still: brute force is an upper bound then.
            prop_assert!(pattern.worth <= expected + 1e-9, "{} > {expected}", pattern.worth);
            prop_assert!(bound <= pattern.worth + 1e-12);
            if pattern.counts.iter().all(|&count| count <= 6) {
                prop_assert!((pattern.worth - expected).abs() < 1e-9, "{} != {expected}", pattern.worth);
            }
        }
    }

    #[test]
    fn the_patterns_within_a_limit_are_all_that_there_are(
        tables in random_tables(1, 3.0),
        replicas in 1u32..5,
        idle in 0u8..3,
    ) {
        let problem = with_replicas(&tables, replicas, idle == 0);
        let prices = [0.14, 0.28, 0.43, 0.57, 1.0];
        let Some((best, _)) = cover::cheapest(&problem, 0, &prices) else { return Ok(()) };
        let (found, complete) = cover::all_within(&problem, 0, &prices, best.worth + 0.3, 10_000);
        prop_assert!(complete);
        prop_assert!((found[0].worth - best.worth).abs() < 1e-9);
        for pattern in &found {
            prop_assert!(problem.is_served(0, &pattern.counts));
        }
        // Any served set worth no more has one of them inside.
        let mut counts = [0u32; 5];
        for code in 0..4u32.pow(5) {
            for (slice, count) in counts.iter_mut().enumerate() {
                *count = code / 4u32.pow(slice as u32) % 4;
            }
            let worth: f64 = counts.iter().zip(&prices).map(|(&count, price)| f64::from(count) * price).sum();
            if problem.is_served(0, &counts) && worth < best.worth + 0.3 - 1e-6 {
                let inside = found.iter().any(|pattern| pattern.counts.iter().zip(&counts).all(|(a, b)| a <= b));
                prop_assert!(inside, "{counts:?}");
            }
        }
    }
}
