use proptest::prelude::*;

use crate::{Need, Pressure};

#[test]
fn a_model_scatters_by_what_is_not_always_in_use_and_by_a_quarter_at_most() {
    let scatter = |need: f64| Need::new(need, 0.0).scatter_millionths();
    assert_eq!([0.0, 0.1, 0.5, 0.9, 7.0].map(scatter), [0, 90_000, 250_000, 250_000, 250_000]);
}

/// [`Pressure::randomness`] of models with these needs on 100 devices.
fn randomness(needs: &[f64], deviation: f64) -> f64 {
    randomness_on(100, needs, deviation)
}

fn randomness_on(gpus: u32, needs: &[f64], deviation: f64) -> f64 {
    let scatter = needs.iter().map(|&need| Need::new(need, 0.0).scatter_millionths()).sum();
    Pressure::reckon_randomness(Need::new(needs.iter().sum(), deviation), scatter, gpus)
}

/// Thirty-two models that need a device each scatter by a quarter each: 8 of 32. Bursts that deviate by 2 devices,
/// twice that are 4, add 16: 24 of 32.
#[test]
fn what_is_random_is_what_scatters_and_bursts() {
    assert_eq!(randomness(&[1.0; 32], 0.0), 0.25);
    assert_eq!(randomness(&[1.0; 32], 2.0), 0.75);
    assert_eq!(randomness(&[1.0; 32], 8.0), 1.0);
    assert_eq!(randomness(&[8.0], 0.0), 0.03125);
    assert_eq!(randomness(&[0.25; 4], 0.0), 0.75);
    assert_eq!(randomness(&[], 0.0), 1.0);
}

#[test]
fn everything_is_random_where_more_is_needed_than_there_is() {
    assert_eq!([33, 32, 8].map(|gpus| randomness_on(gpus, &[1.0; 32], 0.0)), [0.25, 1.0, 1.0]);
}

proptest! {
    #[test]
    fn randomness_is_a_share(needs in prop::collection::vec(0.0f64..20.0, 0..40), deviation in 0.0f64..30.0) {
        let share = randomness(&needs, deviation);
        prop_assert!(share > 0.0 && share <= 1.0, "{}", share);
    }

    #[test]
    fn the_same_traffic_is_more_random_where_more_models_bring_it(need in 0.1f64..30.0, models in 1usize..40) {
        let of = |models: usize| randomness(&vec![need / models as f64; models], 0.0);
        prop_assert!(of(models) <= of(models + 1) + 1e-3);
    }
}
