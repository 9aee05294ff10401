//! Devices of two classes: the slow one is used while it meets the deadline, so that the fast one stays free.

use downbeat_sched::*;

use super::DEFERRED;
use crate::cluster::{State, TestCluster, at, linear};

/// Device 0 is slow, l(b) = 2b + 10 ms; device 1 is fast, l(b) = b + 5 ms.
const SLOW: GpuId = GpuId(0);
const FAST: GpuId = GpuId(1);

/// The classes in either numbering: nothing may depend on it.
const NUMBERINGS: [(ClassId, ClassId); 2] = [(ClassId(0), ClassId(1)), (ClassId(1), ClassId(0))];

fn slow_and_fast(rule: Rule, (slow, fast): (ClassId, ClassId)) -> TestCluster {
    let mut cluster = TestCluster::new(rule, Delays::default());
    let profiles = [(fast, linear(1.0, 5.0, 8)), (slow, linear(2.0, 10.0, 8))];
    cluster.add_model(ModelId(0), ModelSpec::new(profiles));
    cluster.join(SLOW, slow);
    cluster.join(FAST, fast);
    cluster
}

/// Both windows are open at once: the slow device is taken all the same. While it is busy, the fast one helps out.
#[test]
fn the_slow_device_is_taken_first_and_the_fast_one_when_it_is_busy() {
    for classes in NUMBERINGS {
        let mut cluster = slow_and_fast(Rule::EAGER, classes);
        cluster.request(0, 100.0);
        cluster.run_until(at(1.0));
        cluster.request(0, 100.0);
        cluster.drain();
        assert_eq!(cluster.batches(), [(0.0, 0, vec![0]), (1.0, 1, vec![1])], "{classes:?}");
    }
}

/// Due at 11.5, one request cannot run on the slow device, l(1) = 12, but can on the fast one.
#[test]
fn the_fast_device_is_taken_where_the_slow_one_would_be_too_late() {
    for classes in NUMBERINGS {
        let mut cluster = slow_and_fast(Rule::EAGER, classes);
        cluster.request(0, 11.5);
        assert_eq!(cluster.batches(), [(0.0, 1, vec![0])], "{classes:?}");
    }
}

/// Due at 40: the window opens at 40 - l(2) = 26 on the slow class, at 33 on the fast one.
#[test]
fn the_window_of_the_slow_class_opens_first() {
    for classes in NUMBERINGS {
        let mut cluster = slow_and_fast(DEFERRED, classes);
        cluster.request(0, 40.0);
        cluster.drain();
        assert_eq!(cluster.batches(), [(26.0, 0, vec![0])], "{classes:?}");
    }
}

/// The slow device runs model 1 from 10 to 60. The window of model 0 on the slow class is open from 26 to 28 and
/// passes; the one on the fast class opens at 33.
#[test]
fn what_the_slow_class_gave_up_runs_on_the_fast_one() {
    for classes in NUMBERINGS {
        let mut cluster = slow_and_fast(DEFERRED, classes);
        cluster.add_model(ModelId(1), ModelSpec::new([(classes.0, linear(0.0, 50.0, 1))]));
        cluster.run_until(at(10.0));
        cluster.request(1, 60.0);
        cluster.request(0, 40.0);
        cluster.drain();
        assert_eq!(cluster.batches(), [(10.0, 0, vec![0]), (33.0, 1, vec![1])], "{classes:?}");
    }
}

/// Full at eight: both windows are open at once.
#[test]
fn a_full_batch_goes_to_the_slow_device() {
    for classes in NUMBERINGS {
        let mut cluster = slow_and_fast(DEFERRED, classes);
        (0..8).for_each(|_| cluster.request(0, 100.0));
        assert_eq!(cluster.batches(), [(0.0, 0, (0..8).collect())], "{classes:?}");
    }
}

#[test]
fn when_the_slow_class_vanishes_the_fast_one_does_all() {
    for classes in NUMBERINGS {
        let mut cluster = slow_and_fast(DEFERRED, classes);
        cluster.request(0, 40.0);
        cluster.run_until(at(20.0));
        cluster.leave(SLOW);
        cluster.drain();
        assert_eq!(cluster.batches(), [(33.0, 1, vec![0])], "{classes:?}");
    }
}

/// At 29 the slow class needs until 41. While the fast one is there, the request due at 40 waits for it; without it,
/// the request is lost.
#[test]
fn when_the_fast_class_vanishes_what_only_it_could_serve_expires() {
    for classes in NUMBERINGS {
        let mut cluster = slow_and_fast(DEFERRED, classes);
        cluster.leave(SLOW);
        cluster.request(0, 40.0);
        cluster.run_until(at(29.0));
        cluster.join(GpuId(2), classes.0);
        assert_eq!(cluster.state(0), State::Waiting);
        cluster.fail(FAST);
        assert_eq!(cluster.state(0), State::Answered(Outcome::Expired), "{classes:?}");
    }
}

/// A class that appears is used: at 29 the one that is there needs until 41, the new one until 35.
#[test]
fn a_class_that_appears_saves_what_the_other_gave_up() {
    for classes in NUMBERINGS {
        let mut cluster = slow_and_fast(DEFERRED, classes);
        cluster.leave(FAST);
        cluster.add_model(ModelId(1), ModelSpec::new([(classes.0, linear(0.0, 50.0, 1))]));
        cluster.request(1, 50.0);
        cluster.request(0, 40.0);
        cluster.run_until(at(28.0));
        cluster.join(FAST, classes.1);
        cluster.drain();
        assert_eq!(cluster.batches()[1..], [(33.0, 1, vec![1])], "{classes:?}");
    }
}

/// The slow class turns out to be the faster one: now the other one is to be spared.
#[test]
fn the_order_of_the_classes_follows_their_profiles() {
    for classes in NUMBERINGS {
        let mut cluster = slow_and_fast(Rule::EAGER, classes);
        cluster.change_profile(ModelId(0), classes.0, linear(1.0, 1.0, 8));
        cluster.request(0, 100.0);
        assert_eq!(cluster.batches(), [(0.0, 1, vec![0])], "{classes:?}");
    }
}

/// Due at 15, six waiting: the slow device can take two of them (l(2) = 14), the fast one the rest (l(4) = 9).
#[test]
fn a_batch_too_large_for_the_slow_device_is_shared() {
    for classes in NUMBERINGS {
        let mut cluster = slow_and_fast(Rule::EAGER, classes);
        cluster.leave(SLOW);
        cluster.leave(FAST);
        (0..6).for_each(|_| cluster.request(0, 15.0));
        cluster.join(SLOW, classes.0);
        cluster.join(FAST, classes.1);
        cluster.drain();
        assert_eq!(cluster.batches(), [(0.0, 0, vec![0, 1]), (0.0, 1, vec![2, 3, 4, 5])], "{classes:?}");
    }
}

/// Both devices are busy until 12 and longer. Model 1 can only use the slow one, and is of a higher level than model 0,
/// which waits for both: when the slow device is free at 12, it goes to model 1.
#[test]
fn a_model_with_a_choice_of_classes_does_not_overtake_a_more_urgent_one_without() {
    for classes in NUMBERINGS {
        let mut cluster = slow_and_fast(Rule::EAGER, classes);
        cluster.add_model(ModelId(1), ModelSpec::new([(classes.0, linear(2.0, 10.0, 8))]));
        cluster.add_model(ModelId(2), ModelSpec::new([(classes.1, linear(1.0, 50.0, 8))]));
        cluster.request_at_level(1, 100.0, 1); // On the slow device from 0 to 12.
        cluster.request_at_level(2, 100.0, 1); // On the fast device from 0 to 51.
        cluster.request_at_level(0, 60.0, 2);
        cluster.request_at_level(1, 100.0, 1);
        cluster.drain();
        assert_eq!(cluster.batches()[2..], [(12.0, 0, vec![3]), (24.0, 0, vec![2])], "{classes:?}");
    }
}
