//! Requests of several rows. Unless said otherwise, l(b) = b + 5 ms for batches of up to 32.

use downbeat_sched::*;

use super::{DEFERRED, on_class_0, one_model, one_model_with_delays};
use crate::cluster::{State, TestCluster, at, linear, span};

/// One device, which joins later, for batches of up to `max_batch`.
fn without_device(rule: Rule, max_batch: u32) -> TestCluster {
    let mut cluster = TestCluster::new(rule, Delays::default());
    cluster.add_model(ModelId(0), on_class_0(1.0, 5.0, max_batch));
    cluster
}

/// Three rows due at 12 start at 12 - l(4) = 3 and take l(3) = 8, be they of one request or of two.
#[test]
fn a_batch_is_as_large_as_its_rows() {
    for requests in [vec![3], vec![1, 2], vec![0, 2]] {
        let mut cluster = one_model(DEFERRED, 1);
        requests.iter().for_each(|&rows| cluster.request_rows(rows, 0, 12.0));
        cluster.drain();
        let batch = &cluster.started()[0];
        assert_eq!((batch.start_ms, batch.finish_ms, batch.rows), (3.0, 11.0, 3), "{requests:?}");
        assert_eq!(cluster.finished(), requests.len());
    }
}

/// Half a millisecond per row: three rows are sent at 0 and start at 1.5.
#[test]
fn every_row_must_be_brought_to_the_device() {
    let delays = Delays { control: Span::ZERO, data: span(0.5) };
    let mut cluster = one_model_with_delays(Rule::EAGER, 1, delays);
    cluster.request_rows(3, 0, 50.0);
    let batch = &cluster.started()[0];
    assert_eq!((batch.sent_ms, batch.start_ms, batch.finish_ms), (0.0, 1.5, 9.5));
}

/// Batches of up to 8. The second request does not fit beside the first, and the third, which would, stays behind it.
#[test]
fn a_request_is_not_split_and_not_overtaken() {
    let mut cluster = without_device(Rule::EAGER, 8);
    [5, 4, 1].iter().for_each(|&rows| cluster.request_rows(rows, 0, 50.0));
    cluster.join(GpuId(0), ClassId(0));
    cluster.drain();
    assert_eq!(cluster.batches(), [(0.0, 0, vec![0]), (10.0, 0, vec![1, 2])]);
}

/// The same, with the third of a lower level.
#[test]
fn a_lower_level_does_not_overtake_a_request_that_does_not_fit() {
    let mut cluster = without_device(Rule::EAGER, 8);
    [(5, 1), (4, 1), (1, 2)].iter().for_each(|&(rows, level)| cluster.request_of(rows, 0, 50.0, level));
    cluster.join(GpuId(0), ClassId(0));
    cluster.drain();
    assert_eq!(cluster.batches(), [(0.0, 0, vec![0]), (10.0, 0, vec![1, 2])]);
}

/// A head of the lower level that does not fit keeps back those behind it, and those below it.
#[test]
fn a_level_whose_head_does_not_fit_does_not_join() {
    let mut cluster = without_device(Rule::EAGER, 8);
    for (rows, level) in [(5, 1), (4, 2), (1, 2), (1, 3)] {
        cluster.request_of(rows, 0, 50.0, level);
    }
    cluster.join(GpuId(0), ClassId(0));
    cluster.drain();
    assert_eq!(cluster.batches(), [(0.0, 0, vec![0]), (10.0, 0, vec![1, 2, 3])]);
}

/// Batches of up to 8: when four rows come at 1, nothing more can join the five that wait, although 8 would. The four
/// wait until 100 - l(5) = 90.
#[test]
fn a_batch_that_the_next_request_cannot_join_starts_at_once() {
    let mut cluster = without_device(DEFERRED, 8);
    cluster.join(GpuId(0), ClassId(0));
    cluster.request_rows(5, 0, 100.0);
    cluster.run_until(at(1.0));
    cluster.request_rows(4, 0, 100.0);
    cluster.drain();
    assert_eq!(cluster.batches(), [(1.0, 0, vec![0]), (90.0, 0, vec![1])]);
    let reasons: Vec<_> = cluster.started().iter().map(|batch| batch.reason).collect();
    assert_eq!(reasons, [Release::Full, Release::Window]);
}

/// Due at 20, eight rows wait until 20 - l(9) = 6. Two more due at 30 come at 4, when there is time for 11 rows, and
/// start with them at 20 - l(11) = 4; four more would take until 4 + l(12) = 21, and make the eight start alone.
#[test]
fn a_request_joins_if_there_is_time_for_all_its_rows() {
    for (rows, expected) in [(2, vec![(4.0, 0, vec![0, 1])]), (4, vec![(4.0, 0, vec![0])])] {
        let mut cluster = one_model(DEFERRED, 1);
        cluster.request_rows(8, 0, 20.0);
        cluster.run_until(at(4.0));
        cluster.request_rows(rows, 0, 30.0);
        cluster.run_until(at(6.0));
        assert_eq!(cluster.batches(), expected);
    }
}

#[test]
fn a_request_with_more_rows_than_the_largest_batch_is_answered_at_once() {
    let mut cluster = one_model(DEFERRED, 1);
    cluster.request_rows(33, 0, 100.0);
    cluster.request_rows(u32::MAX, 0, 100.0);
    assert_eq!(cluster.state(0), State::Answered(Outcome::TooLarge));
    assert_eq!(cluster.state(1), State::Answered(Outcome::TooLarge));
    cluster.request_rows(32, 0, 100.0);
    assert_eq!(cluster.batches(), [(0.0, 0, vec![2])]);
}

/// l(5) = 10 makes a deadline at 10, l(6) = 11 does not.
#[test]
fn a_request_with_too_many_rows_for_its_deadline_is_answered_at_once() {
    let mut cluster = one_model(DEFERRED, 1);
    cluster.request_rows(6, 0, 10.0);
    assert_eq!(cluster.state(0), State::Answered(Outcome::Expired));
    cluster.request_rows(5, 0, 10.0);
    assert_eq!(cluster.batches(), [(0.0, 0, vec![1])]);
}

#[test]
fn a_request_that_a_changed_profile_makes_too_large_expires() {
    let mut cluster = without_device(DEFERRED, 8);
    cluster.request_rows(8, 0, 100.0);
    cluster.request_rows(4, 0, 100.0);
    cluster.change_profile(ModelId(0), ClassId(0), linear(1.0, 5.0, 4));
    assert_eq!(cluster.state(0), State::Answered(Outcome::Expired));
    assert_eq!(cluster.state(1), State::Waiting);
}

/// Class 0 is slower and takes 4 rows at most, class 1 takes 16. What is too large for the slow class waits for the
/// fast one; a smaller request, due before it, still gets the slow one.
#[test]
fn a_request_too_large_for_one_class_runs_on_another_and_keeps_nobody_from_the_first() {
    let mut cluster = TestCluster::new(Rule::EAGER, Delays::default());
    let profiles = [(ClassId(0), linear(1.0, 10.0, 4)), (ClassId(1), linear(1.0, 5.0, 16))];
    cluster.add_model(ModelId(0), ModelSpec::new(profiles));
    cluster.join(GpuId(0), ClassId(0));
    cluster.join(GpuId(1), ClassId(1));
    cluster.request_rows(16, 0, 100.0); // On the fast device until 21.
    cluster.request_rows(8, 0, 90.0);
    cluster.run_until(at(1.0));
    cluster.request_rows(2, 0, 80.0);
    cluster.request_rows(17, 0, 100.0);
    cluster.drain();
    assert_eq!(cluster.batches(), [(0.0, 1, vec![0]), (1.0, 0, vec![2]), (21.0, 1, vec![1])]);
    assert_eq!(cluster.state(3), State::Answered(Outcome::TooLarge));
}

/// Two may wait, whatever their rows.
#[test]
fn the_queue_limit_counts_requests() {
    let mut cluster = one_model(DEFERRED, 1);
    cluster.add_model(ModelId(0), ModelSpec { queue_limit: 2, ..on_class_0(1.0, 5.0, 32) });
    (0..3).for_each(|_| cluster.request_rows(10, 0, 100.0));
    assert_eq!((cluster.state(1), cluster.state(2)), (State::Waiting, State::Answered(Outcome::Overloaded)));
}

#[test]
fn a_failed_device_gives_back_requests_with_all_their_rows() {
    let mut cluster = one_model(Rule::EAGER, 2);
    cluster.request_rows(3, 0, 50.0);
    cluster.run_until(at(1.0));
    cluster.fail(GpuId(0));
    let again = &cluster.started()[1];
    assert_eq!((again.gpu, again.rows, again.finish_ms), (1, 3, 9.0));
}

/// Batches of up to 64, two requests of 33 rows: they never share a batch. The device is taken until 60, when the
/// traffic would sustain batches of 41. The first is due at 100: 60 + l(33) makes that, 60 + l(41) would not.
#[test]
fn a_head_is_not_given_up_for_a_batch_that_it_could_not_be_part_of() {
    let mut cluster = TestCluster::new(Rule::DEFERRED, Delays::default());
    cluster.add_model(ModelId(0), on_class_0(1.0, 5.0, 64));
    cluster.add_model(ModelId(1), on_class_0(1.0, 59.0, 1));
    cluster.join(GpuId(0), ClassId(0));
    cluster.request(1, 60.0);
    cluster.request_rows(33, 0, 100.0);
    cluster.request_rows(33, 0, 140.0);
    cluster.drain();
    assert_eq!(cluster.batches()[1..], [(60.0, 0, vec![1]), (101.0, 0, vec![2])]);
}
