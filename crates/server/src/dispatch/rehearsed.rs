//! The dispatcher with its scheduler in virtual time, for tests.

use std::sync::Arc;

use downbeat_profile::Span;
use downbeat_sched::{Delays, Rule, Time};
use downbeat_shards::Ensemble;

use super::host::Counter;
use super::runtime::{SchedulerSettings, staff, threads};
use super::{Command, Dispatcher, Outbox, Runtime};
use crate::clock::Clock;

/// The same shards and matchmaker as on threads, in turns.
pub(crate) struct Rehearsed {
    pub(crate) dispatcher: Arc<Dispatcher>,
    ensemble: Ensemble<Counter>,
    now: Time,
}

impl Rehearsed {
    pub(crate) fn new(delays: Delays, shards: usize, outbox: Box<dyn Outbox>) -> Rehearsed {
        let settings = SchedulerSettings { rule: Rule::ADAPTIVE, delays, reserve: Span::ZERO, threads: 1 };
        let mut made = None;
        let ensemble = Ensemble::with_hosts(Rule::ADAPTIVE, &threads(&settings), shards, |control| {
            let staff = staff(control, shards, Span::ZERO, outbox, None);
            made = Some(staff.dispatcher);
            staff.counters
        });
        Rehearsed { dispatcher: made.unwrap(), ensemble: ensemble.unwrap(), now: Time::ZERO }
    }

    /// The way to the dispatcher, by a clock that somebody sets.
    pub(crate) fn runtime(&self, clock: Clock) -> Runtime {
        Runtime::to(Arc::clone(&self.dispatcher), clock)
    }

    /// When there will be something to do.
    pub(crate) fn wake_at(&mut self) -> Time {
        self.ensemble.wake_at(self.now).max(self.now)
    }

    /// Does all that there is to do; `false` where there is nothing.
    pub(crate) fn settle(&mut self, now: Time) -> bool {
        self.now = self.now.max(now);
        self.ensemble.settle(self.now)
    }

    /// Something happens, with all that follows from it.
    pub(crate) fn handle(&mut self, now: Time, command: Command) {
        self.dispatcher.handle(now, command);
        self.settle(now);
    }
}
