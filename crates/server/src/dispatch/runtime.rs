//! The scheduler's threads, and the way to the dispatcher.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::thread;
use std::time::Duration;

use crossbeam_channel::Receiver;
use downbeat_profile::Span;
use downbeat_sched::{Delays, RequestId, Rule, Time};
use downbeat_shards::{Control, RuntimeError, Settings};

use super::direct::{DirectHandle, EventLoop, Inbox};
use super::handle::{SchedulerHandle, ShardedHandle};
use super::host::Counter;
use super::numbers::STREAMS_MAX;
use super::scaling::Scaling;
use super::shadow_feed::{ShadowEvent, ShadowFeed, run_shadows};
use super::{Command, Dispatcher, Outbox};
use crate::clock::Clock;
use crate::metrics::Metrics;
use crate::vital::{end_after_panic, spawn_vital};

/// How the scheduler is set up.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SchedulerSettings {
    /// The rule that is followed while nothing is lost.
    pub(crate) rule: Rule,
    pub(crate) delays: Delays,
    /// Kept of every deadline for the way back to the client.
    pub(crate) reserve: Span,
    /// Models are divided among so many threads, and another one has the devices; 1 for an event loop on one thread.
    pub(crate) threads: usize,
}

/// The way to the dispatcher. What it is told happens at once, on the thread that tells it; what the scheduler has to
/// decide follows on the scheduler's own threads: tokio's timers tick in milliseconds, and a batch's window can be tens
/// of microseconds wide.
#[derive(Clone, Debug)]
pub(crate) struct Runtime {
    engaged: Arc<Engaged>,
    next_request: Arc<AtomicU64>,
    pub(crate) clock: Clock,
}

/// The scheduler's threads end with the last who knows the way.
struct Engaged(Arc<Dispatcher>);

impl Drop for Engaged {
    fn drop(&mut self) {
        self.0.stop();
    }
}

impl std::fmt::Debug for Engaged {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Engaged")
    }
}

impl Runtime {
    /// Starts the threads.
    pub(crate) fn start(
        clock: Clock,
        metrics: Arc<Metrics>,
        settings: SchedulerSettings,
        outbox: Box<dyn Outbox>,
    ) -> Result<Runtime, RuntimeError> {
        let lag = (Arc::clone(&metrics), clock);
        let (dispatcher, listener) = if settings.threads <= 1 {
            let Direct { dispatcher, inbox, listener } = direct(settings.reserve, outbox);
            let SchedulerSettings { rule, delays, .. } = settings;
            let event_loop = EventLoop::new(rule, delays, Arc::clone(&dispatcher), inbox, Some(lag));
            spawn_vital("scheduler", move || event_loop.run(clock))?;
            (dispatcher, listener)
        } else {
            let shards = settings.threads;
            let threads = Settings { on_panic: Some(end_after_panic), ..threads(&settings) };
            let mut made = None;
            let counters = |control: &Control| {
                let staff = staff(control, shards, settings.reserve, outbox, Some(&lag));
                made = Some((staff.dispatcher, staff.listener));
                staff.counters
            };
            downbeat_shards::Runtime::start_with(settings.rule, &threads, clock.real(), shards, counters)?;
            made.ok_or(RuntimeError::Hosts { hosts: 0, shards })?
        };
        run_shadows(clock, settings.rule, settings.delays, listener, &dispatcher, Arc::clone(&metrics))?;
        let watched = Arc::downgrade(&dispatcher);
        spawn_vital("signals", move || watch(clock, &metrics, &watched))?;
        Ok(Runtime::to(dispatcher, clock))
    }

    /// The way to a dispatcher whose scheduler somebody else runs.
    pub(super) fn to(dispatcher: Arc<Dispatcher>, clock: Clock) -> Runtime {
        Runtime { engaged: Arc::new(Engaged(dispatcher)), next_request: Arc::default(), clock }
    }

    /// Tells the dispatcher.
    pub(crate) fn send(&self, command: Command) {
        self.engaged.0.handle(self.clock.now(), command);
    }

    pub(crate) fn next_request(&self) -> RequestId {
        RequestId(self.next_request.fetch_add(1, Ordering::Relaxed))
    }
}

/// A dispatcher, the messages to its event loop, and what its shadows learn.
pub(super) struct Direct {
    pub(super) dispatcher: Arc<Dispatcher>,
    pub(super) inbox: Inbox,
    pub(super) listener: Receiver<ShadowEvent>,
}

pub(super) fn direct(reserve: Span, outbox: Box<dyn Outbox>) -> Direct {
    let (handle, inbox) = DirectHandle::new();
    let (shadow_feed, listener) = ShadowFeed::new();
    let scheduler = SchedulerHandle::Direct(handle);
    Direct { dispatcher: Arc::new(Dispatcher::new(scheduler, reserve, outbox, shadow_feed)), inbox, listener }
}

/// A dispatcher, its place at every shard, and what its shadows learn.
pub(super) struct Staff {
    pub(super) dispatcher: Arc<Dispatcher>,
    pub(super) counters: Vec<Counter>,
    pub(super) listener: Receiver<ShadowEvent>,
}

pub(super) fn staff(
    control: &Control,
    shards: usize,
    reserve: Span,
    outbox: Box<dyn Outbox>,
    lag: Option<&(Arc<Metrics>, Clock)>,
) -> Staff {
    let (senders, inboxes): (Vec<_>, Vec<_>) = (0..shards).map(|_| crossbeam_channel::unbounded()).unzip();
    let (shadow_feed, listener) = ShadowFeed::new();
    let scheduler = SchedulerHandle::Sharded(ShardedHandle::new(control.clone(), senders));
    let dispatcher = Arc::new(Dispatcher::new(scheduler, reserve, outbox, shadow_feed));
    let counter = |inbox| Counter::new(Arc::clone(&dispatcher), inbox, lag.cloned());
    let counters = inboxes.into_iter().map(counter).collect();
    Staff { dispatcher, counters, listener }
}

pub(super) fn threads(settings: &SchedulerSettings) -> Settings {
    Settings {
        delays: settings.delays,
        models: STREAMS_MAX,
        gpus: GPUS_AT_FIRST,
        grace: GRACE,
        ..Settings::default()
    }
}

/// Exports what the scheduler sees, until it ends.
fn watch(clock: Clock, metrics: &Metrics, dispatcher: &Weak<Dispatcher>) {
    let mut scaling = Scaling::new(clock.now());
    for round in 1_u64.. {
        thread::sleep(NEEDS_EVERY);
        let Some(dispatcher) = dispatcher.upgrade() else { return };
        export_needs(clock.now(), metrics, &dispatcher, &mut scaling);
        if round.is_multiple_of(REBALANCE_EVERY) {
            dispatcher.rebalance();
        }
    }
}

/// Exports what every class of devices needs, and now and then how many there should be.
fn export_needs(now: Time, metrics: &Metrics, dispatcher: &Dispatcher, scaling: &mut Scaling) {
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

/// A thread that is late by no more than this decides as if it were in time: what is late for it teaches the scheduler
/// a margin.
pub(crate) const GRACE: Span = Span::from_millis(20);

/// Room for so many devices is made at the start.
const GPUS_AT_FIRST: u32 = 1_024;

/// How often the scaling signal is exported.
const NEEDS_EVERY: Duration = Duration::from_millis(200);

/// Once in so many times, models are divided anew among the scheduler's threads: every second.
const REBALANCE_EVERY: u64 = 5;
