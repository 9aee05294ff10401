//! Problems for tests.

use downbeat_profile::LatencyProfile;
use proptest::prelude::*;

use crate::problem::{Device, Model, Problem};

/// A model: requests per second, SLO, weights, and l(b) = alpha b + beta in milliseconds.
pub(crate) fn model(
    name: &str,
    rate_rps: f64,
    slo_ms: f64,
    weights_mib: f64,
    alpha: f64,
    beta: f64,
) -> Model {
    Model {
        name: name.to_owned(),
        rate_rps,
        slo_ms,
        weights_mib,
        activation_mib: weights_mib / 10.0,
        profiles: vec![Some(LatencyProfile::linear(alpha, beta, 32).expect("a profile"))],
    }
}

pub(crate) fn problem(memory_mib: f64, models: Vec<Model>) -> Problem {
    Problem {
        name: "test".to_owned(),
        devices: vec![Device { name: "gpu".to_owned(), memory_mib, units: 1, slice: None }],
        units_per_gpu: 1,
        gpu: None,
        gpus: None,
        models,
        notes: Vec::new(),
    }
}

/// Random problems of so many models, each of which can run alone.
pub(crate) fn problems(models: std::ops::RangeInclusive<usize>) -> impl Strategy<Value = Problem> {
    let one = (10.0..2000.0f64, 0usize..4, 100.0..6000.0f64, 0.1..1.5f64, 0.5..6.0f64);
    prop::collection::vec(one, models).prop_map(|models| {
        let models = models.into_iter().enumerate().map(|(index, (rate, slo, weights, alpha, beta))| {
            model(&format!("m{index}"), rate, [20.0, 40.0, 80.0, 200.0][slo], weights, alpha, beta)
        });
        problem(10_000.0, models.collect())
    })
}
