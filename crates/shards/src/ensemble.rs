//! The turns of all shards and matchmakers one after the other, on one thread.

use downbeat_sched::{Rule, Time};

use crate::assembly::Assembly;
use crate::control::Control;
use crate::host::Host;
use crate::seat::Seat;
use crate::settings::{RuntimeError, Settings};

/// What a [`Runtime`](crate::Runtime) runs on threads, on one: shards, matchmakers, mailboxes and queues are the same.
///
/// For tests in virtual time that need the same result every time, and for benchmarks that count instructions.
pub struct Ensemble<H>(Assembly<H>);

/// How often shards and matchmakers alternate before what comes in from outside is looked at again.
const ROUNDS: usize = 4;

impl<H: Host> Ensemble<H> {
    /// A shard for each host, a matchmaker for each domain.
    pub fn new(rule: Rule, settings: &Settings, hosts: Vec<H>) -> Result<Self, RuntimeError> {
        Self::with_hosts(rule, settings, hosts.len(), |_| hosts)
    }

    /// The same where the hosts are to know the control.
    pub fn with_hosts(
        rule: Rule,
        settings: &Settings,
        shards: usize,
        hosts: impl FnOnce(&Control) -> Vec<H>,
    ) -> Result<Self, RuntimeError> {
        Assembly::new(rule, settings, shards, hosts).map(Ensemble)
    }

    /// Where models and devices are added and removed.
    pub fn control(&self) -> &Control {
        &self.0.control
    }

    /// Does what there is to do; says whether there was anything, `None` to stop.
    fn turn(&mut self, now: Time) -> Option<bool> {
        let mut worked = false;
        for _ in 0..ROUNDS {
            let mut more = false;
            for (desk, _) in &mut self.0.desks {
                more |= desk.turn(now)?;
            }
            for domain in 0..self.0.matchmakers.len() {
                more |= self.matchmaker_turn(domain, now);
            }
            worked |= more;
            if !more {
                break;
            }
        }
        Some(worked)
    }

    /// Turns of all, until there is nothing more to do now; `false` where there was nothing.
    pub fn settle(&mut self, now: Time) -> bool {
        let mut worked = false;
        while self.turn(now) == Some(true) {
            worked = true;
        }
        worked
    }

    /// One turn of a shard; `false` where there was nothing to do.
    #[inline(never)]
    pub fn shard_turn(&mut self, shard: usize, now: Time) -> bool {
        self.0.desks[shard].0.turn(now).unwrap_or(false)
    }

    /// One turn of a matchmaker; `false` where there was nothing to do.
    #[inline(never)]
    pub fn matchmaker_turn(&mut self, domain: usize, now: Time) -> bool {
        self.0.matchmakers[domain].0.turn(now).unwrap_or(false)
    }

    /// Whether a shard has been granted something and has not carried it out.
    pub fn has_orders(&self, shard: usize) -> bool {
        self.0.desks[shard].0.seats.iter().any(Seat::has_orders)
    }

    /// When there will be something to do.
    pub fn wake_at(&mut self, now: Time) -> Time {
        let desks = self.0.desks.iter().map(|(desk, _)| desk.wake_at()).min();
        let matchmakers = self.0.matchmakers.iter_mut().map(|(part, _)| part.wake_at(now)).min();
        desks.into_iter().chain(matchmakers).min().unwrap_or(Time::NEVER)
    }

    /// The host of a shard.
    pub fn host(&mut self, shard: usize) -> &mut H {
        &mut self.0.desks[shard].0.host
    }
}
