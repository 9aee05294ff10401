//! Batches that start before their window opens, because devices are spare. Model 0 takes b + 5 ms and is due in 40, so
//! that it can wait for 34 ms; model 1 takes b + 100 ms.

use downbeat_sched::*;

use super::{on_class_0, one_model};
use crate::cluster::{TestCluster, at};

const SHORT: u32 = 0;
const LONG: u32 = 1;

/// `gpus` devices that are idle at 50 ms, after some requests of model 0.
fn after_some_traffic(rule: Rule, gpus: u32) -> TestCluster {
    let mut cluster = TestCluster::new(rule, Delays::default());
    cluster.add_model(ModelId(SHORT), on_class_0(1.0, 5.0, 32));
    cluster.add_model(ModelId(LONG), on_class_0(1.0, 100.0, 32));
    (0..gpus).for_each(|gpu| cluster.join(GpuId(gpu), ClassId(0)));
    for arrival_ms in [0.0, 10.0] {
        cluster.run_until(at(arrival_ms));
        cluster.request(SHORT, arrival_ms + 40.0);
    }
    cluster.run_until(at(50.0));
    cluster
}

/// When batches of a model started past 50 ms, and why.
fn starts(cluster: &TestCluster, model: u32) -> Vec<(f64, Release)> {
    let started = cluster.started().into_iter();
    started
        .filter(|batch| batch.model == model && batch.sent_ms >= 50.0)
        .map(|batch| (batch.start_ms, batch.reason))
        .collect()
}

#[test]
fn a_single_request_on_an_idle_cluster_starts_at_once() {
    for gpus in [1, 4] {
        let mut cluster = one_model(Rule::ADAPTIVE, gpus);
        cluster.request(0, 100.0);
        cluster.drain();
        assert_eq!(cluster.batches(), [(0.0, 0, vec![0])]);
        assert_eq!(cluster.started()[0].reason, Release::Early);
    }
}

/// Due at 100: a second request could join until 100 - l(2) = 93.
#[test]
fn where_spare_devices_stay_idle_it_waits_for_its_window() {
    let mut cluster = one_model(Rule::ADAPTIVE.without_early_starts(), 4);
    cluster.request(0, 100.0);
    cluster.drain();
    assert_eq!(cluster.batches(), [(93.0, 0, vec![0])]);
}

/// Of three devices the first long batch takes one and leaves two; the second would leave one and waits, and so does
/// not keep model 0 waiting. At 151 the first ends.
#[test]
fn a_batch_that_others_cannot_wait_for_leaves_two_devices_idle() {
    let mut cluster = after_some_traffic(Rule::ADAPTIVE, 3);
    cluster.request(LONG, 900.0);
    cluster.run_until(at(51.0));
    cluster.request(LONG, 900.0);
    for arrival_ms in [60.0, 80.0] {
        cluster.run_until(at(arrival_ms));
        cluster.request(SHORT, arrival_ms + 40.0);
    }
    cluster.drain();
    assert_eq!(
        starts(&cluster, SHORT).iter().map(|(start_ms, _)| *start_ms).collect::<Vec<_>>(),
        [60.0, 80.0]
    );
    assert_eq!(starts(&cluster, LONG), [(50.0, Release::Early), (151.0, Release::Early)]);
}

/// On the only device a long batch waits for its window, 250 - l(2) = 148, less what a device is waited for.
#[test]
fn on_the_only_device_a_batch_that_others_cannot_wait_for_does_not_start_early() {
    let mut cluster = after_some_traffic(Rule::ADAPTIVE, 1);
    cluster.request(LONG, 250.0);
    cluster.run_until(at(51.0));
    assert_eq!(starts(&cluster, LONG), []);
    cluster.request(SHORT, 91.0);
    cluster.drain();
    assert_eq!(starts(&cluster, SHORT), [(51.0, Release::Early)]);
    assert!(
        starts(&cluster, LONG).iter().all(|(start_ms, reason)| *start_ms > 57.0 && *reason != Release::Early)
    );
}

/// Requests that are learned of together start as one batch.
#[test]
fn nothing_starts_early_before_all_that_has_arrived_is_taken_in() {
    let mut scheduler = Scheduler::new(Rule::ADAPTIVE, Delays::default());
    let mut out = Actions::new();
    let model = ModelId(0);
    scheduler.handle(at(0.0), Event::ModelAdded { model, spec: on_class_0(1.0, 5.0, 32) }, &mut out);
    (0..4).for_each(|gpu| {
        scheduler.handle(at(0.0), Event::GpuJoined { gpu: GpuId(gpu), class: ClassId(0) }, &mut out);
    });
    for id in 0..5 {
        let request =
            Request { id: RequestId(id), model, deadline: at(90.0), priority: Priority(1), rows: 1 };
        scheduler.take_in(at(1.0), Event::Arrived(request), &mut out);
    }
    scheduler.settle(at(1.0), &mut out);
    let started = out.list().iter().filter_map(|action| match action {
        Action::Start(start) => Some(out.requests(start).len()),
        _ => None,
    });
    assert_eq!(started.collect::<Vec<_>>(), [5]);
}
