use proptest::prelude::*;

use super::*;

/// Searches for a knee that is sharp; with the rates that were tried.
fn search(first: f64, precision: f64, highest: f64, knee: f64) -> (Found, Vec<f64>) {
    let mut search = Search::new(first, precision, highest);
    let mut tried = Vec::new();
    loop {
        match search.next_rate() {
            Ok(rate) => {
                search.tried(rate, rate <= knee);
                tried.push(rate);
                assert!(tried.len() < 200, "it does not end: {tried:?}");
            }
            Err(found) => return (found, tried),
        }
    }
}

proptest! {
    #[test]
    fn the_knee_is_found_to_the_precision(first in 1.0..1e5f64, knee in 1.0..1e5f64, precision in 0.002..0.5f64) {
        let (found, tried) = search(first, precision, 1e9, knee);
        match found {
            Found::Knee(rate) => prop_assert!(rate <= knee && knee <= rate * (1.0 + precision)),
            Found::Nothing => prop_assert!(knee < first * LOWEST),
            Found::AtLeast(_) => prop_assert!(false),
        }
        let doublings = (first / knee).log2().abs().ceil();
        let halvings = (1.0 / precision).log2().ceil() + 1.0;
        prop_assert!(tried.len() as f64 <= 2.0 + doublings + halvings, "{tried:?}");
    }
}

#[test]
fn a_search_ends_at_the_highest_rate_allowed() {
    assert_eq!(search(100.0, 0.02, 350.0, 1e9), (Found::AtLeast(350.0), vec![100.0, 200.0, 350.0]));
    assert_eq!(search(1_000.0, 0.02, 350.0, 1e9).1, [350.0]);
}

#[test]
fn where_no_rate_passes_the_search_says_so() {
    let (found, tried) = search(1_024.0, 0.02, 1e9, 0.0);
    assert_eq!((found, tried.len()), (Found::Nothing, 11));
}

/// The arrivals of every run that is made at a rate at which all fail, while the machine stalls or not.
fn arrivals_of(tries: u32, mut stalls: impl Iterator<Item = bool>) -> Vec<u64> {
    let mut attempts = Attempts::new(tries);
    let mut made = Vec::new();
    while let Some(arrivals) = attempts.next() {
        made.push(arrivals);
        attempts.failed(stalls.next().unwrap_or(false));
    }
    made
}

#[test]
fn a_rate_that_fails_is_tried_with_other_arrivals() {
    assert_eq!(arrivals_of(3, std::iter::repeat(false)), [0, 1, 2]);
}

#[test]
fn a_run_that_fails_while_the_machine_stalls_is_made_again_with_the_same_arrivals() {
    assert_eq!(arrivals_of(2, [true, true, false, true].into_iter()), [0, 0, 0, 1, 1]);
}

#[test]
fn a_machine_that_always_stalls_does_not_keep_a_search_from_ending() {
    assert_eq!(arrivals_of(2, std::iter::repeat(true)).len(), 2 + EXCUSED_MAX as usize);
}
