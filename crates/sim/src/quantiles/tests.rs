use proptest::prelude::*;
use rand::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;

use super::Quantiles;
use crate::Span;

fn us(us: u64) -> Span {
    Span::from_micros(us)
}

#[test]
fn between_two_quantiles_times_are_even() {
    let quantiles = Quantiles::new(vec![(0.5, us(100)), (0.75, us(200)), (1.0, us(1_000))]).unwrap();
    assert_eq!(
        [0.0, 0.25, 0.5, 0.625, 0.75, 1.0].map(|share| quantiles.at(share)),
        [0, 50, 100, 150, 200, 1_000].map(us)
    );
}

#[test]
fn what_is_no_distribution_is_refused() {
    for points in [
        vec![],
        vec![(0.5, us(1))],
        vec![(0.0, us(1)), (1.0, us(2))],
        vec![(0.5, us(2)), (1.0, us(1))],
        vec![(0.5, us(1)), (0.5, us(2)), (1.0, us(3))],
        vec![(f64::NAN, us(1)), (1.0, us(3))],
    ] {
        assert_eq!(Quantiles::new(points.clone()), None, "{points:?}");
    }
}

proptest! {
    /// Draws many and counts: each share comes out as it was given, to within what chance allows.
    #[test]
    fn drawn_times_have_the_quantiles_that_were_given(
        mut times in prop::collection::vec(1u64..10_000, 1..5), seed in any::<u64>(),
    ) {
        times.sort_unstable();
        let count = times.len() as f64;
        let points: Vec<_> = (1..).zip(&times).map(|(n, &time)| (f64::from(n) / count, us(time))).collect();
        let quantiles = Quantiles::new(points.clone()).unwrap();
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let drawn: Vec<Span> = (0..4_000).map(|_| quantiles.draw(&mut random)).collect();
        for (share, time) in points {
            let within = drawn.iter().filter(|drawn| **drawn <= time).count() as f64 / 4_000.0;
            // More, where another quantile has the same time.
            prop_assert!(within > share - 0.05, "{within} within {time:?}, not {share}");
            let below = drawn.iter().filter(|drawn| **drawn < time).count() as f64 / 4_000.0;
            prop_assert!(below < share + 0.05, "{below} below {time:?}, not {share}");
        }
    }
}
