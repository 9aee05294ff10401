//! Who may have the last idle device. Model 0 takes b + 5 ms and is due in 20, so that it can wait for 14 ms; model 1
//! takes b + 100 ms.

use downbeat_profile::Span;
use downbeat_sched::*;

use super::on_class_0;
use crate::cluster::{TestCluster, at};

/// Starts everything at once, but on the last idle device what keeps others waiting only when its own window opens.
#[derive(Clone, Copy, Debug)]
struct Considerate;

impl Policy for Considerate {
    type Drop = TimeoutDrop;
    type Order = SmallestId;
    type Guard = ();

    fn guard(&self, _: &Pressure) {}

    fn early(&self, _: Stance) -> Release {
        Release::Guard
    }

    fn head_start(&self, (): &(), _: Span, _: Span, _: Need) -> Span {
        Span::MAX
    }

    fn head_start_on_last(&self, (): &(), _: Span, _: Span) -> Span {
        Span::ZERO
    }
}

const SHORT: u32 = 0;
const LONG: u32 = 1;

/// `gpus` devices that are idle at 30 ms, after some requests of model 0 at `level`.
fn after_some_traffic(gpus: u32, level: u8) -> TestCluster<Considerate> {
    let mut cluster = TestCluster::new(Considerate, Delays::default());
    cluster.add_model(ModelId(SHORT), on_class_0(1.0, 5.0, 32));
    cluster.add_model(ModelId(LONG), on_class_0(1.0, 100.0, 32));
    (0..gpus).for_each(|gpu| cluster.join(GpuId(gpu), ClassId(0)));
    for arrival_ms in [0.0, 10.0] {
        cluster.run_until(at(arrival_ms));
        cluster.request_at_level(SHORT, arrival_ms + 20.0, level);
    }
    cluster.run_until(at(30.0));
    cluster
}

/// When batches of a model started past 30 ms.
fn starts_ms(cluster: &TestCluster<Considerate>, model: u32) -> Vec<f64> {
    let started = cluster.started().into_iter();
    started
        .filter(|batch| batch.model == model && batch.start_ms >= 30.0)
        .map(|batch| batch.start_ms)
        .collect()
}

/// The first long batch runs from 30 to 131. The second leaves the other device to model 0, and starts when the first
/// ends.
#[test]
fn a_batch_that_others_cannot_wait_for_leaves_them_the_last_idle_device() {
    let mut cluster = after_some_traffic(2, 1);
    cluster.request(LONG, 500.0);
    cluster.run_until(at(31.0));
    cluster.request(LONG, 500.0);
    for arrival_ms in [40.0, 80.0] {
        cluster.run_until(at(arrival_ms));
        cluster.request(SHORT, arrival_ms + 20.0);
    }
    cluster.drain();
    assert_eq!(starts_ms(&cluster, SHORT), [40.0, 80.0]);
    assert_eq!(starts_ms(&cluster, LONG), [30.0, 131.0]);
}

/// Due at 181, alone: its window opens at 181 - l(2) = 79.
#[test]
fn it_has_the_last_idle_device_all_the_same_once_its_own_window_opens() {
    let mut cluster = after_some_traffic(2, 1);
    cluster.request(LONG, 500.0);
    cluster.run_until(at(31.0));
    cluster.request(LONG, 181.0);
    cluster.drain();
    assert_eq!(starts_ms(&cluster, LONG), [30.0, 79.0]);
    assert_eq!(cluster.started().last().map(|batch| batch.reason), Some(Release::Window));
}

/// The other device is free at 36, and model 0 can wait until 45.
#[test]
fn nobody_waits_for_the_sake_of_others_who_find_another_device_in_time() {
    let mut cluster = after_some_traffic(2, 1);
    cluster.request(SHORT, 50.0);
    cluster.run_until(at(31.0));
    cluster.request(LONG, 500.0);
    cluster.drain();
    assert_eq!(starts_ms(&cluster, LONG), [31.0]);
}

#[test]
fn on_the_only_device_nobody_waits_for_the_sake_of_others() {
    let mut cluster = after_some_traffic(1, 1);
    cluster.request(LONG, 500.0);
    cluster.drain();
    assert_eq!(starts_ms(&cluster, LONG), [30.0]);
}

#[test]
fn nobody_waits_for_the_sake_of_a_lower_level() {
    for (level_of_short, second_start_ms) in [(1, 131.0), (2, 31.0)] {
        let mut cluster = after_some_traffic(2, level_of_short);
        cluster.request_at_level(LONG, 500.0, 1);
        cluster.run_until(at(31.0));
        cluster.request_at_level(LONG, 500.0, 1);
        cluster.drain();
        assert_eq!(starts_ms(&cluster, LONG), [30.0, second_start_ms], "level {level_of_short}");
    }
}

/// Requests of model 2 are due before they could run: that it can wait for nothing is nobody's concern, and model 0
/// comes first.
#[test]
fn nobody_waits_for_the_sake_of_what_cannot_be_in_time() {
    let mut cluster = after_some_traffic(2, 1);
    cluster.add_model(ModelId(2), on_class_0(1.0, 5.0, 32));
    for arrival_ms in [30.0, 31.0] {
        cluster.run_until(at(arrival_ms));
        cluster.request(2, arrival_ms + 3.0);
    }
    cluster.add_model(ModelId(3), on_class_0(1.0, 10.0, 32));
    cluster.request(LONG, 500.0);
    cluster.run_until(at(32.0));
    cluster.request(3, 500.0);
    cluster.run_until(at(50.0));
    let started = cluster.started().into_iter().filter(|batch| batch.model == 3);
    assert_eq!(started.map(|batch| batch.start_ms).collect::<Vec<_>>(), [32.0]);
}

/// The second batch is held from 31 on, and gets another request at 32. With its model, it is gone.
#[test]
fn what_is_held_can_grow_and_can_be_removed() {
    for (removed, expected_ms) in [(false, &[30.0, 131.0][..]), (true, &[30.0])] {
        let mut cluster = after_some_traffic(2, 1);
        cluster.request(LONG, 500.0);
        for arrival_ms in [31.0, 32.0] {
            cluster.run_until(at(arrival_ms));
            cluster.request(LONG, 500.0);
        }
        if removed {
            cluster.remove_model(ModelId(LONG));
        }
        cluster.drain();
        assert_eq!(starts_ms(&cluster, LONG), expected_ms);
        assert_eq!(cluster.started().last().map(|batch| batch.ids.len()), Some(if removed { 1 } else { 2 }));
    }
}
