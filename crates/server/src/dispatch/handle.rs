//! The ways to the scheduler: an event loop on one thread, or shards and a matchmaker on several.

use crossbeam_channel::Sender;
use downbeat_profile::LatencyProfile;
use downbeat_sched::{BatchId, ClassId, Event, GpuId, ModelId, ModelSpec, Need, Request, Rule, Time};
use downbeat_shards::{Control, DomainId, Finished, RuntimeError};

use super::direct::DirectHandle;

/// All devices are one domain: sub-clusters are classes of devices.
const DOMAIN: DomainId = DomainId(0);

/// An event that a shard learns from the dispatcher.
#[derive(Debug)]
pub(super) enum News {
    Arrived(Request),
    Cancelled(Request),
    Finished(Finished),
}

/// The scheduler, as other threads reach it. None of this waits.
///
/// Times are those at which something happened. The scheduler may learn of it later.
#[derive(Debug)]
pub(super) enum SchedulerHandle {
    /// A scheduler in an event loop.
    Direct(DirectHandle),
    /// Shards and a matchmaker.
    Sharded(ShardedHandle),
}

/// Shards and a matchmaker on threads, and an inbox for each shard.
#[derive(Debug)]
pub(super) struct ShardedHandle {
    control: Control,
    inboxes: Vec<Sender<News>>,
}

impl SchedulerHandle {
    pub(super) fn arrived(&self, now: Time, request: Request) {
        match self {
            SchedulerHandle::Direct(direct) => direct.tell(now, Event::Arrived(request)),
            SchedulerHandle::Sharded(sharded) => sharded.tell(request.model, News::Arrived(request)),
        }
    }

    pub(super) fn cancelled(&self, now: Time, request: Request) {
        match self {
            SchedulerHandle::Direct(direct) => direct.tell(now, Event::Cancelled(request)),
            SchedulerHandle::Sharded(sharded) => sharded.tell(request.model, News::Cancelled(request)),
        }
    }

    pub(super) fn finished(&self, now: Time, gpu: GpuId, batch: BatchId) {
        match self {
            SchedulerHandle::Direct(direct) => direct.tell(now, Event::BatchFinished { gpu, batch }),
            SchedulerHandle::Sharded(sharded) => sharded.finished(now, gpu, batch),
        }
    }

    pub(super) fn join(&self, now: Time, gpu: GpuId, class: ClassId) {
        match self {
            SchedulerHandle::Direct(direct) => direct.tell(now, Event::GpuJoined { gpu, class }),
            SchedulerHandle::Sharded(sharded) => expect_domain(sharded.control.join(DOMAIN, gpu, class)),
        }
    }

    /// Lets a device take no more batches. `settled` is called when it has been sent its last.
    pub(super) fn leave(&self, now: Time, gpu: GpuId, settled: impl FnOnce() + Send + 'static) {
        match self {
            SchedulerHandle::Direct(direct) => direct.leave(now, gpu, Box::new(settled)),
            SchedulerHandle::Sharded(sharded) => expect_domain(sharded.control.leave(DOMAIN, gpu, settled)),
        }
    }

    /// Gives devices up, all at once: nothing that one of them had is given to another of them.
    pub(super) fn fail(&self, now: Time, gpus: Vec<GpuId>) {
        match self {
            SchedulerHandle::Direct(direct) => direct.fail(now, gpus),
            SchedulerHandle::Sharded(sharded) => expect_domain(sharded.control.fail(DOMAIN, gpus)),
        }
    }

    pub(super) fn late(&self, now: Time, gpu: GpuId, free_at: Time) {
        match self {
            SchedulerHandle::Direct(direct) => direct.tell(now, Event::GpuLate { gpu, free_at }),
            SchedulerHandle::Sharded(sharded) => expect_domain(sharded.control.late(DOMAIN, gpu, free_at)),
        }
    }

    pub(super) fn follow(&self, class: ClassId, rule: Rule) {
        match self {
            SchedulerHandle::Direct(direct) => direct.tell(Time::ZERO, Event::RuleChanged { class, rule }),
            SchedulerHandle::Sharded(sharded) => expect_domain(sharded.control.follow(DOMAIN, class, rule)),
        }
    }

    pub(super) fn add_model(&self, model: ModelId, spec: ModelSpec) -> Result<(), RuntimeError> {
        match self {
            SchedulerHandle::Direct(direct) => direct.tell(Time::ZERO, Event::ModelAdded { model, spec }),
            SchedulerHandle::Sharded(sharded) => {
                sharded.control.add_model(DOMAIN, model, spec, 0.0)?;
            }
        }
        Ok(())
    }

    pub(super) fn remove_model(&self, model: ModelId) {
        match self {
            SchedulerHandle::Direct(direct) => direct.remove_model(model),
            SchedulerHandle::Sharded(sharded) => sharded.control.remove_model(model),
        }
    }

    pub(super) fn drain_model(&self, model: ModelId) {
        match self {
            SchedulerHandle::Direct(direct) => direct.tell(Time::ZERO, Event::ModelDraining { model }),
            SchedulerHandle::Sharded(sharded) => sharded.control.drain_model(model),
        }
    }

    pub(super) fn set_profile(
        &self,
        model: ModelId,
        class: ClassId,
        profile: LatencyProfile,
    ) -> Result<(), RuntimeError> {
        match self {
            SchedulerHandle::Direct(direct) => {
                direct.tell(Time::ZERO, Event::ProfileChanged { model, class, profile });
                Ok(())
            }
            SchedulerHandle::Sharded(sharded) => sharded.control.set_profile(model, class, profile),
        }
    }

    /// Whether a number is free for a model: never used, or that one is gone without a trace.
    pub(super) fn is_vacant(&self, model: ModelId) -> bool {
        match self {
            SchedulerHandle::Direct(direct) => direct.is_vacant(model),
            SchedulerHandle::Sharded(sharded) => sharded.control.is_vacant(model),
        }
    }

    /// The devices of a class that the traffic needs, as the scheduler last said.
    pub(super) fn need(&self, class: ClassId) -> Need {
        match self {
            SchedulerHandle::Direct(direct) => direct.need(class),
            SchedulerHandle::Sharded(sharded) => {
                let pressure = sharded.control.pressure(DOMAIN, class);
                pressure.map_or_else(|_| Need::default(), |pressure| pressure.need)
            }
        }
    }

    /// Divides the models anew among the threads, where there are several. Returns how many were moved.
    pub(super) fn rebalance(&self) -> usize {
        match self {
            SchedulerHandle::Sharded(sharded) if sharded.inboxes.len() > 1 => sharded.control.rebalance(),
            SchedulerHandle::Direct(_) | SchedulerHandle::Sharded(_) => 0,
        }
    }

    /// Ends the scheduler's threads. What waits or runs is left as it is.
    pub(super) fn stop(&self) {
        match self {
            SchedulerHandle::Direct(direct) => direct.stop(),
            SchedulerHandle::Sharded(sharded) => sharded.control.stop(),
        }
    }
}

impl ShardedHandle {
    pub(super) fn new(control: Control, inboxes: Vec<Sender<News>>) -> ShardedHandle {
        ShardedHandle { control, inboxes }
    }

    /// Tells the shard that a stream is on.
    fn tell(&self, model: ModelId, news: News) {
        self.tell_shard(self.control.shard_of(model).unwrap_or(0), news);
    }

    fn finished(&self, at: Time, gpu: GpuId, batch: BatchId) {
        // Shards number their batches so.
        let shard = (batch.0 % self.inboxes.len() as u64) as usize;
        self.tell_shard(shard, News::Finished(Finished { domain: DOMAIN, gpu, batch, at }));
    }

    /// The messages in an inbox are bounded by their senders: every request holds a permit.
    fn tell_shard(&self, shard: usize, news: News) {
        // It only fails when the server ends.
        if self.inboxes[shard].send(news).is_ok() {
            self.control.wake(shard);
        }
    }
}

/// There is a domain, and it ends with the process.
fn expect_domain(told: Result<(), RuntimeError>) {
    if let Err(error) = told {
        tracing::debug!("the scheduler is not told of a change: {error}");
    }
}
