//! Priority levels: 1 is the highest, 0 stands for the model's default. Unless said otherwise, l(b) = b + 5 ms.

use downbeat_sched::*;

use super::{DEFERRED, on_class_0, one_model};
use crate::cluster::{State, TestCluster, at};

/// One device, taken until 6; batches of at most `max_batch`.
fn behind_a_busy_device(max_batch: u32) -> TestCluster {
    let mut cluster = TestCluster::new(Rule::EAGER, Delays::default());
    let spec = ModelSpec { default_priority: Priority(2), ..on_class_0(1.0, 5.0, max_batch) };
    cluster.add_model(ModelId(0), spec);
    cluster.add_model(ModelId(1), on_class_0(1.0, 5.0, 1));
    cluster.join(GpuId(0), ClassId(0));
    cluster.request(1, 6.0);
    cluster
}

#[test]
fn levels_are_strict_and_a_batch_may_mix_them() {
    let mut cluster = behind_a_busy_device(3);
    for (level, deadline_ms) in [(3, 50.0), (2, 50.0), (2, 40.0), (1, 90.0), (3, 30.0)] {
        cluster.request_at_level(0, deadline_ms, level);
    }
    cluster.drain();
    assert_eq!(cluster.batches()[1..], [(6.0, 0, vec![4, 3, 2]), (14.0, 0, vec![5, 1])]);
}

#[test]
fn level_0_is_the_models_default() {
    let mut cluster = behind_a_busy_device(3);
    for level in [3, 0, 1, 2] {
        cluster.request_at_level(0, 50.0, level);
    }
    cluster.drain();
    assert_eq!(cluster.batches()[1..], [(6.0, 0, vec![3, 2, 4]), (14.0, 0, vec![1])]);
}

/// A device joins at 2, when five of level 1 due at 13 wait; 2 + l(6) = 13. One of level 2 fits with them if it is due
/// at 13 and not if it is due at 12, when 2 + l(5) = 12 would have had to do for all: then it waits, and is lost.
#[test]
fn a_lower_level_joins_where_there_is_room_and_never_pushes_out_a_higher_one() {
    for (deadline_ms, expected) in [(13.0, vec![1, 2, 3, 4, 5, 0]), (12.0, vec![1, 2, 3, 4, 5])] {
        let mut cluster = one_model(DEFERRED, 0);
        cluster.request_at_level(0, deadline_ms, 2);
        (0..5).for_each(|_| cluster.request_at_level(0, 13.0, 1));
        cluster.run_until(at(2.0));
        cluster.join(GpuId(0), ClassId(0));
        cluster.drain();
        let lost = expected.len() == 5;
        assert_eq!(cluster.batches(), [(2.0, 0, expected)]);
        assert_eq!(cluster.state(0) == State::Answered(Outcome::Expired), lost);
    }
}

/// The higher level alone would start at 40 - l(2) = 33. One of a lower level due at 12 joins it, so that the two start
/// at 12 - l(3) = 4: earlier, never later.
#[test]
fn a_lower_level_makes_a_batch_start_earlier_but_never_later() {
    let mut cluster = one_model(DEFERRED, 1);
    cluster.request_at_level(0, 40.0, 1);
    cluster.request_at_level(0, 12.0, 2);
    cluster.drain();
    assert_eq!(cluster.batches(), [(4.0, 0, vec![0, 1])]);

    let mut cluster = one_model(DEFERRED, 1);
    cluster.request_at_level(0, 12.0, 1);
    cluster.request_at_level(0, 40.0, 2);
    cluster.drain();
    assert_eq!(cluster.batches(), [(4.0, 0, vec![0, 1])]);
}

/// Both wait for the device until 6. Model 2 must start by 14, model 3 by 34, but model 3's request is of a higher
/// level.
#[test]
fn between_models_the_level_counts_before_the_deadline() {
    let mut cluster = behind_a_busy_device(3);
    cluster.add_model(ModelId(2), on_class_0(1.0, 5.0, 32));
    cluster.add_model(ModelId(3), on_class_0(1.0, 5.0, 32));
    cluster.request_at_level(2, 20.0, 2);
    cluster.request_at_level(3, 40.0, 1);
    cluster.drain();
    assert_eq!(cluster.batches()[1..], [(6.0, 0, vec![2]), (12.0, 0, vec![1])]);
}

/// The device is free at 6, when nothing of level 1 waits any more: it expired at 4.
#[test]
fn a_higher_level_that_is_lost_leaves_the_lead_to_the_next() {
    let mut cluster = behind_a_busy_device(3);
    cluster.request_at_level(0, 10.0, 1);
    cluster.request_at_level(0, 12.0, 2);
    cluster.request_at_level(0, 13.0, 3);
    cluster.drain();
    assert_eq!(cluster.state(1), State::Answered(Outcome::Expired));
    assert_eq!(cluster.batches()[1..], [(6.0, 0, vec![2])]);
}

/// Twenty of level 1 due at 100 would start at 100 - l(21) = 74. One of level 2 due at 12 cannot join them, because
/// l(21) is past 12, and would be lost by 74: it goes alone, at 12 - l(2) = 5, while devices are idle.
#[test]
fn a_lower_level_that_cannot_join_goes_alone_while_the_higher_one_still_waits() {
    let mut cluster = one_model(DEFERRED, 3);
    (0..20).for_each(|_| cluster.request_at_level(0, 100.0, 1));
    cluster.request_at_level(0, 12.0, 2);
    cluster.drain();
    assert_eq!(cluster.batches(), [(5.0, 0, vec![20]), (74.0, 0, (0..20).collect())]);
}
