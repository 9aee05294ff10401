use downbeat_profile::Span;
use proptest::prelude::*;

use super::{CHANGE_MIN, Correction, Trial};

const PROFILED: Span = Span::from_millis(20);

fn times(factor: f64) -> Span {
    Span::from_millis_f64(PROFILED.as_millis_f64() * factor)
}

/// So many batches, each of which takes so much longer than its profile says.
fn observe(correction: &mut Correction, batches: u32, factor: f64) {
    for _ in 0..batches {
        correction.observe(PROFILED, times(factor));
    }
}

/// A device that keeps to its profile, of which now and then a batch is held up for a tenth of a second.
#[test]
fn a_batch_that_was_held_up_says_nothing_about_the_device() {
    let mut correction = Correction::default();
    for batch in 0..2_000 {
        let held_up = Span::from_millis(if batch % 50 == 49 { 100 } else { 0 });
        assert_eq!(correction.observe(PROFILED, PROFILED + held_up), None, "batch {batch}");
    }
    assert_eq!(correction.applied(), 1.0);
}

#[test]
fn a_device_that_slows_down_is_believed_within_some_dozen_batches() {
    let mut correction = Correction::default();
    observe(&mut correction, 100, 1.0);
    observe(&mut correction, 60, 1.5);
    assert!((correction.applied() / 1.5 - 1.0).abs() < CHANGE_MIN, "{correction:?}");
}

#[test]
fn what_a_trial_has_learned_holds_until_batches_say_otherwise() {
    let mut trial = Trial::default();
    let mut learned = [9.0, 3.0, 3.0].map(|factor| trial.observe(PROFILED, times(factor)));
    let mut correction = learned[2].take().unwrap();
    assert_eq!(correction.applied(), 3.0);
    assert_eq!(correction.observe(PROFILED, times(3.0)), None);
}

proptest! {
    /// Whatever a device takes, a correction ends up within what its hysteresis allows.
    #[test]
    fn a_steady_device_is_corrected_to_what_it_takes(factor in 0.2f64..8.0) {
        let mut correction = Correction::default();
        observe(&mut correction, 400, factor);
        prop_assert!((factor / correction.applied() - 1.0).abs() <= CHANGE_MIN + 1e-3, "{:?}", correction);
    }
}
