use proptest::prelude::*;

use super::*;
use crate::{Beyond, LARGEST_BATCH, Span};

fn close(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-9 * a.abs().max(b.abs()).max(1.0)
}

#[test]
fn points_on_a_line_are_fitted_without_error() {
    let fit = Fit::of(&[(16, 20.0), (1, 5.0), (4, 8.0)]).unwrap();
    assert!(close(fit.alpha_ms, 1.0) && close(fit.beta_ms, 4.0), "{fit:?}");
    assert!(fit.max_relative_error < 1e-12 && fit.rms_relative_error < 1e-12, "{fit:?}");
}

#[test]
fn the_errors_are_relative_to_what_was_measured() {
    // The flat line through 1 and 3 is 2: off by 100 % and by 33 %.
    let fit = Fit::of(&[(1, 3.0), (2, 1.0)]).unwrap();
    assert!(close(fit.alpha_ms, 0.0) && close(fit.beta_ms, 2.0), "{fit:?}");
    assert!(close(fit.max_relative_error, 1.0), "{fit:?}");
    assert!(close(fit.rms_relative_error, ((1.0 + 1.0 / 9.0) / 2.0f64).sqrt()), "{fit:?}");
}

#[test]
fn a_line_that_would_start_below_zero_goes_through_the_origin() {
    let fit = Fit::of(&[(1, 1.0), (2, 4.0)]).unwrap();
    assert!(close(fit.alpha_ms, 9.0 / 5.0) && fit.beta_ms == 0.0, "{fit:?}");
}

#[test]
fn a_single_size_is_fitted_flat() {
    let fit = Fit::of(&[(8, 3.0), (8, 5.0)]).unwrap();
    assert!(fit.alpha_ms == 0.0 && close(fit.beta_ms, 4.0), "{fit:?}");
}

#[test]
fn the_fit_of_a_linear_profile_is_its_coefficients() {
    let fit = LatencyProfile::linear(0.25, 1.5, 64).unwrap().fit();
    assert!(close(fit.alpha_ms, 0.25) && close(fit.beta_ms, 1.5), "{fit:?}");
}

#[test]
fn the_fit_of_a_saturated_table_is_finite() {
    let points = [(1, 1e-6), (2, f64::MAX)];
    let profile = LatencyProfile::from_points(&points, LARGEST_BATCH, Beyond::Extrapolate).unwrap();
    assert_eq!(profile.latency(LARGEST_BATCH), Span::MAX);
    let fit = profile.fit();
    assert!(fit.alpha_ms.is_finite() && fit.beta_ms.is_finite(), "{fit:?}");
}

#[test]
fn bad_points_are_refused() {
    assert_eq!(Fit::of(&[]), Err(ProfileError::Empty));
    assert_eq!(Fit::of(&[(0, 1.0)]), Err(ProfileError::BadBatch(0)));
    assert!(matches!(Fit::of(&[(1, f64::NAN)]), Err(ProfileError::BadLatency { .. })));
}

fn squared_error(points: &[(u32, f64)], alpha_ms: f64, beta_ms: f64) -> f64 {
    points.iter().map(|&(b, l)| (alpha_ms * f64::from(b) + beta_ms - l).powi(2)).sum()
}

proptest! {
    #[test]
    fn no_neighbouring_line_is_nearer_than_the_fit_and_every_fit_makes_a_profile(
        points in proptest::collection::vec((1..65u32, 0.1..100.0), 1..12),
        step in 1e-3..1.0f64,
    ) {
        let fit = Fit::of(&points).unwrap();
        prop_assert!(LatencyProfile::linear(fit.alpha_ms, fit.beta_ms, 64).is_ok());
        prop_assert!(fit.rms_relative_error <= fit.max_relative_error * (1.0 + 1e-12));
        let best = squared_error(&points, fit.alpha_ms, fit.beta_ms);
        for (da, db) in [(1.0, 0.0), (-1.0, 0.0), (0.0, 1.0), (0.0, -1.0), (0.1, -1.0), (-0.1, 1.0)] {
            let alpha_ms = (fit.alpha_ms + da * step).max(0.0);
            let beta_ms = (fit.beta_ms + db * step).max(0.0);
            prop_assert!(squared_error(&points, alpha_ms, beta_ms) >= best * (1.0 - 1e-9) - 1e-9);
        }
    }
}
