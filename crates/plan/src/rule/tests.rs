use super::*;

const POINTS: [(u32, f64); 4] = [(1, 2.0), (4, 4.0), (16, 10.0), (64, 36.0)];

fn rates(rule: Rule, slo_ms: f64) -> Vec<f64> {
    let Some(curve) = Curve::by_rule(rule, &POINTS, slo_ms) else { return Vec::new() };
    (1..=4).map(|n| (curve.capacity(n) / f64::from(n)).round()).collect()
}

#[test]
fn each_rule_takes_the_best_batch_that_it_finds_in_time() {
    assert_eq!(rates(Rule::Paper, 10.0), [1600.0; 4], "a batch of 16 takes the whole SLO");
    assert_eq!(rates(Rule::Half, 10.0), [1000.0; 4], "a batch of 4 fits twice");
    assert_eq!(rates(Rule::Staggered, 12.0), [1000.0, 1000.0, 1000.0, 1000.0]);
    assert_eq!(
        rates(Rule::Staggered, 14.0),
        [1000.0, 1000.0, 1600.0, 1600.0],
        "from three instances on 16 fits"
    );
    assert!(rates(Rule::Paper, 1.9).is_empty(), "not even a batch of one");
    assert!(rates(Rule::Half, 3.9).is_empty());
    assert_eq!(rates(Rule::Staggered, 3.0), [0.0, 500.0, 500.0, 500.0], "one instance alone cannot, two can");
}

#[test]
fn a_curve_goes_on_as_it_ended() {
    let step = |capacity_rps, batch| Step { capacity_rps, batch };
    let curve = Curve::from_steps(vec![step(10.0, 1), step(30.0, 2), step(25.0, 2)]).unwrap();
    assert_eq!(curve.capacity(0), 0.0);
    assert_eq!(curve.capacity(2), 30.0);
    assert_eq!(curve.capacity(3), 30.0, "the third instance can be left idle");
    assert_eq!(curve.capacity(6), 60.0);
    assert_eq!(curve.best_rate(), 15.0);
    assert_eq!(curve.needed(30.0), 2);
    assert_eq!(curve.needed(30.5), 4);
    assert_eq!(curve.batch(9), 2);
    assert!(Curve::from_steps(vec![step(0.0, 1)]).is_none());
}

#[test]
fn many_instances_gain_as_far_as_the_rule_goes() {
    // 4 and 4.975 ms of 5: a batch of 4 from 4 instances on, one of 8 only from 199 on.
    let points = [(1, 2.0), (4, 4.0), (8, 4.975)];
    let curve = Curve::by_rule(Rule::Staggered, &points, 5.0).unwrap();
    let rate = |n: u32| curve.capacity(n) / f64::from(n);
    assert_eq!((rate(3).round(), rate(4).round(), rate(198).round()), (500.0, 1000.0, 1000.0));
    assert_eq!((rate(199).round(), rate(5000).round()), (1608.0, 1608.0));
    assert_eq!((curve.batch(198), curve.batch(199)), (4, 8));
    assert!((curve.best_rate() - 8.0 / 4.975e-3).abs() < 1e-9, "the bound counts with it");
    assert_eq!(curve.best_rate_to(198).round(), 1000.0);
    for demand in [1.0, 500.0, 3999.0, 4000.0, 190_000.0, 199_000.0, 320_000.0, 1e6, 1e9] {
        let needed = curve.needed(demand);
        assert!(curve.capacity(needed) >= demand, "{demand}");
        assert!(curve.capacity(needed - 1) < demand, "{demand}: {needed}");
    }
}
