//! The wings: where understudies listen to what the scheduler is told, and rehearse it on a thread of their own.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::thread;
use std::time::Duration;

use crossbeam_channel::{Receiver, Sender};
use downbeat_profile::Span;
use downbeat_sched::{ClassId, Delays, Event, Priority, Request, Stance, Time};
use downbeat_understudy::{Passed, Understudies};

use super::Dispatcher;
use crate::clock::Clock;
use crate::metrics::Metrics;

/// How often the understudies take in what they heard.
const EVERY: Duration = Duration::from_millis(50);

/// Requests that they have heard and not taken in, past which they give up.
const MOST_HEARD: u64 = 1 << 16;

/// How long they rest when they cannot keep up.
const REST: Span = Span::from_millis(60_000);

/// What happened, and when; a time that is past counts as that of what was heard before.
pub(super) type Heard = (Time, Event);

/// What the dispatcher lets the understudies hear.
///
/// While they are asleep, which they are until something is lost, requests are only counted.
#[derive(Debug)]
pub(super) struct Wings {
    heard: Sender<Heard>,
    awake: AtomicBool,
    /// Requests that were heard and have not been taken in.
    waiting: AtomicU64,
    arrived: AtomicU64,
    lost: AtomicU64,
    levels: AtomicU64,
}

impl Wings {
    pub(super) fn new() -> (Wings, Receiver<Heard>) {
        let (heard, listener) = crossbeam_channel::unbounded();
        let wings = Wings {
            heard,
            awake: AtomicBool::default(),
            waiting: AtomicU64::default(),
            arrived: AtomicU64::default(),
            lost: AtomicU64::default(),
            levels: AtomicU64::default(),
        };
        (wings, listener)
    }

    /// A request of this priority came in.
    pub(super) fn arrived(&self, priority: Priority) {
        self.arrived.fetch_add(1, Ordering::Relaxed);
        let level = Passed::level(priority);
        if self.levels.load(Ordering::Relaxed) & level != level {
            self.levels.fetch_or(level, Ordering::Relaxed);
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

    fn send(&self, heard: Heard) {
        // It only fails where nobody listens.
        let _ = self.heard.send(heard);
    }

    /// A request was answered late, or will not be answered in time.
    pub(super) fn lost(&self) {
        self.lost.fetch_add(1, Ordering::Relaxed);
    }

    fn take_passed(&self) -> Passed {
        let take = |count: &AtomicU64| count.swap(0, Ordering::Relaxed);
        Passed { arrived: take(&self.arrived), lost: take(&self.lost), levels: take(&self.levels) }
    }
}

/// Starts the thread on which understudies rehearse what is heard, until the dispatcher ends. It is not vital: should
/// it end by a panic, the scheduler follows its own rule.
pub(super) fn rehearse(
    clock: Clock,
    delays: Delays,
    listener: Receiver<Heard>,
    dispatcher: &Arc<Dispatcher>,
    metrics: Arc<Metrics>,
) -> io::Result<()> {
    let dispatcher = Arc::downgrade(dispatcher);
    let run = move || {
        let rehearsing = AssertUnwindSafe(|| run(clock, delays, &listener, &dispatcher, &metrics));
        if catch_unwind(rehearsing).is_err()
            && let Some(dispatcher) = dispatcher.upgrade()
        {
            tracing::error!(
                "the thread understudies has panicked: other rules than the scheduler's own are not tried any more"
            );
            dispatcher.wings.awake.store(false, Ordering::Relaxed);
            for (class, _) in metrics.classes() {
                dispatcher.follow(&metrics, class, Stance::Own);
            }
        }
    };
    thread::Builder::new().name("understudies".to_owned()).spawn(run).map(drop)
}

fn run(
    clock: Clock,
    delays: Delays,
    listener: &Receiver<Heard>,
    dispatcher: &Weak<Dispatcher>,
    metrics: &Metrics,
) {
    give_way_to_others();
    let mut understudies = Understudies::new(delays);
    loop {
        thread::sleep(EVERY);
        let Some(dispatcher) = dispatcher.upgrade() else { return };
        let follow = |class, stance| dispatcher.follow(metrics, class, stance);
        let now = clock.now();
        take_in(now, &mut understudies, listener, &dispatcher.wings, follow);
        understudies.decide(now, follow);
        dispatcher.wings.awake.store(understudies.are_awake(), Ordering::Relaxed);
    }
}

/// Takes in what was heard until now.
fn take_in(
    now: Time,
    understudies: &mut Understudies,
    listener: &Receiver<Heard>,
    wings: &Wings,
    follow: impl FnMut(ClassId, Stance),
) {
    if wings.waiting.swap(0, Ordering::Relaxed) > MOST_HEARD {
        tracing::info!(
            "requests come faster than other rules can be tried on them: none is tried for a minute"
        );
        understudies.rest(now + REST, follow);
    }
    // No more than there is: more may come while it is taken in.
    for (at, event) in listener.try_iter().take(listener.len()) {
        understudies.hear(at, &event);
    }
    understudies.count(wings.take_passed());
}

/// Whoever serves goes first.
fn give_way_to_others() {
    const NICEST: i32 = 19;
    let this = rustix::thread::gettid();
    if let Err(error) = rustix::process::setpriority_process(Some(this), NICEST) {
        tracing::debug!("the understudies have the priority of all others: {error}");
    }
}

#[cfg(test)]
mod tests {
    use downbeat_sched::{Delays, ModelId, Priority, Request, RequestId, Span, Time};
    use downbeat_understudy::{Passed, Understudies};

    use super::{MOST_HEARD, Ordering, Wings, take_in};
    use crate::intake::DEFAULT_PRIORITY;

    fn request(id: u64) -> Request {
        let deadline = Time::ZERO + Span::from_millis(10);
        Request { id: RequestId(id), model: ModelId(0), deadline, priority: DEFAULT_PRIORITY, rows: 1 }
    }

    #[test]
    fn while_they_sleep_requests_are_only_counted() {
        let (wings, listener) = Wings::new();
        for priority in [DEFAULT_PRIORITY, Priority(DEFAULT_PRIORITY.0 + 1), DEFAULT_PRIORITY] {
            wings.arrived(priority);
            wings.told(Time::ZERO, &request(0));
        }
        wings.lost();
        assert!(listener.is_empty());
        let passed = wings.take_passed();
        assert_eq!((passed.arrived, passed.lost, Passed::are_several(passed.levels)), (3, 1, true));
        assert_eq!(wings.take_passed(), Passed::default());
        wings.awake.store(true, Ordering::Relaxed);
        wings.told(Time::ZERO, &request(0));
        assert_eq!(listener.len(), 1);
    }

    #[test]
    fn requests_that_cannot_be_taken_in_take_no_memory_and_they_rest() {
        let (wings, listener) = Wings::new();
        wings.awake.store(true, Ordering::Relaxed);
        for id in 0..2 * MOST_HEARD {
            wings.arrived(DEFAULT_PRIORITY);
            wings.told(Time::ZERO, &request(id));
        }
        assert!(listener.len() as u64 <= MOST_HEARD + 1);
        let mut understudies = Understudies::new(Delays::default());
        wings.lost.store(MOST_HEARD, Ordering::Relaxed);
        take_in(Time::ZERO, &mut understudies, &listener, &wings, |_, _| ());
        assert!(listener.is_empty());
        // Half of all are lost, which would wake them.
        understudies.decide(Time::ZERO, |_, _| ());
        assert!(!understudies.are_awake());
    }
}
