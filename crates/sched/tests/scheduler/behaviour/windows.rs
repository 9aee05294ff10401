//! When a window opens, what is in the batch then, and which device it gets. Unless said otherwise, l(b) = b + 5 ms.

use downbeat_sched::*;

use super::{DEFERRED, on_class_0, one_model};
use crate::cluster::{TestCluster, at};

fn guarded(k: f64) -> Rule {
    Rule::guarded(k).with_drop(DropRule::Timeout)
}

/// Arrivals every 0.75, SLO 12. With the head at a, the fourth comes at a + 2.25, when the window of four has been open
/// since a + 12 - l(5) = a + 2 and that of three would open only at a + 3. So a batch of four starts every 3 ms, each
/// runs for l(4) = 9 ms, and three devices take turns without a gap.
#[test]
fn three_devices_fall_into_staggered_batches_of_four() {
    let mut cluster = one_model(DEFERRED, 3);
    for arrival in 0..120 {
        let now_ms = 0.75 * f64::from(arrival);
        cluster.run_until(at(now_ms));
        cluster.request(0, now_ms + 12.0);
    }
    cluster.drain();
    let expected: Vec<_> = (0..30u32)
        .map(|batch| {
            let first = u64::from(4 * batch);
            (2.25 + 3.0 * f64::from(batch), batch % 3, vec![first, first + 1, first + 2, first + 3])
        })
        .collect();
    assert_eq!(cluster.batches(), expected);
    assert_eq!(cluster.finished(), 120);
}

/// A batch of b due at 12 starts at 12 - l(b + 1): 12 - 7 for one request, 12 - 8 for two.
#[test]
fn a_batch_starts_when_one_more_request_could_no_longer_join_for_free() {
    for (requests, start_ms, finish_ms) in [(1, 5.0, 11.0), (2, 4.0, 11.0), (5, 1.0, 11.0)] {
        let mut cluster = one_model(DEFERRED, 1);
        (0..requests).for_each(|_| cluster.request(0, 12.0));
        cluster.run_until(at(start_ms - 1e-6));
        assert_eq!(cluster.batches(), []);
        cluster.drain();
        let batch = &cluster.started()[0];
        assert_eq!((batch.start_ms, batch.finish_ms, batch.reason), (start_ms, finish_ms, Release::Window));
        assert_eq!(batch.ids.len(), requests);
    }
}

/// Due at 12, alone: would start at 5. Another one at 4.5 moves the window to 12 - l(3) = 4, which is past.
#[test]
fn an_arrival_that_moves_the_window_into_the_past_starts_the_batch_at_once() {
    let mut cluster = one_model(DEFERRED, 1);
    cluster.request(0, 12.0);
    cluster.run_until(at(4.5));
    cluster.request(0, 16.5);
    assert_eq!(cluster.batches(), [(4.5, 0, vec![0, 1])]);
}

/// Batches of at most two: the second request fills the batch at 1, long before its deadline. The third waits alone for
/// a fourth until its window is as narrow as it gets, 102 - l(2) = 95.
#[test]
fn a_full_batch_starts_at_once() {
    let mut cluster = TestCluster::new(DEFERRED, Delays::default());
    cluster.add_model(ModelId(0), on_class_0(1.0, 5.0, 2));
    cluster.join(GpuId(0), ClassId(0));
    for arrival in 0..3 {
        cluster.run_until(at(f64::from(arrival)));
        cluster.request(0, 100.0 + f64::from(arrival));
    }
    cluster.drain();
    assert_eq!(cluster.batches(), [(1.0, 0, vec![0, 1]), (95.0, 0, vec![2])]);
    let reasons: Vec<_> = cluster.started().iter().map(|batch| batch.reason).collect();
    assert_eq!(reasons, [Release::Full, Release::Window]);
}

/// Due at 500 and held back for 100 at most, however long a batch takes: the second request, at 60, still joins.
#[test]
fn a_batch_is_not_held_back_longer_than_its_model_allows() {
    let mut cluster = TestCluster::new(DEFERRED, Delays::default());
    let max_wait = Span::from_millis(100);
    cluster.add_model(ModelId(0), ModelSpec { max_wait, ..on_class_0(1.0, 90.0, 32) });
    cluster.join(GpuId(0), ClassId(0));
    cluster.request(0, 500.0);
    cluster.run_until(at(60.0));
    cluster.request(0, 560.0);
    cluster.drain();
    assert_eq!(cluster.batches(), [(100.0, 0, vec![0, 1])]);
}

/// A request due in 30 is held back until its window, at 30 - l(2), and not until 100: what bounds the wait of others
/// leaves it its company. One due in 500 is not held back longer than 100 because others have little time.
#[test]
fn a_bound_on_the_wait_leaves_requests_of_less_time_their_company() {
    let mut cluster = TestCluster::new(DEFERRED, Delays::default());
    let max_wait = Span::from_millis(100);
    cluster.add_model(ModelId(0), ModelSpec { max_wait, ..on_class_0(1.0, 5.0, 32) });
    cluster.join(GpuId(0), ClassId(0));
    cluster.request(0, 30.0);
    cluster.run_until(at(10.0));
    cluster.request(0, 40.0);
    cluster.run_until(at(50.0));
    cluster.request(0, 550.0);
    cluster.drain();
    assert_eq!(cluster.batches(), [(22.0, 0, vec![0, 1]), (150.0, 0, vec![2])]);
}

/// Device 0 runs from 5 to 11 and is idle again at 20, when the next request comes; device 1 has been idle all along.
#[test]
fn load_gathers_on_the_smallest_id_or_goes_round_by_idle_time() {
    fn devices(order: GpuOrder) -> Vec<u32> {
        let mut cluster = one_model(DEFERRED.with_order(order), 3);
        for arrival in 0..4 {
            cluster.run_until(at(20.0 * f64::from(arrival)));
            cluster.request(0, 20.0 * f64::from(arrival) + 12.0);
        }
        cluster.drain();
        cluster.started().iter().map(|batch| batch.gpu).collect()
    }
    assert_eq!(devices(GpuOrder::SmallestId), [0, 0, 0, 0]);
    assert_eq!(devices(GpuOrder::EarliestFree), [0, 1, 2, 0]);
}

/// Model 0 keeps the device from 0 to 6. By then the windows of models 1 (from 6 to 7) and 2 (from 5.5 to 6.5) are
/// open; model 2 must start first, or it never will. It ends at 12, too late for model 1.
#[test]
fn a_freed_device_goes_to_the_model_that_must_start_first() {
    let mut cluster = TestCluster::new(DEFERRED, Delays::default());
    for model in 0..3 {
        cluster.add_model(ModelId(model), on_class_0(1.0, 5.0, 32));
    }
    cluster.join(GpuId(0), ClassId(0));
    cluster.request(0, 6.0);
    cluster.request(1, 13.0);
    cluster.request(2, 12.5);
    cluster.drain();
    assert_eq!(cluster.batches(), [(0.0, 0, vec![0]), (6.0, 0, vec![2])]);
}

/// Model 1, l(b) = 5b + 1, must start by 31 - l(1) = 25; model 2, l(b) = b + 5, by 30 - l(1) = 24. That the window of
/// model 1 opened earlier, at 31 - l(2) = 20 and not at 23, does not count.
#[test]
fn it_is_not_the_window_that_opened_first_that_counts() {
    let mut cluster = one_model(DEFERRED, 1);
    cluster.add_model(ModelId(1), on_class_0(5.0, 1.0, 32));
    cluster.add_model(ModelId(2), on_class_0(1.0, 5.0, 32));
    cluster.run_until(at(18.0));
    cluster.request(0, 24.0); // Keeps the device until 24.
    cluster.request(1, 31.0);
    cluster.request(2, 30.0);
    cluster.run_until(at(24.0));
    assert_eq!(cluster.batches(), [(18.0, 0, vec![0]), (24.0, 0, vec![2])]);
}

/// The device is taken until 6. The window of the first request opens at 12.5 - 7 = 5.5; the second one comes at 5.9
/// and is in the batch when the device is free: 6 + l(2) = 13 is past 12.5, so only if the first has time until 13.
#[test]
fn a_request_that_arrives_while_its_model_waits_for_a_device_is_in_the_batch() {
    for (deadline_ms, expected) in [(13.0, vec![1, 2]), (12.5, vec![1])] {
        let mut cluster = one_model(DEFERRED, 1);
        cluster.add_model(ModelId(1), on_class_0(1.0, 5.0, 32));
        cluster.request(1, 6.0);
        cluster.request(0, deadline_ms);
        cluster.run_until(at(5.9));
        cluster.request(0, 30.0);
        cluster.run_until(at(6.0));
        assert_eq!(cluster.batches()[1..], [(6.0, 0, expected)]);
    }
}

/// Request 1 comes later and is due earlier: d = 12, so the two start at 12 - l(3) = 4, the more urgent one first.
#[test]
fn deadlines_count_and_not_the_order_of_arrival() {
    let mut cluster = one_model(DEFERRED, 1);
    cluster.request(0, 40.0);
    cluster.run_until(at(1.0));
    cluster.request(0, 12.0);
    cluster.drain();
    assert_eq!(cluster.batches(), [(4.0, 0, vec![1, 0])]);
}

/// Eight wait until 40 - l(9) = 26. One due at 8 comes at 1 and can take one of them along, 1 + l(2) = 8; there is no
/// time for a third, so it starts at once. The other seven wait until 40 - l(8) = 27.
#[test]
fn an_urgent_request_takes_along_only_as_many_as_its_deadline_allows() {
    let mut cluster = one_model(DEFERRED, 2);
    (0..8).for_each(|_| cluster.request(0, 40.0));
    cluster.run_until(at(1.0));
    cluster.request(0, 8.0);
    cluster.drain();
    assert_eq!(cluster.batches(), [(1.0, 0, vec![8, 0]), (27.0, 0, (1..8).collect())]);
}

/// On one device: the first request is alone, and starts where no more can join it; the second waits for the device
/// only. A model that is added anew is asked for again: its window opens at 122 - l(2) = 115.
#[test]
fn a_model_that_drains_waits_for_no_more_requests() {
    let mut cluster = one_model(DEFERRED, 1);
    cluster.request(0, 100.0);
    cluster.run_until(at(2.0));
    cluster.drain_model(ModelId(0));
    cluster.run_until(at(3.0));
    cluster.request(0, 100.0);
    cluster.run_until(at(20.0));
    assert_eq!(cluster.batches(), [(2.0, 0, vec![0]), (8.0, 0, vec![1])]);
    assert!(cluster.started().iter().all(|batch| batch.reason == Release::Drain));
    cluster.add_model(ModelId(0), on_class_0(1.0, 5.0, 32));
    cluster.run_until(at(22.0));
    cluster.request(0, 122.0);
    cluster.drain();
    assert_eq!(cluster.batches()[2..], [(115.0, 0, vec![2])]);
}

/// Four devices and a request due at 12: by k = 1 its window opens 6 / 4 = 1.5 ms before 5.
#[test]
fn a_batch_is_released_by_the_reason_of_the_rule_that_is_followed() {
    for (rule, start_ms, reason) in [
        (Rule::DEFERRED, 5.0, Release::Window),
        (Rule::guarded(1.0), 3.5, Release::Guard),
        (Rule::EAGER, 0.0, Release::Eager),
    ] {
        let mut cluster = one_model(Rule::ADAPTIVE, 4);
        cluster.follow(ClassId(0), rule);
        cluster.request(0, 12.0);
        cluster.drain();
        let batch = &cluster.started()[0];
        assert_eq!((batch.start_ms, batch.reason), (start_ms, reason), "{rule}");
    }
}

#[test]
fn eager_dispatch_starts_whatever_waits_as_soon_as_a_device_is_idle() {
    let mut cluster = one_model(Rule::EAGER, 1);
    cluster.request(0, 100.0); // Alone, from 0 to 6.
    cluster.run_until(at(2.0));
    cluster.request(0, 100.0);
    cluster.run_until(at(3.0));
    cluster.request(0, 100.0);
    cluster.drain();
    assert_eq!(cluster.batches(), [(0.0, 0, vec![0]), (6.0, 0, vec![1, 2])]);
    assert!(cluster.started().iter().all(|batch| batch.reason == Release::Eager));
}

/// Four devices, k = 2, one request due at 12. Its own l(1) = 6 is all that waits, so its window opens 2 * 6 / 4 = 3 ms
/// before 12 - l(2) = 5.
#[test]
fn guarded_deferral_opens_a_window_earlier_by_k_times_the_backlog_per_device() {
    let mut cluster = one_model(guarded(2.0), 4);
    cluster.request(0, 12.0);
    cluster.run_until(at(2.0 - 1e-6));
    assert_eq!(cluster.batches(), []);
    cluster.drain();
    assert_eq!(cluster.batches(), [(2.0, 0, vec![0])]);
    assert_eq!(cluster.started()[0].reason, Release::Guard);
}

/// Model 1, l(b) = b + 9, adds its l(1) = 10: with k = 1 on four devices model 0 opens (6 + 10) / 4 = 4 ms before 5.
/// Once it is gone, model 1 opens 10 / 4 before 60 - l(2) = 49.
#[test]
fn guarded_deferral_counts_the_work_of_all_models_and_forgets_what_has_started() {
    let mut cluster = one_model(guarded(1.0), 4);
    cluster.add_model(ModelId(1), on_class_0(1.0, 9.0, 32));
    cluster.request(1, 60.0);
    cluster.request(0, 12.0);
    cluster.drain();
    assert_eq!(cluster.batches(), [(1.0, 0, vec![1]), (46.5, 0, vec![0])]);
}

/// Alone, model 0 opens 6 / 4 before 5; what model 1 had waiting went with it at 0.5.
#[test]
fn guarded_deferral_forgets_the_work_of_a_removed_model() {
    let mut cluster = one_model(guarded(1.0), 4);
    cluster.add_model(ModelId(1), on_class_0(1.0, 9.0, 32));
    cluster.request(1, 60.0);
    cluster.request(0, 12.0);
    cluster.run_until(at(0.5));
    cluster.remove_model(ModelId(1));
    cluster.drain();
    assert_eq!(cluster.batches(), [(3.5, 0, vec![1])]);
}

/// Twice the devices, half the head start: the window that opened at 2 with four devices opens at 3.5 with eight.
#[test]
fn guarded_deferral_waits_longer_when_devices_join() {
    let mut cluster = one_model(guarded(2.0), 4);
    cluster.request(0, 12.0);
    cluster.run_until(at(1.0));
    (4..8).for_each(|gpu| cluster.join(GpuId(gpu), ClassId(0)));
    cluster.drain();
    assert_eq!(cluster.batches(), [(3.5, 0, vec![0])]);
}

#[test]
fn guarded_deferral_without_a_factor_is_the_papers_rule() {
    for k in [0.0, -1.0, f64::NAN] {
        let mut cluster = one_model(guarded(k), 4);
        cluster.request(0, 12.0);
        cluster.drain();
        assert_eq!(cluster.batches(), [(5.0, 0, vec![0])]);
    }
}

/// A timer is used up by firing. A clock that fires it too early must be asked again, or nobody wakes the scheduler.
#[test]
fn a_timer_that_fires_early_is_armed_again() {
    let mut scheduler = Scheduler::new(DEFERRED, Delays::default());
    let mut out = Actions::new();
    let model = ModelId(0);
    let request = Request { id: RequestId(0), model, deadline: at(12.0), priority: Priority(1), rows: 1 };
    scheduler.handle(at(0.0), Event::ModelAdded { model, spec: on_class_0(1.0, 5.0, 32) }, &mut out);
    scheduler.handle(at(0.0), Event::GpuJoined { gpu: GpuId(0), class: ClassId(0) }, &mut out);
    scheduler.handle(at(0.0), Event::Arrived(request), &mut out);
    let armed = out.list().to_vec();
    assert!(
        matches!(armed[..], [Action::ArmTimer { at: then }] if at(1.0) < then && then <= at(5.0)),
        "{armed:?}"
    );
    out.clear();
    scheduler.handle(at(1.0), Event::Timer, &mut out);
    assert_eq!(out.list(), armed);
}
