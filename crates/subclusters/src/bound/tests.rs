use proptest::prelude::*;

use crate::heuristic::{Search, search};
use crate::need::Needs;
use crate::previous::Homes;
use crate::testing::{model, problem, problems};

/// Ten models of half a device's memory each, hardly used: five devices, and the bound knows.
#[test]
fn memory_alone_is_bounded_tightly() {
    let models = (0..10).map(|i| model(&format!("m{i}"), 1.0, 100.0, 490.0, 0.1, 1.0)).collect();
    let needs = Needs::of(&problem(1029.0, models));
    let bound = super::units(&needs);
    assert!(bound > 4.0 && bound <= 5.0, "{bound}");
}

/// One model that keeps 50 devices busy.
#[test]
fn load_alone_is_bounded_tightly() {
    let models = vec![model("m", 100_000.0, 100.0, 10.0, 0.5, 0.0)];
    let needs = Needs::of(&problem(1000.0, models));
    let count = f64::from(needs.of_set(&[0]).unwrap().count);
    let bound = super::units(&needs);
    assert!(bound <= count && bound > count - 1.1, "{bound} {count}");
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(64) })]
    #[test]
    fn no_division_costs_less_than_the_bound(problem in problems(1..=12)) {
        let needs = Needs::of(&problem);
        let homes = Homes::none(needs.models());
        let found = search(&needs, &homes, &Search { stop: &|| false, enough: 0, seed: 1, on_better: &|_| {} }).unwrap();
        prop_assert!(super::units(&needs) <= found.cost as f64 + 1e-6);
    }
}
