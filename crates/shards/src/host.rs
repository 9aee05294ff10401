//! What surrounds a shard: where its requests come from and its batches go to.

use downbeat_sched::{BatchId, ClassId, GpuId, ModelId, Outcome, Release, Request, RequestId, Span, Time};

/// A matchmaker with its devices: a sub-cluster. Numbered from 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DomainId(pub u16);

/// What surrounds one shard, on the shard's thread.
///
/// The shard asks it in every turn what has happened, and tells it what to do. None of this may block. What comes in
/// from other threads is followed by [`Control::wake`](crate::Control::wake), or it would be seen only when the shard
/// wakes up by itself.
pub trait Host: Send + 'static {
    /// Whether anything has happened by `now`: puts it into the inlet, in groups as it comes. What is left out, because
    /// there is too much at once, is asked for again in the next turn.
    fn poll(&mut self, now: Time, inlet: &mut Inlet);

    /// When [`poll`](Self::poll) will have something even if nobody wakes the shard.
    fn wake_at(&self) -> Time {
        Time::NEVER
    }

    /// A batch is to run on a device, after what that was sent before.
    fn start(&mut self, now: Time, launch: &Launch, requests: &[Request]);

    /// A request of a model leaves without running.
    fn answer(&mut self, now: Time, model: ModelId, request: RequestId, outcome: Outcome);

    /// A request's batch was lost with its device. `false` where it is not to run again; then it leaves as cancelled.
    fn lost(&mut self, now: Time, request: &Request) -> bool {
        let _ = (now, request);
        true
    }

    /// A request leaves because its batch has finished.
    fn finish(&mut self, now: Time, request: &Request);
}

/// What has happened around a shard since it last asked.
#[derive(Debug, Default)]
pub struct Inlet {
    /// Requests that came in. Their models should be on this shard; those that are not are passed on.
    pub arrived: Vec<Request>,
    /// Requests whose clients went away, exactly as they arrived.
    pub cancelled: Vec<Request>,
    /// Batches that finished, of those that were started here.
    pub finished: Vec<Finished>,
}

/// A batch that a device finished.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Finished {
    /// The device's domain.
    pub domain: DomainId,
    /// The device.
    pub gpu: GpuId,
    /// The batch, as [`Launch`] named it.
    pub batch: BatchId,
    /// When, as far as that is known. By this it is judged whether the device was in time, not by when the shard hears
    /// of it.
    pub at: Time,
}

/// A batch to run.
#[derive(Clone, Copy, Debug)]
pub struct Launch {
    /// The device's domain.
    pub domain: DomainId,
    /// The batch; numbers are unique within a domain.
    pub batch: BatchId,
    /// The model to run.
    pub model: ModelId,
    /// The device to run it on.
    pub gpu: GpuId,
    /// The class of the device.
    pub class: ClassId,
    /// When the requests are expected to be at the device.
    pub ready_at: Time,
    /// When the device is expected to start it.
    pub start_at: Time,
    /// When the device is expected to finish it.
    pub finish_at: Time,
    /// How long it is expected to take.
    pub latency: Span,
    /// The rows of all its requests.
    pub rows: u32,
    /// Why it starts now.
    pub reason: Release,
    /// When it was decided; where a thread was late for it by no more than [`Settings::grace`](crate::Settings::grace),
    /// when it should have been.
    pub decided_at: Time,
}
