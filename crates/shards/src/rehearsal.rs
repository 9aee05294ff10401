//! The turns of all threads one after the other, in virtual time.

use downbeat_sched::{ClassId, GpuId, ModelId, ModelSpec, Policy, Time};

use crate::assembly::{Assembly, Ready};
use crate::desk::Command;
use crate::host::{DomainId, Host};
use crate::matchmaking;
use crate::seat::Seat;
use crate::settings::{RuntimeError, Settings};

/// What a [`Runtime`](crate::Runtime) runs on threads, run on one, in virtual time: shards, matchmakers, mailboxes and queues are the
/// same. For tests that need the same result every time, and for benchmarks that count instructions.
pub struct Rehearsal<P: Policy, H>(Assembly<P, H>);

impl<P: Policy, H: Host> Rehearsal<P, H> {
    /// A shard for each host, a matchmaker for each domain.
    pub fn new(policy: &P, settings: &Settings, hosts: Vec<H>) -> Result<Self, RuntimeError> {
        Assembly::new(policy, settings, hosts).map(Rehearsal)
    }

    /// Adds a model on a shard.
    pub fn add_model(&mut self, domain: DomainId, model: ModelId, spec: ModelSpec, shard: usize) {
        self.0.desks[shard].1.tell(Command::Add { domain, model, spec: Box::new(spec) });
        self.0.cells.of(model).set_route(Some(shard as u16));
    }

    /// A device is ready for work.
    pub fn join(&mut self, domain: DomainId, gpu: GpuId, class: ClassId) {
        self.tell(domain, matchmaking::Command::Join { gpu, class });
    }

    /// A device is gone, with all it ran.
    pub fn fail(&mut self, domain: DomainId, gpu: GpuId) {
        self.tell(domain, matchmaking::Command::Fail { gpu });
    }

    fn tell(&mut self, domain: DomainId, command: matchmaking::Command) {
        // The receiver is here, too.
        let _ = self.0.matchmakers[usize::from(domain.0)].commands.send(command);
    }

    /// One turn of a shard; `false` where there was nothing to do.
    #[inline(never)]
    pub fn shard_turn(&mut self, shard: usize, now: Time) -> bool {
        self.0.desks[shard].0.turn(now).unwrap_or(false)
    }

    /// One turn of a matchmaker; `false` where there was nothing to do.
    #[inline(never)]
    pub fn matchmaker_turn(&mut self, domain: usize, now: Time) -> bool {
        self.0.matchmakers[domain].part.turn(now).unwrap_or(false)
    }

    /// Whether a shard has been granted something and has not carried it out.
    pub fn has_orders(&self, shard: usize) -> bool {
        self.0.desks[shard].0.seats.iter().any(Seat::has_orders)
    }

    /// Turns of all, until there is nothing more to do now.
    pub fn settle(&mut self, now: Time) {
        let (shards, domains) = (self.0.desks.len(), self.0.matchmakers.len());
        loop {
            let mut worked = false;
            for shard in 0..shards {
                worked |= self.shard_turn(shard, now);
            }
            for domain in 0..domains {
                worked |= self.matchmaker_turn(domain, now);
            }
            if !worked {
                return;
            }
        }
    }

    /// When there will be something to do.
    pub fn wake_at(&mut self, now: Time) -> Time {
        let desks = self.0.desks.iter().map(|(desk, _)| desk.wake_at()).min();
        let matchmakers = self.0.matchmakers.iter_mut().map(|Ready { part, .. }| part.wake_at(now)).min();
        desks.into_iter().chain(matchmakers).min().unwrap_or(Time::NEVER)
    }

    /// The host of a shard.
    pub fn host(&mut self, shard: usize) -> &mut H {
        &mut self.0.desks[shard].0.host
    }
}
