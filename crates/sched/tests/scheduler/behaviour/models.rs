//! Requests that go away, and models that come, go and change. Unless said otherwise, l(b) = b + 5 ms.

use downbeat_sched::*;

use super::{DEFERRED, on_class_0, one_model};
use crate::cluster::{State, TestCluster, at, linear};

/// Two due at 12 would start at 12 - l(3) = 4; when one goes away at 1, the other has until 12 - l(2) = 5 again.
#[test]
fn a_cancelled_request_is_answered_and_the_window_moves_back() {
    let mut cluster = one_model(DEFERRED, 1);
    cluster.request(0, 12.0);
    cluster.request(0, 12.0);
    cluster.run_until(at(1.0));
    cluster.cancel(RequestId(0));
    assert_eq!(cluster.state(0), State::Answered(Outcome::Cancelled));
    cluster.drain();
    assert_eq!(cluster.batches(), [(5.0, 0, vec![1])]);
}

#[test]
fn the_last_request_to_be_cancelled_leaves_nothing_to_start() {
    let mut cluster = one_model(DEFERRED, 1);
    cluster.request(0, 12.0);
    cluster.cancel(RequestId(0));
    cluster.drain();
    assert_eq!(cluster.batches(), []);
}

#[test]
fn cancelling_what_runs_or_has_left_or_was_never_there_does_nothing() {
    let mut cluster = one_model(Rule::EAGER, 1);
    cluster.request(0, 12.0);
    let actions = cluster.log.len();
    cluster.cancel(RequestId(0));
    assert_eq!(cluster.state(0), State::Running(GpuId(0)));
    cluster.run_until(at(10.0));
    cluster.cancel(RequestId(0));
    for model in [0, 7] {
        let (id, model, priority) = (RequestId(9), ModelId(model), Priority(1));
        cluster.tell(Event::Cancelled(Request { id, model, deadline: at(12.0), priority, rows: 1 }));
    }
    assert_eq!(cluster.log.len(), actions);
    assert_eq!(cluster.state(0), State::Finished);
}

/// Both run in one batch, and one client goes away: when the device fails, only the other request is run again.
#[test]
fn a_request_whose_client_has_gone_is_not_run_again_when_its_device_fails() {
    let mut cluster = one_model(Rule::EAGER, 0);
    (0..2).for_each(|_| cluster.request(0, 50.0));
    cluster.join(GpuId(0), ClassId(0));
    (0..2).for_each(|_| cluster.cancel(RequestId(0)));
    assert_eq!(cluster.state(0), State::Running(GpuId(0)));
    cluster.fail(GpuId(0));
    assert_eq!(cluster.state(0), State::Answered(Outcome::Cancelled));
    cluster.join(GpuId(1), ClassId(0));
    cluster.drain();
    assert_eq!(cluster.batches(), [(0.0, 0, vec![0, 1]), (0.0, 1, vec![1])]);
}

#[test]
fn a_request_whose_client_has_gone_is_answered_once_when_model_and_device_go_too() {
    let mut cluster = one_model(Rule::EAGER, 1);
    cluster.request(0, 50.0);
    cluster.remove_model(ModelId(0));
    cluster.cancel(RequestId(0));
    cluster.fail(GpuId(0));
    assert_eq!(cluster.state(0), State::Answered(Outcome::Cancelled));
}

#[test]
fn a_request_of_the_default_level_can_be_cancelled_after_the_default_has_changed() {
    let mut cluster = one_model(DEFERRED, 1);
    cluster.request(0, 12.0);
    let spec = ModelSpec { default_priority: Priority(3), ..on_class_0(1.0, 5.0, 32) };
    cluster.add_model(ModelId(0), spec);
    cluster.cancel(RequestId(0));
    assert_eq!(cluster.state(0), State::Answered(Outcome::Cancelled));
}

/// Two may wait. The third is turned away; when the two start at 12 - l(3) = 4 there is room again.
#[test]
fn a_full_queue_turns_requests_away_until_there_is_room() {
    let mut cluster = one_model(DEFERRED, 1);
    cluster.add_model(ModelId(0), ModelSpec { queue_limit: 2, ..on_class_0(1.0, 5.0, 32) });
    (0..3).for_each(|_| cluster.request(0, 12.0));
    assert_eq!(cluster.state(2), State::Answered(Outcome::Overloaded));
    cluster.run_until(at(4.0));
    cluster.request(0, 40.0);
    assert_eq!(cluster.state(3), State::Waiting);
    cluster.drain();
    assert_eq!(cluster.batches(), [(4.0, 0, vec![0, 1]), (33.0, 0, vec![3])]);
}

#[test]
fn a_request_for_an_unknown_model_is_answered_so() {
    let mut cluster = one_model(DEFERRED, 1);
    cluster.request(1, 12.0);
    cluster.request(u32::MAX, 12.0);
    assert_eq!(cluster.state(0), State::Answered(Outcome::UnknownModel));
    assert_eq!(cluster.state(1), State::Answered(Outcome::UnknownModel));
}

#[test]
fn a_removed_model_answers_what_waits_and_finishes_what_runs() {
    let mut cluster = one_model(Rule::EAGER, 1);
    cluster.request(0, 50.0);
    cluster.request(0, 50.0);
    cluster.run_until(at(1.0));
    cluster.remove_model(ModelId(0));
    assert_eq!(cluster.state(0), State::Running(GpuId(0)));
    assert_eq!(cluster.state(1), State::Answered(Outcome::Removed));
    cluster.request(0, 50.0);
    assert_eq!(cluster.state(2), State::Answered(Outcome::UnknownModel));
    cluster.drain();
    assert_eq!(cluster.state(0), State::Finished);
}

#[test]
fn what_a_failed_device_ran_of_a_removed_model_is_answered() {
    let mut cluster = one_model(Rule::EAGER, 2);
    cluster.request(0, 50.0);
    cluster.remove_model(ModelId(0));
    cluster.fail(GpuId(0));
    assert_eq!(cluster.state(0), State::Answered(Outcome::Removed));
}

#[test]
fn a_model_added_again_starts_with_an_empty_queue() {
    let mut cluster = one_model(DEFERRED, 1);
    cluster.request(0, 12.0);
    cluster.remove_model(ModelId(0));
    cluster.add_model(ModelId(0), on_class_0(1.0, 5.0, 32));
    cluster.request(0, 12.0);
    cluster.drain();
    assert_eq!(cluster.batches(), [(5.0, 0, vec![1])]);
}

/// Due at 20, the request would start at 20 - 7 = 13. With l(b) = 2b + 8 from 1 on, it starts at 20 - l(2) = 8.
#[test]
fn a_changed_profile_moves_the_windows_of_what_waits() {
    let mut cluster = one_model(DEFERRED, 1);
    cluster.request(0, 20.0);
    cluster.run_until(at(1.0));
    cluster.change_profile(ModelId(0), ClassId(0), linear(2.0, 8.0, 32));
    cluster.drain();
    let batch = &cluster.started()[0];
    assert_eq!((batch.start_ms, batch.finish_ms), (8.0, 18.0));
}

/// At 1, a request due at 12 has time for l(1) = 11 and not for more.
#[test]
fn a_changed_profile_expires_what_it_makes_impossible() {
    for (beta_ms, expected) in [(10.0, State::Running(GpuId(0))), (10.1, State::Answered(Outcome::Expired))] {
        let mut cluster = one_model(DEFERRED, 1);
        cluster.request(0, 12.0);
        cluster.run_until(at(1.0));
        cluster.change_profile(ModelId(0), ClassId(0), linear(1.0, beta_ms, 32));
        assert_eq!(cluster.state(0), expected);
    }
}

#[test]
fn what_waits_for_a_model_that_is_no_longer_deployed_anywhere_expires() {
    let mut cluster = one_model(DEFERRED, 1);
    cluster.request(0, 12.0);
    cluster.add_model(ModelId(0), ModelSpec::new([]));
    assert_eq!(cluster.state(0), State::Answered(Outcome::Expired));
    cluster.request(0, 12.0);
    assert_eq!(cluster.state(1), State::Answered(Outcome::Expired));
}

/// Batches of one: a device each. The models neither share batches nor lose their place when one of them is removed.
#[test]
fn models_do_not_mix() {
    let mut cluster = TestCluster::new(Rule::EAGER, Delays::default());
    for model in 0..3 {
        cluster.add_model(ModelId(model), on_class_0(1.0, 5.0, 32));
    }
    for model in [0, 1, 2, 0, 1, 2] {
        cluster.request(model, 50.0);
    }
    cluster.remove_model(ModelId(1));
    cluster.join(GpuId(0), ClassId(0));
    cluster.drain();
    assert_eq!(cluster.batches(), [(0.0, 0, vec![0, 3]), (7.0, 0, vec![2, 5])]);
}
