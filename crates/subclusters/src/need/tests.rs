use proptest::prelude::*;

use super::{CALM, Needs, capacity, filled, wait_share};
use crate::testing::{model, problem, problems};
use downbeat_profile::LatencyProfile;

#[test]
fn the_wait_falls_with_the_number_of_devices_until_there_is_none() {
    assert!((wait_share(1) - (1.0 - 0.01 / 0.7)).abs() < 1e-12);
    assert!((1..30).all(|count| wait_share(count + 1) <= wait_share(count)));
    assert!(wait_share(CALM - 1) > 0.0 && wait_share(CALM) == 0.0);
}

/// l(b) = b + 5: at 1,000 a second a batch of b is full after b - 1 ms, so that 2 b + 4 must be within the SLO.
#[test]
fn a_batch_is_as_large_as_its_arrivals_fill_in_time() {
    let profile = LatencyProfile::linear(1.0, 5.0, 32).unwrap();
    let batch = |wait, rhythm| filled(&profile, 1000.0, 30.0, wait, rhythm).map(|filled| filled.batch);
    assert_eq!(batch(0.0, 100.0), Some(13));
    assert_eq!(batch(6.0, 100.0), Some(10));
    assert_eq!(batch(0.0, 9.0), Some(4), "no longer than the rhythm");
    assert_eq!(batch(0.0, 5.9), None, "not even one request");
    assert_eq!(batch(24.1, 100.0), None);
    let load = filled(&profile, 1000.0, 30.0, 0.0, 100.0).unwrap().load;
    assert!((load - 18.0 / 13.0).abs() < 1e-12);
}

/// Batches of 50 ms, and an SLO of 20 ms: only several devices have one that is free soon enough.
#[test]
fn long_batches_and_short_objectives_need_several_devices() {
    let quick = model("quick", 10.0, 20.0, 100.0, 0.1, 1.0);
    let long = model("long", 1.0, 1000.0, 100.0, 0.1, 50.0);
    let needs = Needs::of(&problem(1000.0, vec![quick, long]));
    assert_eq!(needs.of_set(&[0]).unwrap().count, 1);
    assert_eq!(needs.of_set(&[1]).unwrap().count, 1);
    let together = needs.of_set(&[0, 1]).unwrap().count;
    assert!((4..=8).contains(&together), "{together}");
}

#[test]
fn what_does_not_fit_into_memory_has_no_devices() {
    let large = |name| model(name, 10.0, 50.0, 500.0, 0.1, 1.0);
    let needs = Needs::of(&problem(1049.0, vec![large("a"), large("b")]));
    assert_eq!(needs.of_set(&[0, 1]), None, "500 + 500 of weights, and an activation of 50");
    let needs = Needs::of(&problem(1050.0, vec![large("a"), large("b")]));
    assert!(needs.of_set(&[0, 1]).is_some());
}

#[test]
fn sizes_past_the_table_follow_the_load() {
    let busy = model("busy", 200_000.0, 100.0, 100.0, 0.5, 1.0);
    let needs = Needs::of(&problem(1000.0, vec![busy]));
    let choice = needs.of_set(&[0]).unwrap();
    assert!(choice.count > 2 * CALM);
    let load = needs.loads(0)[needs.kinds.len() - 1];
    assert!(capacity(choice.count) >= load && capacity(choice.count - 1) < load);
}

proptest! {
    /// What the exact solver's covering relies on.
    #[test]
    fn a_set_never_needs_less_than_a_part_of_it(problem in problems(2..=8), without in 0usize..8) {
        let needs = Needs::of(&problem);
        let all: Vec<usize> = (0..needs.models()).collect();
        let part: Vec<usize> = all.iter().copied().filter(|&model| model != without).collect();
        if let Some(whole) = needs.of_set(&all) {
            prop_assert!(needs.of_set(&part).is_none_or(|part| part.cost <= whole.cost));
            prop_assert!(part.is_empty() || needs.of_set(&part).is_some());
        }
    }
}
