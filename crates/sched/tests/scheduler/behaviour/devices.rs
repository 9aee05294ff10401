//! Devices that come, go, fail and are late, and batches sent ahead of them. Unless said otherwise, l(b) = b + 5 ms.

use downbeat_sched::*;

use super::{DEFERRED, on_class_0, one_model, one_model_with_delays};
use crate::cluster::{State, at, linear, span};

/// Due at 20: starts at 20 - l(2) = 13 on device 0. Started again at 14 it makes it exactly; any later, and it is lost.
#[test]
fn requests_of_a_failed_device_run_elsewhere_or_expire() {
    for (failure_ms, finished) in [(14.0, true), (14.1, false)] {
        let mut cluster = one_model(DEFERRED, 2);
        cluster.request(0, 20.0);
        cluster.run_until(at(failure_ms));
        cluster.fail(GpuId(0));
        let again = State::Running(GpuId(1));
        let expected = if finished { again } else { State::Answered(Outcome::Expired) };
        assert_eq!(cluster.state(0), expected);
        cluster.drain();
        assert_eq!(cluster.finished() == 1, finished);
    }
}

#[test]
fn requests_of_a_failed_device_take_their_place_among_those_that_wait() {
    let mut cluster = one_model(Rule::EAGER, 1);
    cluster.request(0, 50.0);
    cluster.run_until(at(1.0));
    cluster.request(0, 40.0);
    cluster.request(0, 60.0);
    cluster.fail(GpuId(0));
    cluster.run_until(at(2.0));
    cluster.join(GpuId(7), ClassId(0));
    cluster.drain();
    assert_eq!(cluster.batches(), [(0.0, 0, vec![0]), (2.0, 7, vec![1, 0, 2])]);
}

/// Both batches sent to the device, the one it runs and the one that is under way, come back.
#[test]
fn a_failed_device_loses_the_batch_sent_ahead_as_well() {
    let delays = Delays { control: span(1.0), data: Span::ZERO };
    let mut cluster = one_model_with_delays(Rule::EAGER, 1, delays);
    cluster.request(0, 50.0);
    cluster.run_until(at(1.0));
    cluster.request(0, 50.0);
    cluster.run_until(at(6.5));
    assert_eq!((cluster.state(0), cluster.state(1)), (State::Running(GpuId(0)), State::Running(GpuId(0))));
    cluster.fail(GpuId(0));
    cluster.join(GpuId(1), ClassId(0));
    cluster.drain();
    assert_eq!(cluster.batches()[2..], [(7.5, 1, vec![0, 1])]);
}

#[test]
fn a_device_that_leaves_finishes_what_it_runs_and_gets_no_more() {
    let mut cluster = one_model(Rule::EAGER, 1);
    cluster.request(0, 20.0);
    cluster.run_until(at(1.0));
    cluster.leave(GpuId(0));
    cluster.request(0, 20.0);
    cluster.run_until(at(10.0));
    assert_eq!((cluster.state(0), cluster.state(1)), (State::Finished, State::Waiting));
    cluster.join(GpuId(0), ClassId(0)); // It is back, under the same number.
    assert_eq!(cluster.batches(), [(0.0, 0, vec![0]), (10.0, 0, vec![1])]);
}

#[test]
fn a_device_that_fails_while_it_leaves_gives_back_what_it_ran() {
    let mut cluster = one_model(Rule::EAGER, 2);
    cluster.request(0, 20.0);
    cluster.leave(GpuId(0));
    cluster.run_until(at(1.0));
    cluster.fail(GpuId(0));
    cluster.drain();
    assert_eq!(cluster.batches(), [(0.0, 0, vec![0]), (1.0, 1, vec![0])]);
}

/// Due at 12 with l(1) = 6: it can wait for a device until 6.
#[test]
fn without_any_device_requests_wait_until_one_joins_in_time_or_they_are_lost() {
    let mut cluster = one_model(DEFERRED, 0);
    cluster.request(0, 12.0);
    cluster.run_until(at(6.0));
    assert_eq!(cluster.state(0), State::Waiting);
    cluster.join(GpuId(3), ClassId(0));
    assert_eq!(cluster.batches(), [(6.0, 3, vec![0])]);

    let mut cluster = one_model(DEFERRED, 0);
    cluster.request(0, 12.0);
    cluster.run_until(at(6.000_001));
    assert_eq!(cluster.state(0), State::Answered(Outcome::Expired));
}

/// A device of a class that the model is not deployed on does not count.
#[test]
fn a_device_of_a_class_without_the_model_is_no_device() {
    let mut cluster = one_model(DEFERRED, 0);
    cluster.join(GpuId(0), ClassId(1));
    cluster.request(0, 12.0);
    cluster.run_until(at(6.0));
    assert_eq!(cluster.state(0), State::Waiting);
    cluster.change_profile(ModelId(0), ClassId(1), linear(1.0, 4.0, 8));
    assert_eq!(cluster.batches(), [(6.0, 0, vec![0])]);
}

/// lead(b) = 1 + b/2 ms. The first is sent at 0, runs from 1.5 to 7.5. The next two are sent lead(2) = 2 ms before
/// that, so that the device goes on without a pause, until 14.5. The one that comes at 6 is too late for them, and can
/// only be sent when the first is done: at 14.5 - lead(1).
#[test]
fn a_batch_is_sent_ahead_so_that_it_is_there_when_the_device_is_free() {
    let delays = Delays { control: span(1.0), data: span(0.5) };
    let mut cluster = one_model_with_delays(Rule::EAGER, 1, delays);
    for arrival_ms in [0.0, 2.0, 3.0, 6.0] {
        cluster.run_until(at(arrival_ms));
        cluster.request(0, 60.0);
    }
    cluster.drain();
    let times: Vec<_> = cluster.started().iter().map(|b| (b.sent_ms, b.start_ms, b.finish_ms)).collect();
    assert_eq!(times, [(0.0, 1.5, 7.5), (5.5, 7.5, 14.5), (13.0, 14.5, 20.5)]);
    assert_eq!(cluster.started()[1].ids, [1, 2]);
}

/// The same delays: one request due at 12 can be joined until 12 - l(2) - lead(2) = 3, two until 12 - l(3) - lead(3) =
/// 1.5.
#[test]
fn delays_move_the_window_forward() {
    let delays = Delays { control: span(1.0), data: span(0.5) };
    for (requests, sent_ms, finish_ms) in [(1, 3.0, 10.5), (2, 1.5, 10.5)] {
        let mut cluster = one_model_with_delays(DEFERRED, 1, delays);
        (0..requests).for_each(|_| cluster.request(0, 12.0));
        cluster.drain();
        let batch = &cluster.started()[0];
        assert_eq!((batch.sent_ms, batch.finish_ms), (sent_ms, finish_ms));
    }
}

/// 1 ms per request. One request of model 1 due at 30 must be sent by 30 - l(1) - 1 = 23; four of model 2 due at 35 by
/// 35 - l(4) - 4 = 22, although they would start later.
#[test]
fn the_way_to_the_device_counts_in_what_must_go_first() {
    let delays = Delays { control: Span::ZERO, data: span(1.0) };
    let mut cluster = one_model_with_delays(Rule::EAGER, 1, delays);
    cluster.add_model(ModelId(1), on_class_0(1.0, 5.0, 32));
    cluster.add_model(ModelId(2), on_class_0(1.0, 5.0, 32));
    cluster.request(0, 50.0); // From 1 to 7.
    cluster.request(1, 30.0);
    (0..4).for_each(|_| cluster.request(2, 35.0));
    cluster.drain();
    assert_eq!(cluster.batches()[1..], [(7.0, 0, vec![2, 3, 4, 5]), (16.0, 0, vec![1])]);
}

/// The device should be free at 7. It says nothing, so at 7.5 nobody knows: the batch waits until it reports, at 12.
#[test]
fn an_overdue_device_gets_nothing_until_it_reports() {
    let delays = Delays { control: span(1.0), data: Span::ZERO };
    let mut cluster = one_model_with_delays(Rule::EAGER, 1, delays);
    cluster.request(0, 50.0);
    cluster.stall(GpuId(0), span(5.0));
    cluster.run_until(at(7.5));
    cluster.request(0, 50.0);
    cluster.run_until(at(11.9));
    assert_eq!(cluster.state(1), State::Waiting);
    cluster.run_until(at(12.0));
    assert_eq!(cluster.batches()[1..], [(13.0, 0, vec![1])]);
}

/// It says at 2 that it will be free at 12 and not at 7: the next batch is sent at 11.
#[test]
fn a_device_that_says_it_is_late_is_sent_the_next_batch_for_then() {
    let delays = Delays { control: span(1.0), data: Span::ZERO };
    let mut cluster = one_model_with_delays(Rule::EAGER, 1, delays);
    cluster.request(0, 50.0);
    cluster.run_until(at(2.0));
    cluster.delay(GpuId(0), span(5.0));
    cluster.request(0, 50.0);
    cluster.drain();
    let batch = &cluster.started()[1];
    assert_eq!((batch.sent_ms, batch.start_ms), (11.0, 12.0));
}

/// The device should be free at 9 and says at 5 that it will be at 14. Sent at 11, two rows make the deadline at 21 and
/// three do not; what is due at 19 is lost.
#[test]
fn a_device_that_says_it_is_late_is_sent_only_what_still_makes_it() {
    let delays = Delays { control: span(3.0), data: Span::ZERO };
    let mut cluster = one_model_with_delays(Rule::EAGER, 1, delays);
    cluster.request(0, 50.0); // From 3 to 9.
    cluster.run_until(at(5.0));
    cluster.delay(GpuId(0), span(5.0));
    cluster.request(0, 19.0);
    cluster.request_rows(2, 0, 21.0);
    cluster.request(0, 21.0);
    cluster.drain();
    assert_eq!(cluster.batches()[1..], [(14.0, 0, vec![2])]);
    assert_eq!(cluster.state(1), State::Answered(Outcome::Expired));
    assert_eq!(cluster.state(3), State::Answered(Outcome::Expired));
}

/// It says at 2 that it will be late, and at 4 that it will not: what it is sent starts when it is free.
#[test]
fn a_device_that_makes_up_for_its_delay_is_sent_the_next_batch_for_then() {
    let delays = Delays { control: span(1.0), data: Span::ZERO };
    let mut cluster = one_model_with_delays(Rule::EAGER, 1, delays);
    cluster.request(0, 50.0); // From 1 to 7.
    cluster.request(0, 50.0);
    for (now_ms, free_ms) in [(2.0, 30.0), (4.0, 7.0)] {
        cluster.run_until(at(now_ms));
        cluster.tell(Event::GpuLate { gpu: GpuId(0), free_at: at(free_ms) });
    }
    cluster.drain();
    assert_eq!(cluster.batches()[1..], [(7.0, 0, vec![1])]);
}

/// Sent at 6, 3 ms ahead of the device: from 9 on, l(2) fits before 16 and l(3) does not.
#[test]
fn a_batch_sent_ahead_is_formed_for_the_time_at_which_the_device_is_free() {
    let delays = Delays { control: span(3.0), data: Span::ZERO };
    let mut cluster = one_model_with_delays(Rule::EAGER, 1, delays);
    cluster.request(0, 50.0); // From 3 to 9.
    cluster.run_until(at(5.0));
    (0..3).for_each(|_| cluster.request(0, 16.0));
    cluster.drain();
    assert_eq!(cluster.batches()[1..], [(9.0, 0, vec![1, 2])]);
}

/// Data delays: one request is under way for 1 ms, two for 2. The device is busy until 7; due at 14, two requests can
/// run on it after that, and are sent at 5.
#[test]
fn a_batch_sent_ahead_starts_when_the_device_is_free_and_not_before() {
    let delays = Delays { control: Span::ZERO, data: span(1.0) };
    let mut cluster = one_model_with_delays(Rule::EAGER, 1, delays);
    cluster.request(0, 50.0); // From 1 to 7.
    (0..4).for_each(|_| cluster.request(0, 14.0));
    cluster.drain();
    let batch = &cluster.started()[1];
    assert_eq!((batch.sent_ms, batch.start_ms, batch.ids.len()), (5.0, 7.0, 2));
    assert_eq!(cluster.finished(), 3);
}

#[test]
fn word_of_a_batch_that_is_not_running_is_ignored() {
    let mut cluster = one_model(Rule::EAGER, 1);
    cluster.request(0, 50.0);
    cluster.fail(GpuId(0));
    cluster.join(GpuId(0), ClassId(0));
    assert_eq!(cluster.batches(), [(0.0, 0, vec![0]), (0.0, 0, vec![0])]);
    cluster.request(0, 50.0);
    // Batch 0 was lost with the device, batch 5 never was, device 3 does not exist: batch 1 goes on.
    for (gpu, batch) in [(0, 0), (0, 5), (3, 1)] {
        cluster.tell(Event::BatchFinished { gpu: GpuId(gpu), batch: BatchId(batch) });
    }
    cluster.run_until(at(5.9));
    assert_eq!((cluster.state(0), cluster.state(1)), (State::Running(GpuId(0)), State::Waiting));
    cluster.run_until(at(6.0));
    assert_eq!(cluster.batches()[2..], [(6.0, 0, vec![1])]);
}

#[test]
fn a_device_that_joins_twice_is_one_device() {
    let mut cluster = one_model(Rule::EAGER, 1);
    cluster.add_model(ModelId(1), on_class_0(1.0, 5.0, 32));
    cluster.request(0, 50.0);
    cluster.join(GpuId(0), ClassId(0));
    cluster.request(1, 50.0);
    assert_eq!(cluster.state(1), State::Waiting);
}

/// Told to go while it runs something until 6, and to stay at 3: what comes at 4 runs on it at 6.
#[test]
fn a_device_that_was_to_leave_may_stay_after_all() {
    let mut cluster = one_model(Rule::EAGER, 1);
    cluster.request(0, 50.0);
    cluster.run_until(at(1.0));
    cluster.leave(GpuId(0));
    cluster.run_until(at(3.0));
    cluster.join(GpuId(0), ClassId(0));
    cluster.run_until(at(4.0));
    cluster.request(0, 50.0);
    cluster.drain();
    assert_eq!(cluster.batches(), [(0.0, 0, vec![0]), (6.0, 0, vec![1])]);
}
