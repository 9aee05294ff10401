use std::path::Path;

use super::{BAD_RATE_MAX, GoodputSearch, MOST_REQUESTS};
use crate::{Arrival, PolicySpec, RatePiece, RateTrace, Scenario, Span};

fn scenario(head: &str, slo_ms: f64) -> Scenario {
    let text = format!(
        "{head}\n[[model]]\nname = \"a\"\nslo_ms = {slo_ms}\nprofile = {{ alpha_ms = 1, beta_ms = 5, max_batch = 16 }}"
    );
    Scenario::parse(&text, Path::new("test.toml")).unwrap()
}

fn policies(names: &[&str]) -> Vec<PolicySpec> {
    names.iter().map(|name| name.parse().unwrap()).collect()
}

/// Of no policies, yet.
fn search(scenario: &Scenario) -> GoodputSearch<'_> {
    GoodputSearch { scenario, policies: &[], seeds: 1, rarest_requests: GoodputSearch::RAREST_REQUESTS }
}

/// Low for 90 s of 100, and high in between.
fn with_peak(mut scenario: Scenario) -> Scenario {
    let piece = |end_s: u64, rate: f64| RatePiece { end: Span::from_millis(1_000 * end_s), rate };
    let pieces = vec![piece(45, 1.0), piece(55, 10.0), piece(100, 1.0)];
    scenario.models[0].arrival = Arrival::Trace(RateTrace::from_pieces(pieces).unwrap().into());
    scenario
}

#[test]
fn runs_cover_whole_passes_of_a_pattern_that_is_longer_than_they_need() {
    let scenario = with_peak(scenario("gpus = 1\ntotal_rps = 100\nduration_s = 12", 40.0));
    let search = GoodputSearch { policies: &policies(&["eager"]), ..search(&scenario) };
    assert_eq!(search.long_enough(5_000.0, 1_000.0).duration, Span::from_millis(101_000));
    assert_eq!(search.long_enough(40.0, 5_000.0).duration, Span::from_millis(201_000));

    // The peak is more than five times the mean, so that goodput must stay far below the bound, which is of the mean.
    let report = search.run(&|| {}).unwrap();
    let found = &report.policies["eager"];
    assert!(found.ratio_to_bound < 0.3, "{}", found.ratio_to_bound);
    let offered = found.at_goodput.as_ref().unwrap().offered_rps;
    assert!((offered / found.goodput_rps - 1.0).abs() < 0.05, "{offered} of {}", found.goodput_rps);
}

#[test]
fn a_goodput_past_the_bound_is_a_rate_after_which_one_failed() {
    // In a burst a batch fills at once, while evenly spaced arrivals, which the bound supposes, never fill one.
    let scenario =
        scenario("gpus = 1\ntotal_rps = 100\narrival = { kind = \"gamma\", shape = 0.001 }", 6.001);
    let search = GoodputSearch { policies: &policies(&["eager"]), ..search(&scenario) };
    let found = &search.run(&|| {}).unwrap().policies["eager"];
    let last_fails = found.curve.iter().any(|point| point.bad_rate_worst > BAD_RATE_MAX);
    assert_eq!(found.capped, !last_fails);
}

#[test]
fn a_model_with_hardly_any_traffic_does_not_make_a_run_endless() {
    let text = "gpus = 1\ntotal_rps = 100\n\
        [[model]]\nname = \"a\"\nslo_ms = 40\nprofile = { alpha_ms = 1, beta_ms = 5, max_batch = 16 }\n\
        [[model]]\nname = \"b\"\nweight = 1e-9\nslo_ms = 40\nprofile = { alpha_ms = 1, beta_ms = 5, max_batch = 16 }";
    let scenario = Scenario::parse(text, Path::new("test.toml")).unwrap();
    let search = search(&scenario);
    let measured_s = search.long_enough(1_000.0, 5_000.0).duration.as_secs_f64() - 1.0;
    assert!(measured_s <= MOST_REQUESTS / 1_000.0);
    let report = search.run(&|| {}).unwrap();
    assert_eq!(report.rarest_requests, 0);
    assert!(report.notes[0].starts_with("model \"b\" is so rare that"), "{:?}", report.notes);
}

#[test]
fn a_policy_that_cannot_run_the_scenario_is_refused_before_any_search() {
    let text = "total_rps = 100\n[[gpu_class]]\nname = \"x\"\ncount = 1\n[[gpu_class]]\nname = \"y\"\ncount = 1\n\
        [[model]]\nname = \"a\"\nslo_ms = 40\nprofiles = { x = { alpha_ms = 1, beta_ms = 5, max_batch = 16 } }";
    let scenario = Scenario::parse(text, Path::new("test.toml")).unwrap();
    let search = GoodputSearch { policies: &policies(&["guarded", "nexus"]), ..search(&scenario) };
    let error = search.run(&|| panic!("a search was made")).unwrap_err();
    assert!(error.to_string().contains("nexus cannot run test"), "{error}");
}

#[test]
fn a_model_that_no_rate_suits_is_named() {
    let scenario = scenario("gpus = 1\ntotal_rps = 100\nresponse_reserve_us = 500", 6.0);
    let search = GoodputSearch { policies: &policies(&["eager"]), ..search(&scenario) };
    let report = search.run(&|| {}).unwrap();
    let note =
        "model \"a\" cannot meet its SLO of 6 ms at any rate: a request alone on an idle device takes 6.5 ms";
    assert_eq!((report.fluid_bound_rps, report.notes), (0.0, vec![note.to_owned()]));
}
