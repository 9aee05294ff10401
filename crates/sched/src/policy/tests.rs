use proptest::prelude::*;

use super::{Need, Pressure};

#[test]
fn a_model_scatters_by_what_is_not_always_in_use_and_by_a_quarter_at_most() {
    let scatter = |need: f64| Need::new(need, 0.0).scatter_millionths();
    assert_eq!([0.0, 0.1, 0.5, 0.9, 7.0].map(scatter), [0, 90_000, 250_000, 250_000, 250_000]);
}

proptest! {
    /// However its parts are divided among models, the traffic is taken to be between even and random.
    #[test]
    fn randomness_is_a_share(needs in prop::collection::vec(0.0f64..20.0, 0..40), deviation in 0.0f64..30.0) {
        let scatter = needs.iter().map(|&need| Need::new(need, 0.0).scatter_millionths()).sum::<u64>();
        let need = Need::new(needs.iter().sum(), deviation);
        let pressure = Pressure { need, scatter: scatter as f64 / 1e6, ..Pressure::default() };
        prop_assert!(pressure.randomness() > 0.0 && pressure.randomness() <= 1.0);
    }

    /// The same traffic is more random where more models bring it.
    #[test]
    fn more_models_are_more_random(need in 0.1f64..30.0, models in 1u64..40) {
        let randomness = |models: u64| {
            let part = Need::new(need / models as f64, 0.0);
            let scatter = (models * part.scatter_millionths()) as f64 / 1e6;
            Pressure { need: Need::new(need, 0.0), scatter, ..Pressure::default() }.randomness()
        };
        prop_assert!(randomness(models) <= randomness(models + 1) + 1e-3);
    }
}
