use proptest::prelude::*;

use super::*;
use crate::mix::ModelSpec;

fn models(weights: &[f64]) -> Vec<ModelLoad> {
    let named = |(i, &weight): (usize, &f64)| {
        let spec = ModelSpec { name: format!("m{i}"), weight: Some(weight), ..ModelSpec::default() };
        spec.or(&ModelSpec::default())
    };
    weights.iter().enumerate().map(named).collect()
}

fn arrivals() -> impl Strategy<Value = Arrival> {
    prop_oneof![
        Just(Arrival::Poisson),
        Just(Arrival::Uniform),
        (0.05..4.0f64).prop_map(|shape| Arrival::Gamma { shape }),
    ]
}

proptest! {
    #[test]
    fn requests_come_in_order_inside_the_run_and_again_alike(
        weights in prop::collection::vec(0.1..10.0f64, 1..6),
        arrival in arrivals(),
        rate in 1.0..2_000.0f64,
        seed in any::<u64>(),
    ) {
        let (models, length) = (models(&weights), Duration::from_secs(2));
        let plan = Plan::new(&models, &arrival, rate, seed, length);
        let all: Vec<Due> = plan.clone().collect();
        prop_assert!(all.is_sorted());
        prop_assert!(all.iter().all(|due| due.at < length && due.model < models.len()));
        prop_assert_eq!(&all, &Plan::new(&models, &arrival, rate, seed, length).collect::<Vec<_>>());
        let from = Duration::from_secs(1);
        let counted = all.iter().filter(|due| due.at >= from).count() as u64;
        prop_assert_eq!(plan.counts_from(from).iter().sum::<u64>(), counted);
    }
}

#[test]
fn models_share_the_rate_by_weight() {
    let plan = Plan::new(&models(&[1.0, 3.0]), &Arrival::Uniform, 400.0, 1, Duration::from_secs(10));
    let counts = plan.counts_from(Duration::ZERO);
    assert!(counts[0].abs_diff(1_000) <= 1 && counts[1].abs_diff(3_000) <= 1, "{counts:?}");
}

#[test]
fn a_model_added_leaves_the_others_requests_as_they_were() {
    let length = Duration::from_secs(5);
    let of_first = |weights: &[f64], rate: f64| -> Vec<Duration> {
        let plan = Plan::new(&models(weights), &Arrival::Poisson, rate, 7, length);
        plan.filter(|due| due.model == 0).map(|due| due.at).collect()
    };
    assert_eq!(of_first(&[1.0], 100.0), of_first(&[1.0, 1.0], 200.0));
}

#[test]
fn without_a_rate_nothing_is_sent() {
    assert_eq!(Plan::new(&models(&[1.0]), &Arrival::Poisson, 0.0, 1, Duration::from_secs(5)).count(), 0);
}
