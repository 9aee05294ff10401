//! The dispatcher with its scheduler in virtual time, for tests.

use std::sync::Arc;

use downbeat_profile::Span;
use downbeat_sched::{Delays, Rule, Time};
use downbeat_shards::Ensemble;

use super::direct::EventLoop;
use super::host::Counter;
use super::runtime::{Direct, SchedulerSettings, direct, staff, threads};
use super::{Command, Dispatcher, Outbox, Runtime};
use crate::clock::Clock;

/// A dispatcher whose scheduler takes its turns when a test says so.
pub(crate) struct Rehearsed {
    pub(crate) dispatcher: Arc<Dispatcher>,
    scheduler: Turns,
    now: Time,
}

/// The scheduler as it runs with one thread, and with several.
enum Turns {
    Direct(Box<EventLoop>),
    Sharded(Ensemble<Counter>),
}

impl Rehearsed {
    /// A dispatcher with an event loop, or with several shards.
    pub(crate) fn new(rule: Rule, delays: Delays, shards: usize, outbox: Box<dyn Outbox>) -> Rehearsed {
        if shards <= 1 {
            let Direct { dispatcher, inbox, .. } = direct(Span::ZERO, outbox);
            let event_loop = EventLoop::new(rule, delays, Arc::clone(&dispatcher), inbox, None);
            return Rehearsed { dispatcher, scheduler: Turns::Direct(Box::new(event_loop)), now: Time::ZERO };
        }
        let settings = SchedulerSettings { rule, delays, reserve: Span::ZERO, threads: shards };
        let mut made = None;
        let ensemble = Ensemble::with_hosts(rule, &threads(&settings), shards, |control| {
            let staff = staff(control, shards, Span::ZERO, outbox, None);
            made = Some(staff.dispatcher);
            staff.counters
        });
        let scheduler = Turns::Sharded(ensemble.unwrap());
        Rehearsed { dispatcher: made.unwrap(), scheduler, now: Time::ZERO }
    }

    /// The way to the dispatcher, by a clock that somebody sets.
    pub(crate) fn runtime(&self, clock: Clock) -> Runtime {
        Runtime::to(Arc::clone(&self.dispatcher), clock)
    }

    /// When there will be something to do.
    pub(crate) fn wake_at(&mut self) -> Time {
        let wake_at = match &mut self.scheduler {
            Turns::Direct(event_loop) => event_loop.wake_at(),
            Turns::Sharded(ensemble) => ensemble.wake_at(self.now),
        };
        wake_at.max(self.now)
    }

    /// Does all that there is to do; `false` where there is nothing.
    pub(crate) fn settle(&mut self, now: Time) -> bool {
        self.now = self.now.max(now);
        match &mut self.scheduler {
            Turns::Direct(event_loop) => {
                let mut worked = false;
                while event_loop.turn(self.now) == Some(true) {
                    worked = true;
                }
                worked
            }
            Turns::Sharded(ensemble) => ensemble.settle(self.now),
        }
    }

    /// Something happens, with all that follows from it.
    pub(crate) fn handle(&mut self, now: Time, command: Command) {
        self.dispatcher.handle(now, command);
        self.settle(now);
    }
}
