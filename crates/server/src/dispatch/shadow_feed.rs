//! What shadow schedulers learn of the traffic, and the thread that they run on.

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

/// How often shadows take in what has happened.
const EVERY: Duration = Duration::from_millis(50);

/// Requests that have come and not been taken in, past which shadows give up.
const MOST_WAITING: u64 = 1 << 16;

/// How long shadows stop when they cannot keep up.
const BACK_OFF: Span = Span::from_millis(60_000);

/// An event and its time; a time in the past counts as that of the event before.
pub(super) type ShadowEvent = (Time, Event);

/// What the dispatcher tells the shadows.
///
/// While they do not run, which is until something is lost, requests are only counted.
#[derive(Debug)]
pub(super) struct ShadowFeed {
    events: Sender<ShadowEvent>,
    active: AtomicBool,
    /// Requests that were sent and have not been taken in.
    waiting: AtomicU64,
    arrived: AtomicU64,
    lost: AtomicU64,
    priorities: AtomicU64,
}

impl ShadowFeed {
    pub(super) fn new() -> (ShadowFeed, Receiver<ShadowEvent>) {
        let (events, received) = crossbeam_channel::unbounded();
        let shadow_feed = ShadowFeed {
            events,
            active: AtomicBool::default(),
            waiting: AtomicU64::default(),
            arrived: AtomicU64::default(),
            lost: AtomicU64::default(),
            priorities: AtomicU64::default(),
        };
        (shadow_feed, received)
    }

    /// A request of this priority came in.
    pub(super) fn arrived(&self, priority: Priority) {
        self.arrived.fetch_add(1, Ordering::Relaxed);
        let bits = LossCounts::priority(priority);
        if self.priorities.load(Ordering::Relaxed) & bits != bits {
            self.priorities.fetch_or(bits, Ordering::Relaxed);
        }
    }

    /// The scheduler is told of a request.
    pub(super) fn request(&self, now: Time, request: &Request) {
        // One too many is noticed by who takes them in.
        if self.active.load(Ordering::Relaxed) && self.waiting.fetch_add(1, Ordering::Relaxed) <= MOST_WAITING
        {
            self.send((now, Event::Arrived(*request)));
        }
    }

    /// A model or a device comes, goes or changes; shadows learn of it when they do.
    pub(super) fn change(&self, event: Event) {
        self.send((Time::ZERO, event));
    }

    fn send(&self, event: ShadowEvent) {
        // It only fails where the thread of the shadows has ended.
        let _ = self.events.send(event);
    }

    /// A request was answered late, or will not be answered in time.
    pub(super) fn lost(&self) {
        self.lost.fetch_add(1, Ordering::Relaxed);
    }

    fn take_counts(&self) -> LossCounts {
        let take = |count: &AtomicU64| count.swap(0, Ordering::Relaxed);
        LossCounts {
            arrived: take(&self.arrived),
            lost: take(&self.lost),
            priorities: take(&self.priorities),
        }
    }
}

/// Starts the thread of the shadows, which ends with the dispatcher. It is not vital: should it end by a panic, the
/// scheduler follows its own rule.
pub(super) fn run_shadows(
    clock: Clock,
    own: Rule,
    delays: Delays,
    received: Receiver<ShadowEvent>,
    dispatcher: &Arc<Dispatcher>,
    metrics: Arc<Metrics>,
) -> io::Result<()> {
    let dispatcher = Arc::downgrade(dispatcher);
    let run = move || {
        let running = AssertUnwindSafe(|| run(clock, own, delays, &received, &dispatcher, &metrics));
        if catch_unwind(running).is_err()
            && let Some(dispatcher) = dispatcher.upgrade()
        {
            tracing::error!(
                "the thread shadows has panicked: the scheduler follows its own rule from now on"
            );
            dispatcher.shadow_feed.active.store(false, Ordering::Relaxed);
            for (class, _) in metrics.classes() {
                dispatcher.follow(&metrics, class, own);
            }
        }
    };
    thread::Builder::new().name("shadows".to_owned()).spawn(run).map(drop)
}

fn run(
    clock: Clock,
    own: Rule,
    delays: Delays,
    received: &Receiver<ShadowEvent>,
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
        take_in(now, &mut selector, received, &dispatcher.shadow_feed, follow);
        selector.decide(now, follow);
        dispatcher.shadow_feed.active.store(selector.is_active(), Ordering::Relaxed);
    }
}

/// Takes in what has happened until now.
fn take_in(
    now: Time,
    selector: &mut RuleSelector,
    received: &Receiver<ShadowEvent>,
    shadow_feed: &ShadowFeed,
    follow: impl FnMut(ClassId, Rule),
) {
    if shadow_feed.waiting.swap(0, Ordering::Relaxed) > MOST_WAITING {
        tracing::info!("policy portfolio paused for 60 s: arrivals exceed what shadows can keep up with");
        selector.back_off(now + BACK_OFF, follow);
    }
    // No more than there is: more may come while it is taken in.
    for (at, event) in received.try_iter().take(received.len()) {
        selector.observe(at, &event);
    }
    selector.count(shadow_feed.take_counts());
}

/// Gives this thread the lowest priority: threads that serve go first.
fn give_way_to_others() {
    const NICEST: i32 = 19;
    let this = rustix::thread::gettid();
    if let Err(error) = rustix::process::setpriority_process(Some(this), NICEST) {
        tracing::debug!("shadows have the priority of all other threads: {error}");
    }
}

#[cfg(test)]
mod tests {
    use downbeat_sched::{
        Delays, LossCounts, ModelId, Priority, Request, RequestId, Rule, RuleSelector, Span, Time,
    };

    use super::{MOST_WAITING, Ordering, ShadowFeed, take_in};
    use crate::intake::DEFAULT_PRIORITY;

    fn request(id: u64) -> Request {
        let deadline = Time::ZERO + Span::from_millis(10);
        Request { id: RequestId(id), model: ModelId(0), deadline, priority: DEFAULT_PRIORITY, rows: 1 }
    }

    #[test]
    fn while_no_shadow_runs_requests_are_only_counted() {
        let (shadow_feed, received) = ShadowFeed::new();
        for priority in [DEFAULT_PRIORITY, Priority(DEFAULT_PRIORITY.0 + 1), DEFAULT_PRIORITY] {
            shadow_feed.arrived(priority);
            shadow_feed.request(Time::ZERO, &request(0));
        }
        shadow_feed.lost();
        assert!(received.is_empty());
        let counts = shadow_feed.take_counts();
        assert_eq!((counts.arrived, counts.lost, LossCounts::are_several(counts.priorities)), (3, 1, true));
        assert_eq!(shadow_feed.take_counts(), LossCounts::default());
        shadow_feed.active.store(true, Ordering::Relaxed);
        shadow_feed.request(Time::ZERO, &request(0));
        assert_eq!(received.len(), 1);
    }

    #[test]
    fn requests_that_cannot_be_taken_in_take_no_memory_and_shadows_back_off() {
        let (shadow_feed, received) = ShadowFeed::new();
        shadow_feed.active.store(true, Ordering::Relaxed);
        for id in 0..2 * MOST_WAITING {
            shadow_feed.arrived(DEFAULT_PRIORITY);
            shadow_feed.request(Time::ZERO, &request(id));
        }
        assert!(received.len() as u64 <= MOST_WAITING + 1);
        let mut selector = RuleSelector::new(Rule::ADAPTIVE, Delays::default());
        shadow_feed.lost.store(MOST_WAITING, Ordering::Relaxed);
        take_in(Time::ZERO, &mut selector, &received, &shadow_feed, |_, _| ());
        assert!(received.is_empty());
        // Half of all are lost, which would start them.
        selector.decide(Time::ZERO, |_, _| ());
        assert!(!selector.is_active());
    }
}
