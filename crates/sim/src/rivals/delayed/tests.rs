use super::super::tests::{cluster, run};
use super::*;

/// Runs arrivals for models l(b) = b + 4 ms with an SLO of 40 ms on one device.
fn batches(settings: &[(&str, &str)], arrivals: &[(f64, u32)]) -> Vec<(u32, u32, usize, f64, f64)> {
    log(settings, arrivals).batches()
}

fn log(settings: &[(&str, &str)], arrivals: &[(f64, u32)]) -> super::super::tests::Log {
    let cluster = cluster(1, &[(1.0, 4.0, 32, 40.0, 1.0); 2]);
    let mut chosen = DelayedSettings { cap: BatchCap::Model, ..DelayedSettings::default() };
    settings.iter().for_each(|(key, value)| chosen.set(key, value).unwrap());
    run(&cluster, &mut Delayed::new(&cluster, &chosen), arrivals)
}

#[test]
fn a_head_waits_its_delay_for_company_and_no_longer() {
    // At 5 the head has waited 5: both start, l(2) = 6.
    assert_eq!(batches(&[("delay", "5ms")], &[(0.0, 0), (2.0, 0)]), [(0, 0, 2, 5.0, 11.0)]);
}

#[test]
fn a_full_batch_waits_for_nothing() {
    let settings = [("delay", "0.5slo"), ("max_batch", "2")];
    assert_eq!(batches(&settings, &[(0.0, 0), (1.0, 0)]), [(0, 0, 2, 1.0, 7.0)]);
}

#[test]
fn a_batch_grows_while_no_device_is_free() {
    let arrivals = [(0.0, 0), (1.0, 0), (2.0, 0), (3.0, 0)];
    assert_eq!(batches(&[], &arrivals), [(0, 0, 1, 0.0, 5.0), (0, 0, 3, 5.0, 12.0)]);
}

#[test]
fn a_preferred_size_is_kept_to_until_the_delay_is_over() {
    // 1: two wait, a preferred size. 7: three wait, the head since 2, so two of them go. 14: the last has waited 10.
    let settings = [("delay", "10ms"), ("preferred", "2")];
    let arrivals = [(0.0, 0), (1.0, 0), (2.0, 0), (3.0, 0), (4.0, 0)];
    let expected = [(0, 0, 2, 1.0, 7.0), (0, 0, 2, 7.0, 13.0), (0, 0, 1, 14.0, 19.0)];
    assert_eq!(batches(&settings, &arrivals), expected);
}

#[test]
fn a_head_that_waited_its_delay_takes_along_more_than_the_preferred_size() {
    // The device is busy until 5; by then the head has waited 3, longer than its delay.
    let settings = [("delay", "2ms"), ("preferred", "1+2")];
    let arrivals = [(0.0, 0), (2.0, 0), (3.0, 0), (4.0, 0)];
    assert_eq!(batches(&settings, &arrivals), [(0, 0, 1, 0.0, 5.0), (0, 0, 3, 5.0, 12.0)]);
}

#[test]
fn a_request_past_the_queue_timeout_is_rejected_when_its_batch_is_formed() {
    // At 5 the second request has waited 4 > 3, the third 1.
    let log = log(&[("timeout", "3ms")], &[(0.0, 0), (1.0, 0), (4.0, 0)]);
    assert_eq!(log.batches(), [(0, 0, 1, 0.0, 5.0), (0, 0, 1, 5.0, 10.0)]);
    assert_eq!(log.dropped, [(1, 5.0)]);
}

#[test]
fn without_a_timeout_nothing_is_dropped_however_late_it_is() {
    // 33 requests at once, batches of 1 take 5 ms each: the last ends at 165 ms, long past the SLO of 40 ms.
    let log = log(&[("max_batch", "1")], &[(0.0, 0); 33]);
    assert_eq!((log.ran.len(), log.dropped.len()), (33, 0));
}

#[test]
fn among_ready_models_the_oldest_head_goes_first() {
    let arrivals = [(0.0, 0), (1.0, 1), (2.0, 0)];
    assert_eq!(batches(&[], &arrivals), [(0, 0, 1, 0.0, 5.0), (0, 1, 1, 5.0, 10.0), (0, 0, 1, 10.0, 15.0)]);
}

#[test]
fn a_cap_keeps_the_longest_batch_inside_its_share_of_the_slo() {
    // l(b) = b + 4 within 40, 20 and 28 ms.
    let cluster = cluster(1, &[(1.0, 4.0, 64, 40.0, 1.0)]);
    let cap = |cap| {
        let settings = DelayedSettings { cap, ..DelayedSettings::default() };
        Delayed::new(&cluster, &settings).models[0].full
    };
    let caps = [BatchCap::Model, BatchCap::Slo, BatchCap::HalfSlo, BatchCap::Share(0.7)].map(cap);
    assert_eq!(caps, [64, 36, 16, 24]);
}

#[test]
fn the_timeout_is_what_a_full_batch_leaves_of_the_slo() {
    let cluster = cluster(1, &[(1.0, 4.0, 64, 41.0, 1.0)]);
    let settings = DelayedSettings { timeout: QueueTimeout::On, ..DelayedSettings::default() };
    // 2 l(16) = 40 <= 41 < 2 l(17), and 41 - l(16) = 21.
    assert_eq!(Delayed::new(&cluster, &settings).models[0].timeout, Some(Span::from_millis(21)));
}

#[test]
fn the_grid_leaves_every_capped_batch_time_to_run_after_its_delay() {
    let names: Vec<String> = DelayedSettings::grid().iter().map(ToString::to_string).collect();
    assert_eq!(names.len(), 20);
    assert!(names.contains(&"delay=0.25slo:cap=half:timeout=on".to_string()), "{names:?}");
    assert!(names.contains(&"delay=0.125slo:cap=0.8slo:timeout=off".to_string()), "{names:?}");
    assert!(!names.iter().any(|name| name.starts_with("delay=0.5slo:cap=0.7slo")), "{names:?}");
}

#[test]
fn without_a_timeout_the_queue_does_not_grow_without_end() {
    let cluster = cluster(1, &[(1.0, 4.0, 1, 40.0, 1.0)]);
    let mut policy = Delayed::new(&cluster, &DelayedSettings::default());
    let mut out = Outbox::default();
    for id in 0..LEAST_BOUND as u64 + 10 {
        let deadline = Time::ZERO + Span::from_millis(40);
        let request = Request {
            id: RequestId(id),
            model: ModelId(0),
            deadline,
            priority: downbeat_sched::Priority(0),
            rows: 1,
        };
        policy.handle(Time::ZERO, Event::Arrived(request), &mut out);
    }
    // The first runs.
    assert_eq!(policy.models[0].queue.len(), LEAST_BOUND);
    let refused = |action: &&Action| matches!(action, Action::Answer { outcome: Outcome::Overloaded, .. });
    assert_eq!(out.actions.list().iter().filter(refused).count(), 9);
}
