use super::*;

#[test]
fn the_nearest_slo_is_one_that_the_rule_counts() {
    assert_eq!(least_slo(Rule::Paper, 4.03), 4.1);
    assert_eq!(least_slo(Rule::Half, 4.03), 8.1);
    let staggered = least_slo(Rule::Staggered, 4.03);
    assert!((4.1..=4.3).contains(&staggered), "{staggered}");
}

#[test]
fn the_nearest_slo_is_found_at_any_scale() {
    for latency in [1e-4, 0.05, 7.3, 5_000.03, 1e7, 1e300, f64::MAX] {
        for rule in [Rule::Paper, Rule::Half, Rule::Staggered, Rule::Measured] {
            let slo = least_slo(rule, latency);
            assert!(slo >= latency && slo <= latency * 2.01 + 0.1, "{rule}: {latency} -> {slo}");
        }
    }
    assert_eq!(least_slo(Rule::Half, 5_000.03), 10_000.1);
}

#[test]
fn a_search_that_found_nothing_says_so_instead_of_giving_an_empty_reason() {
    let said = Infeasible::Pools { short: Vec::new(), proved: false }.to_string();
    assert_eq!(said, "no plan was found before the search ended; give it more time with --time-limit");
}
