use std::path::Path;

use proptest::prelude::*;

use super::{fluid_bound_rps, fluid_first_shortage_rps};
use crate::Scenario;

fn named(name: &str) -> Scenario {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    Scenario::load(&folder.join(name).with_extension("toml")).unwrap()
}

fn parsed(text: &str) -> Scenario {
    Scenario::parse(text, Path::new("test.toml")).unwrap()
}

fn assert_near(value: f64, expected: f64) {
    assert!((value / expected - 1.0).abs() < 5e-4, "{value} is not near {expected}");
}

/// From an independent simulator, which bisects and so finds the first shortage. The largest feasible rate was found by
/// scanning a grid of rates with a third, independent program.
#[test]
fn the_bound_agrees_with_independent_programs() {
    for (name, first_shortage, bound) in [
        ("one-model-8gpu", 5599.0, 5598.6),
        ("one-model-32gpu", 23053.0, 23052.8),
        ("eight-models-8gpu", 5802.0, 5801.5),
        ("mixed-24-models-8gpu", 3455.0, 3496.8),
        ("h200-10-models-2gpu", 3365.0, 3421.8),
        ("network-delays", 5580.9, 5580.9),
        ("zipf-100-models-32gpu", 16405.6, 16405.6),
    ] {
        let scenario = named(name);
        assert_near(fluid_first_shortage_rps(&scenario), first_shortage);
        assert_near(fluid_bound_rps(&scenario), bound);
    }
}

#[test]
fn a_model_that_cannot_meet_its_slo_alone_makes_the_bound_zero() {
    let text = "gpus = 4\ntotal_rps = 10\n[[model]]\nname = \"a\"\nslo_ms = 5\n\
                profile = { alpha_ms = 1, beta_ms = 5, max_batch = 8 }\n";
    assert_eq!(fluid_bound_rps(&parsed(text)), 0.0);
    assert_eq!(fluid_first_shortage_rps(&parsed(text)), 0.0);
}

#[test]
fn a_batch_of_one_that_just_fits_is_counted() {
    let text = "gpus = 4\ntotal_rps = 10\n[[model]]\nname = \"a\"\nslo_ms = 5\n\
                profile = { alpha_ms = 1, beta_ms = 4, max_batch = 8 }\n";
    assert_near(fluid_bound_rps(&parsed(text)), 800.0);
}

#[test]
fn two_classes_that_are_alike_are_as_good_as_one() {
    let model = |name, slo| {
        let profile = "{ alpha_ms = 1.082, beta_ms = 5.204, max_batch = 128 }";
        format!(
            "[[model]]\nname = \"{name}\"\nslo_ms = {slo}\nprofiles = {{ a = {profile}, b = {profile} }}\n"
        )
    };
    let classes =
        "total_rps = 10\n[[gpu_class]]\nname = \"a\"\ncount = 3\n[[gpu_class]]\nname = \"b\"\ncount = 5\n";
    let models: String = (0..8).map(|i| model(format!("m{i}"), 25 + 10 * i)).collect();
    let split = parsed(&format!("{classes}{models}"));
    assert_near(fluid_bound_rps(&split), fluid_bound_rps(&named("eight-models-8gpu")));
}

/// By hand: `x` runs on fast devices only, 4 ms each; `y` costs 4 ms on fast ones and 8 ms on slow ones. At equal rates
/// r, the slow device takes 125 rps of `y`, the fast ones the rest: 0.004 r + 0.004 (r - 125) = 2, so r = 312.5.
#[test]
fn rates_are_split_between_classes_as_a_hand_worked_example_says() {
    let text = r#"
        total_rps = 10
        gpu_class = [{ name = "fast", count = 2 }, { name = "slow", count = 1 }]
        [[model]]
        name = "x"
        slo_ms = 100
        profiles = { fast = { alpha_ms = 4, beta_ms = 0, max_batch = 1 } }
        [[model]]
        name = "y"
        slo_ms = 100
        profiles = { fast = { alpha_ms = 4, beta_ms = 0, max_batch = 1 }, slow = { alpha_ms = 8, beta_ms = 0, max_batch = 1 } }
    "#;
    assert_near(fluid_bound_rps(&parsed(text)), 625.0);
    assert_near(fluid_first_shortage_rps(&parsed(text)), 625.0);
}

/// Device time needed at a total rate, straight from the definition. Infinite where an SLO cannot be met.
fn need(scenario: &Scenario, total_rps: f64) -> f64 {
    let of_model = |model: &crate::Model| {
        let rate = total_rps * model.share;
        let profile = model.profiles[0].as_ref().unwrap();
        let budget_s = (model.slo - scenario.response_reserve).as_secs_f64();
        let fits = |b: &u32| {
            let takes = scenario.delays.lead(*b) + profile.latency(*b);
            f64::from(*b - 1) / rate + takes.as_secs_f64() <= budget_s
        };
        let largest = (1..=profile.max_batch()).rev().find(fits);
        largest.map_or(f64::INFINITY, |b| rate * profile.latency(b).as_secs_f64() / f64::from(b))
    };
    scenario.models.iter().map(of_model).sum()
}

proptest! {
    #[test]
    fn the_bound_is_the_largest_feasible_rate_and_everything_up_to_the_first_shortage_is_feasible(
        gpus in 1u32..20,
        models in prop::collection::vec((0.01..3.0f64, 0.1..10.0f64, 1u32..40, 1.0..5.0f64, 0.1..10.0f64), 1..6),
        delay_us in 0u32..500,
    ) {
        let mut text = format!("gpus = {gpus}\ntotal_rps = 1\ncontrol_delay_us = {delay_us}\ndata_delay_us = 10\n");
        for (i, (alpha, beta, max_batch, slo, weight)) in models.iter().enumerate() {
            let slo_ms = 1.0 + slo * (alpha + beta);
            text += &format!("[[model]]\nname = \"m{i}\"\nslo_ms = {slo_ms}\nweight = {weight}\n");
            text += &format!("profile = {{ alpha_ms = {alpha}, beta_ms = {beta}, max_batch = {max_batch} }}\n");
        }
        let scenario = parsed(&text);
        let (shortage, bound) = (fluid_first_shortage_rps(&scenario), fluid_bound_rps(&scenario));
        let enough = f64::from(gpus) * (1.0 + 1e-6);
        prop_assert!(0.0 < shortage && shortage <= bound);
        prop_assert!(need(&scenario, bound * (1.0 - 1e-7)) <= enough);
        for step in 1..400 {
            let part = f64::from(step) / 400.0;
            prop_assert!(need(&scenario, shortage * part) <= enough);
            prop_assert!(need(&scenario, bound * (1.0 + part * part)) > f64::from(gpus));
        }
    }
}
