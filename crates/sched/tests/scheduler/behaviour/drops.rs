//! Which requests are given up when there is too much to do. Unless said otherwise, l(b) = b + 5 ms.

use downbeat_sched::*;

use super::{DEFERRED, on_class_0, one_model};
use crate::cluster::{State, TestCluster, at, linear, span};

/// The one device is taken until 7.5; meanwhile a request arrives every millisecond from 0 to 7, due 12 ms later.
fn queue_behind_a_busy_device(drop: DropRule) -> TestCluster {
    let mut cluster = one_model(Rule::DEFERRED.with_drop(drop), 1);
    cluster.add_model(ModelId(1), on_class_0(1.0, 6.5, 1));
    cluster.request(1, 7.5);
    for arrival in 0..8 {
        cluster.run_until(at(f64::from(arrival)));
        cluster.request(0, f64::from(arrival) + 12.0);
    }
    cluster
}

/// Deadlines 12 to 19; at 7.5 a batch of b finishes at 12.5 + b. Those due at 12 and 13 are lost by then. The one due
/// at 14 leaves time for itself alone, until 13.5, and that is too late for all others.
#[test]
fn timeout_drop_spends_the_batch_on_the_request_that_is_nearly_lost() {
    let mut cluster = queue_behind_a_busy_device(DropRule::Timeout);
    cluster.drain();
    assert_eq!(cluster.batches()[1..], [(7.5, 0, vec![3])]);
}

/// The same queue. Seven gaps in 7.5 ms: the largest b with b + 5 + b * 7.5 / 7 <= 12 is 3. Those due before 7.5 + l(3)
/// = 15.5 stand in the way of three and are given up; then the one due at 16 leaves time for three (15.5), not for
/// four.
#[test]
fn window_drop_gives_up_heads_for_the_batch_that_the_load_can_sustain() {
    let mut cluster = queue_behind_a_busy_device(DropRule::Window);
    cluster.drain();
    assert_eq!(cluster.batches()[1..], [(7.5, 0, vec![5, 6, 7])]);
}

/// The largest b that can be gathered and run in time: 3 in 12 ms, b + 5 + b <= 12; 2 in 14 ms where each request needs
/// 0.5 ms on its way and each batch 2 ms, b + 5 + 1.5b <= 14 - 2. At least 1, whatever the load.
#[test]
fn window_drop_aims_at_the_batch_that_can_be_gathered_and_run_in_time() {
    let profile = linear(1.0, 5.0, 32);
    let delays = Delays { control: span(2.0), data: span(0.5) };
    let target = |delays: Delays, gap, slo_ms| {
        let traffic = Traffic {
            profile: &profile,
            delays: &delays,
            gap,
            rows: 1,
            allowance: span(slo_ms),
            dispersion: 1.0,
            room: Room { headroom: 1.0, rule: Rule::DEFERRED },
        };
        assert_eq!(Traffic { room: Room { rule: DEFERRED, ..traffic.room }, ..traffic }.target(), 1);
        traffic.target()
    };
    assert_eq!(target(Delays::default(), span(1.0), 12.0), 3);
    assert_eq!(target(delays, span(1.0), 14.0), 2);
    assert_eq!(target(Delays::default(), Span::ZERO, 100.0), 32);
    assert_eq!(target(Delays::default(), Span::MAX, 12.0), 1);
    assert_eq!(target(Delays::default(), span(1.0), 2.0), 1);
}

/// 8 requests can be gathered and run in 21 ms, 8 + 5 + 8 = 21, at a cost of 13/8 = 1.625 ms each. With a quarter of
/// headroom each may cost 2.03: batches of 5 do, at 10/5 = 2, and batches of 4 at 9/4 = 2.25 do not.
#[test]
fn headroom_drop_aims_at_the_smallest_batch_that_keeps_up() {
    let profile = linear(1.0, 5.0, 32);
    let target = |headroom| {
        let (delays, gap, allowance) = (Delays::default(), span(1.0), span(21.0));
        Traffic {
            profile: &profile,
            delays: &delays,
            gap,
            rows: 1,
            allowance,
            dispersion: 1.0,
            room: Room { headroom, ..Room::default() },
        }
        .target()
    };
    assert_eq!(target(0.5), 8);
    assert_eq!(target(1.0), 8);
    assert_eq!(target(1.25), 5);
    assert_eq!(target(10.0), 1);
    assert_eq!(target(f64::INFINITY), 1);
    assert_eq!(target(f64::NAN), 8);
}

/// Four devices sustain batches of 15 at SLO 25 (l(15) * 5/4 = 25): 3 requests per ms. Twice that arrives, so
/// that half of it can be served.
#[test]
fn under_sustained_overload_window_drop_keeps_batches_large_and_timeout_drop_collapses() {
    fn overload(drop: DropRule) -> (f64, f64) {
        let mut cluster = one_model(Rule::DEFERRED.with_drop(drop), 4);
        let arrivals = 6_000;
        for arrival in 0..arrivals {
            let now_ms = f64::from(arrival) / 6.0;
            cluster.run_until(at(now_ms));
            cluster.request(0, now_ms + 25.0);
        }
        cluster.drain();
        let (finished, batches) = (cluster.finished() as f64, cluster.started().len() as f64);
        (finished / batches, finished / f64::from(arrivals))
    }
    let (window_batch, window_share) = overload(DropRule::Window);
    let (timeout_batch, timeout_share) = overload(DropRule::Timeout);
    assert!(window_batch > 12.0 && window_share > 0.45, "{window_batch} {window_share}");
    assert!(timeout_batch < 3.0 && timeout_share < 0.2, "{timeout_batch} {timeout_share}");
}

/// As above, three start at 7.5 and the head due at 15 was the last to be given up. At 8 a second device joins, and one
/// request due at 14.5 arrives: alone it finishes at 14. It was no part of what was given up.
#[test]
fn a_request_due_before_one_that_was_given_up_earlier_is_judged_on_its_own() {
    let mut cluster = queue_behind_a_busy_device(DropRule::Window);
    cluster.run_until(at(8.0));
    cluster.join(GpuId(1), ClassId(0));
    cluster.request(0, 14.5);
    cluster.run_until(at(14.0));
    assert_eq!(cluster.batches()[2..], [(8.0, 1, vec![9])]);
}

#[test]
fn a_request_that_cannot_make_it_even_alone_is_answered_when_it_arrives() {
    let mut cluster = one_model(Rule::DEFERRED, 1);
    cluster.request(0, 5.9);
    assert_eq!(cluster.state(0), State::Answered(Outcome::Expired));
    cluster.request(0, 6.0);
    assert_eq!(cluster.batches(), [(0.0, 0, vec![1])]);
}

/// Batches of up to 8 take 8 ms, larger ones 14. One device for a request every 0.9 ms: it needs 8 / 7.2 devices.
fn with_steps(devices: u32) -> TestCluster {
    let points = [(1, 8.0), (8, 8.0), (9, 14.0), (16, 14.0)];
    let profile = LatencyProfile::from_points(&points, 16, Beyond::Refuse).expect("valid points");
    let mut cluster = TestCluster::new(Rule::ADAPTIVE, Delays::default());
    cluster.add_model(ModelId(0), ModelSpec::new([(ClassId(0), profile)]));
    (0..devices).for_each(|gpu| cluster.join(GpuId(gpu), ClassId(0)));
    for arrival in 0..2_000 {
        let now_ms = 0.9 * f64::from(arrival);
        cluster.run_until(at(now_ms));
        cluster.request(0, now_ms + 25.0);
    }
    cluster.drain();
    cluster
}

#[test]
fn where_device_time_is_short_no_batch_begins_a_step_that_it_does_not_fill() {
    let batches = |cluster: &TestCluster| {
        let rows: Vec<u32> = cluster.started().iter().skip(50).map(|batch| batch.rows).collect();
        let wasteful = rows.iter().filter(|rows| (9..14).contains(*rows)).count();
        (rows.len(), wasteful)
    };
    let (all, wasteful) = batches(&with_steps(1));
    assert!(all > 100 && wasteful * 50 < all, "{wasteful} of {all} batches");
}
