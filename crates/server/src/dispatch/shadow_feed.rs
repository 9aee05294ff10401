//! The shadow_feed: where selector listen to what the scheduler is told, and run_shadows it on a thread of their own.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::thread;
use std::time::Duration;

use crossbeam_channel::{Receiver, Sender};
use downbeat_profile::Span;
use downbeat_sched::{ClassId, Delays, Event, LossCounts, Priority, Request, Rule, RuleSelector, Time};

use super::Dispatcher;
use crate::clock::Clock;
use crate::metrics::Metrics;

/// How often the selector take in what they heard.
const EVERY: Duration = Duration::from_millis(50);

/// Requests that they have heard and not taken in, past which they give up.
const MOST_HEARD: u64 = 1 << 16;

/// How long they rest when they cannot keep up.
const REST: Span = Span::from_millis(60_000);

/// What happened, and when; a time that is past counts as that of what was heard before.
pub(super) type ShadowEvent = (Time, Event);

/// What the dispatcher lets the selector hear.
///
/// While they are asleep, which they are until something is lost, requests are only counted.
#[derive(Debug)]
pub(super) struct ShadowFeed {
    heard: Sender<ShadowEvent>,
    awake: AtomicBool,
    /// Requests that were heard and have not been taken in.
    waiting: AtomicU64,
    arrived: AtomicU64,
    lost: AtomicU64,
    priorities: AtomicU64,
}

impl ShadowFeed {
    pub(super) fn new() -> (ShadowFeed, Receiver<ShadowEvent>) {
        let (heard, listener) = crossbeam_channel::unbounded();
        let shadow_feed = ShadowFeed {
            heard,
            awake: AtomicBool::default(),
            waiting: AtomicU64::default(),
            arrived: AtomicU64::default(),
            lost: AtomicU64::default(),
            priorities: AtomicU64::default(),
        };
        (shadow_feed, listener)
    }

    /// A request of this priority came in.
    pub(super) fn arrived(&self, priority: Priority) {
        self.arrived.fetch_add(1, Ordering::Relaxed);
        let level = LossCounts::priority(priority);
        if self.priorities.load(Ordering::Relaxed) & level != level {
            self.priorities.fetch_or(level, Ordering::Relaxed);
        }
    }

    /// A request is told to the scheduler.
    pub(super) fn told(&self, now: Time, request: &Request) {
        // One too many is noticed by who takes them in.
        if self.awake.load(Ordering::Relaxed) && self.waiting.fetch_add(1, Ordering::Relaxed) <= MOST_HEARD {
            self.send((now, Event::Arrived(*request)));
        }
    }

    /// Models and devices come, go and change: whenever that is heard.
    pub(super) fn tell(&self, event: Event) {
        self.send((Time::ZERO, event));
    }

    fn send(&self, heard: ShadowEvent) {
        // It only fails where nobody listens.
        let _ = self.heard.send(heard);
    }

    /// A request was answered late, or will not be answered in time.
    pub(super) fn lost(&self) {
        self.lost.fetch_add(1, Ordering::Relaxed);
    }

    fn take_passed(&self) -> LossCounts {
        let take = |count: &AtomicU64| count.swap(0, Ordering::Relaxed);
        LossCounts {
            arrived: take(&self.arrived),
            lost: take(&self.lost),
            priorities: take(&self.priorities),
        }
    }
}

/// Starts the thread on which selector run_shadows what is heard, until the dispatcher ends. It is not vital: should
/// it end by a panic, the scheduler follows its own rule.
pub(super) fn run_shadows(
    clock: Clock,
    own: Rule,
    delays: Delays,
    listener: Receiver<ShadowEvent>,
    dispatcher: &Arc<Dispatcher>,
    metrics: Arc<Metrics>,
) -> io::Result<()> {
    let dispatcher = Arc::downgrade(dispatcher);
    let run = move || {
        let rehearsing = AssertUnwindSafe(|| run(clock, own, delays, &listener, &dispatcher, &metrics));
        if catch_unwind(rehearsing).is_err()
            && let Some(dispatcher) = dispatcher.upgrade()
        {
            tracing::error!(
                "the thread selector has panicked: other rules than the scheduler's own are not tried any more"
            );
            dispatcher.shadow_feed.awake.store(false, Ordering::Relaxed);
            for (class, _) in metrics.classes() {
                dispatcher.follow(&metrics, class, own);
            }
        }
    };
    thread::Builder::new().name("selector".to_owned()).spawn(run).map(drop)
}

fn run(
    clock: Clock,
    own: Rule,
    delays: Delays,
    listener: &Receiver<ShadowEvent>,
    dispatcher: &Weak<Dispatcher>,
    metrics: &Metrics,
) {
    give_way_to_others();
    let mut selector = RuleSelector::new(own, delays);
    loop {
        thread::sleep(EVERY);
        let Some(dispatcher) = dispatcher.upgrade() else { return };
        let follow = |class, rule| dispatcher.follow(metrics, class, rule);
        let now = clock.now();
        take_in(now, &mut selector, listener, &dispatcher.shadow_feed, follow);
        selector.decide(now, follow);
        dispatcher.shadow_feed.awake.store(selector.is_active(), Ordering::Relaxed);
    }
}

/// Takes in what was heard until now.
fn take_in(
    now: Time,
    selector: &mut RuleSelector,
    listener: &Receiver<ShadowEvent>,
    shadow_feed: &ShadowFeed,
    follow: impl FnMut(ClassId, Rule),
) {
    if shadow_feed.waiting.swap(0, Ordering::Relaxed) > MOST_HEARD {
        tracing::info!(
            "requests come faster than other rules can be tried on them: none is tried for a minute"
        );
        selector.back_off(now + REST, follow);
    }
    // No more than there is: more may come while it is taken in.
    for (at, event) in listener.try_iter().take(listener.len()) {
        selector.observe(at, &event);
    }
    selector.count(shadow_feed.take_passed());
}

/// Whoever serves goes first.
fn give_way_to_others() {
    const NICEST: i32 = 19;
    let this = rustix::thread::gettid();
    if let Err(error) = rustix::process::setpriority_process(Some(this), NICEST) {
        tracing::debug!("the selector have the priority of all others: {error}");
    }
}

#[cfg(test)]
mod tests {
    use downbeat_sched::{
        Delays, LossCounts, ModelId, Priority, Request, RequestId, Rule, RuleSelector, Span, Time,
    };

    use super::{MOST_HEARD, Ordering, ShadowFeed, take_in};
    use crate::intake::DEFAULT_PRIORITY;

    fn request(id: u64) -> Request {
        let deadline = Time::ZERO + Span::from_millis(10);
        Request { id: RequestId(id), model: ModelId(0), deadline, priority: DEFAULT_PRIORITY, rows: 1 }
    }

    #[test]
    fn while_they_sleep_requests_are_only_counted() {
        let (shadow_feed, listener) = ShadowFeed::new();
        for priority in [DEFAULT_PRIORITY, Priority(DEFAULT_PRIORITY.0 + 1), DEFAULT_PRIORITY] {
            shadow_feed.arrived(priority);
            shadow_feed.told(Time::ZERO, &request(0));
        }
        shadow_feed.lost();
        assert!(listener.is_empty());
        let passed = shadow_feed.take_passed();
        assert_eq!((passed.arrived, passed.lost, LossCounts::are_several(passed.levels)), (3, 1, true));
        assert_eq!(shadow_feed.take_passed(), LossCounts::default());
        shadow_feed.awake.store(true, Ordering::Relaxed);
        shadow_feed.told(Time::ZERO, &request(0));
        assert_eq!(listener.len(), 1);
    }

    #[test]
    fn requests_that_cannot_be_taken_in_take_no_memory_and_they_rest() {
        let (shadow_feed, listener) = ShadowFeed::new();
        shadow_feed.awake.store(true, Ordering::Relaxed);
        for id in 0..2 * MOST_HEARD {
            shadow_feed.arrived(DEFAULT_PRIORITY);
            shadow_feed.told(Time::ZERO, &request(id));
        }
        assert!(listener.len() as u64 <= MOST_HEARD + 1);
        let mut selector = RuleSelector::new(Rule::ADAPTIVE, Delays::default());
        shadow_feed.lost.store(MOST_HEARD, Ordering::Relaxed);
        take_in(Time::ZERO, &mut selector, &listener, &shadow_feed, |_, _| ());
        assert!(listener.is_empty());
        // Half of all are lost, which would wake them.
        selector.decide(Time::ZERO, |_, _| ());
        assert!(!selector.is_active());
    }
}
