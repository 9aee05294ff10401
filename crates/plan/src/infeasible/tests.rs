use super::*;

#[test]
fn the_nearest_slo_is_one_that_the_rule_counts() {
    assert_eq!(least_slo(Rule::Paper, 4.03), 4.1);
    assert_eq!(least_slo(Rule::Half, 4.03), 8.1);
    let staggered = least_slo(Rule::Staggered, 4.03);
    assert!((4.1..=4.3).contains(&staggered), "{staggered}");
}
