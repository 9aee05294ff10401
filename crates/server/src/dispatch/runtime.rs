//! The dispatcher's thread.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, TryRecvError};
use downbeat_engine::wake_up_on_time;
use downbeat_profile::Span;
use downbeat_sched::{RequestId, Time};

use super::scaling::Scaling;
use super::{Command, Dispatcher, Outbox};
use crate::clock::Clock;
use crate::metrics::Metrics;
use crate::vital::spawn_vital;

/// The way to the dispatcher, which runs on a thread of its own: tokio's timers tick in milliseconds, and a batch's window
/// can be tens of microseconds wide.
#[derive(Clone, Debug)]
pub(crate) struct Runtime {
    commands: Sender<Command>,
    next_request: Arc<AtomicU64>,
    pub(crate) clock: Clock,
}

impl Runtime {
    /// Starts the thread. `outbox` is made from the runtime, since what comes back from devices goes to it.
    pub(crate) fn start<O: Outbox + Send + 'static>(
        clock: Clock,
        metrics: Arc<Metrics>,
        dispatcher: Dispatcher<O>,
    ) -> io::Result<Runtime> {
        let (runtime, inbox) = Runtime::unattended(clock);
        spawn_vital("scheduler", move || run(clock, &metrics, dispatcher, &inbox))?;
        Ok(runtime)
    }

    /// The way to a dispatcher, and its other end.
    pub(crate) fn unattended(clock: Clock) -> (Runtime, Receiver<Command>) {
        let (commands, inbox) = crossbeam_channel::unbounded();
        (Runtime { commands, next_request: Arc::default(), clock }, inbox)
    }

    /// Tells the dispatcher. What is sent is bounded by who sends: every request holds a permit.
    pub(crate) fn send(&self, command: Command) {
        // The thread ends with the process.
        let _ = self.commands.send(command);
    }

    pub(crate) fn next_request(&self) -> RequestId {
        RequestId(self.next_request.fetch_add(1, Ordering::Relaxed))
    }
}

fn run<O: Outbox>(clock: Clock, metrics: &Metrics, mut dispatcher: Dispatcher<O>, inbox: &Receiver<Command>) {
    wake_up_on_time();
    let mut needs_due = clock.now();
    let mut scaling = Scaling::new(needs_due);
    loop {
        let wake_at = dispatcher.wake_at();
        let command = match inbox.try_recv() {
            Ok(command) => Some(command),
            Err(TryRecvError::Disconnected) => return,
            Err(TryRecvError::Empty) => {
                // Also when nothing else happens, or the last word on traffic that has stopped would never be exported.
                let received = match clock.instant(wake_at.min(needs_due)) {
                    Some(instant) => inbox.recv_deadline(instant),
                    None => inbox.recv().map_err(|_| RecvTimeoutError::Disconnected),
                };
                match received {
                    Ok(command) => Some(command),
                    Err(RecvTimeoutError::Timeout) => None,
                    Err(RecvTimeoutError::Disconnected) => return,
                }
            }
        };
        let now = clock.now();
        if wake_at <= now {
            metrics.scheduling_lag(now.since(wake_at));
            dispatcher.tick(forgiven(wake_at, now));
        }
        if let Some(command) = command {
            dispatcher.handle(now, command);
        }
        if now >= needs_due {
            needs_due = now + NEEDS_EVERY;
            export_needs(now, metrics, &mut dispatcher, &mut scaling);
        }
    }
}

/// Exports what every class of devices needs, and now and then how many there should be.
fn export_needs<O: Outbox>(
    now: Time,
    metrics: &Metrics,
    dispatcher: &mut Dispatcher<O>,
    scaling: &mut Scaling,
) {
    let classes = metrics.classes();
    for (class, name) in &classes {
        let need = dispatcher.need(*class);
        metrics.needs(name, need.mean());
        scaling.look(*class, need);
    }
    if !classes.is_empty() && scaling.is_due(now) {
        let over = scaling.begin_interval(now);
        let (tally, waiting) = (dispatcher.take_tally(), dispatcher.waiting());
        for (class, name) in classes {
            let busy = dispatcher.take_busy(class);
            metrics.decided(&name, scaling.decide(now, over, class, &busy, tally, waiting));
        }
    }
}

/// What time it is for a timer that should have come at `wake_at`.
pub(crate) fn forgiven(wake_at: Time, now: Time) -> Time {
    wake_at + (now.since(wake_at) - GRACE)
}

/// A timer that comes late by no more than this counts as in time: a window can be a microsecond wide, and to give up its
/// requests because the operating system woke us after it would help nobody. What is late for it teaches the scheduler a
/// margin.
const GRACE: Span = Span::from_millis(20);

/// How often the scaling signal is exported.
const NEEDS_EVERY: Span = Span::from_millis(200);
