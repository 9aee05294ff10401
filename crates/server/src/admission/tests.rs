use downbeat_oip::Reason;

use super::Admission;

#[test]
fn a_place_is_taken_until_the_last_who_shares_it_is_gone() {
    let admission = Admission::new(100);
    let first = admission.admit(60).unwrap();
    let other = first.share();
    drop(first);
    assert_eq!(admission.admit(60).unwrap_err().reason, Reason::Overloaded);
    drop(other);
    assert!(admission.admit(100).is_ok());
}

#[test]
fn a_place_that_cannot_grow_keeps_what_it_has() {
    let admission = Admission::new(100);
    let place = admission.admit(60).unwrap();
    assert!(place.hold_more(41).is_err());
    assert!(place.hold(u64::MAX).is_err());
    assert!(place.hold_more(u64::MAX).is_err());
    assert!(admission.admit(40).is_ok());
    place.hold(10).unwrap();
    place.hold_more(90).unwrap();
    assert!(admission.admit(1).is_err());
}

#[test]
fn an_answer_may_go_beyond_the_limit_but_then_nothing_new_comes_in() {
    let admission = Admission::new(100);
    let place = admission.admit(10).unwrap();
    place.insist(500);
    assert!(admission.admit(1).is_err());
    place.insist(99);
    assert!(admission.admit(1).is_ok());
    drop(place);
    assert!(admission.admit(100).is_ok());
}
