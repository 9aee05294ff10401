use super::*;

#[test]
fn the_first_stop_waits_for_answers_and_the_second_does_not() {
    let control = Control::default();
    assert!(!control.is_stopped());
    control.stop();
    assert!(control.is_stopped() && !control.is_abandoned());
    control.clone().stop();
    assert!(control.is_abandoned());
}

#[test]
fn a_run_within_ends_with_what_is_around_it_and_not_the_other_way_round() {
    let control = Control::default();
    let inner = control.inner();
    inner.stop();
    assert!(inner.is_stopped() && !control.is_stopped());
    let inner = control.inner();
    control.stop();
    assert!(inner.is_stopped());
}
