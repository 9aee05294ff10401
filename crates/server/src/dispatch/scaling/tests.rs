use downbeat_profile::Span;
use downbeat_scale::{Decision, Reason};
use downbeat_sched::{ClassId, Need, Time};

use super::{Scaling, Tally};

const CLASS: ClassId = ClassId(0);
const INTERVAL: Span = Span::from_millis(5_000);

/// Intervals of a class with so many devices, of which each is busy for a part of the time.
fn decided(intervals: u64, needed: f64, gpus: usize, busy: f64) -> Decision {
    let mut scaling = Scaling::new(Time::ZERO);
    let mut last = None;
    for interval in 1..=intervals {
        let now = Time::ZERO + INTERVAL * interval;
        scaling.look(CLASS, Need::new(needed, 0.0));
        assert!(scaling.is_due(now));
        let over = scaling.begin_interval(now);
        let busy = vec![Span::from_secs_f64(busy * over.as_secs_f64()); gpus];
        let tally = Tally { arrivals: 500, answered: 500, bad: 0, batches: 50, rows: 500 };
        last = Some(scaling.decide(now, over, CLASS, &busy, tally, 3));
    }
    last.expect("a decision")
}

#[test]
fn a_need_beyond_the_devices_is_told_whole() {
    let decision = decided(3, 7.5, 2, 1.0);
    assert_eq!((decision.wanted, decision.reason), (8, Reason::Need));
    assert_eq!((decision.rate_rps, decision.mean_batch), (100.0, 10.0));
}

/// Who reads the metric every minute must find it, not only in the five seconds in which it was decided.
#[test]
fn that_devices_can_go_is_said_until_they_do() {
    for intervals in 60..70 {
        let decision = decided(intervals, 1.0, 8, 0.125);
        assert_eq!((decision.wanted, decision.reason), (6, Reason::Unneeded), "after {intervals}");
    }
}

#[test]
fn a_class_that_is_new_is_decided_about_at_once_and_then_every_few_seconds() {
    let now = Time::ZERO + Span::from_millis(200);
    let mut scaling = Scaling::new(Time::ZERO);
    assert!(!scaling.is_due(now));
    scaling.look(CLASS, Need::default());
    assert!(scaling.is_due(now));
    let over = scaling.begin_interval(now);
    assert_eq!(scaling.decide(now, over, CLASS, &[Span::ZERO], Tally::default(), 0).wanted, 1);
    scaling.look(CLASS, Need::default());
    assert!(!scaling.is_due(now + Span::from_millis(4_000)));
    assert!(scaling.is_due(now + Span::from_millis(5_000)));
}
