//! What the devices were sent and have not finished.

use std::collections::VecDeque;

use downbeat_sched::{BatchId, Delays, GpuId, ModelId, Release, RequestId, Span, Start, Time};

use crate::{Cluster, Outbox};

/// A batch that a device was sent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sent {
    pub(super) batch: BatchId,
    pub(super) model: ModelId,
    pub(super) size: u32,
    /// When it begins, or began, by all that is known.
    pub(super) begins_at: Time,
    /// How long it was expected to run.
    pub(super) run: Span,
    /// Before this it cannot have reached the device.
    earliest: Time,
}

/// All devices of a cluster, with the predicted end of what each was sent.
///
/// A prediction is only that: a device is free when the last [`finished`](Devices::finished) says so.
#[derive(Debug)]
pub(super) struct Devices {
    delays: Delays,
    lanes: Vec<Lane>,
    next_batch: u64,
}

#[derive(Clone, Debug, Default)]
struct Lane {
    sent: VecDeque<Sent>,
    free_at: Time,
}

impl Devices {
    pub(super) fn new(cluster: &Cluster) -> Devices {
        Devices { delays: cluster.delays, lanes: vec![Lane::default(); cluster.gpus.len()], next_batch: 0 }
    }

    pub(super) fn ids(&self) -> impl Iterator<Item = GpuId> + use<> {
        (0..self.lanes.len() as u32).map(GpuId)
    }

    pub(super) fn idle(&self, gpu: GpuId) -> bool {
        self.lane(gpu).sent.is_empty()
    }

    /// How far what the device runs is behind its predicted end.
    pub(super) fn overdue(&self, now: Time, gpu: GpuId) -> Span {
        self.lane(gpu).sent.front().map_or(Span::ZERO, |head| now.since(head.begins_at + head.run))
    }

    /// When the device is through with all it was sent; `now` if it is idle.
    pub(super) fn free_at(&self, now: Time, gpu: GpuId) -> Time {
        if self.idle(gpu) { now } else { self.lane(gpu).free_at + self.overdue(now, gpu) }
    }

    /// When a batch of `size` that is sent now would begin.
    pub(super) fn begins_at(&self, now: Time, gpu: GpuId, size: u32) -> Time {
        self.free_at(now, gpu).max(now + self.delays.lead(size))
    }

    /// When the next batch must be sent for the device not to fall idle in between: once it is idle, or `lead`
    /// before the end of the only batch it has.
    ///
    /// Servers that batch beside the device (Triton, Nexus) pay the network when a request arrives, not between two
    /// batches. Sending one batch ahead by exactly the network's delay keeps that true here.
    pub(super) fn opens_at(&self, gpu: GpuId, lead: Span) -> Time {
        match self.lane(gpu).sent.len() {
            0 => Time::ZERO,
            1 if lead > Span::ZERO => self.lane(gpu).free_at - lead,
            _ => Time::NEVER,
        }
    }

    /// Sends a batch that runs for `run`.
    #[allow(clippy::too_many_arguments)] // a start is made of this many facts; every caller names them once
    pub(super) fn send(
        &mut self,
        now: Time,
        gpu: GpuId,
        model: ModelId,
        run: Span,
        reason: Release,
        requests: impl ExactSizeIterator<Item = RequestId>,
        out: &mut Outbox,
    ) {
        let batch = BatchId(self.next_batch);
        self.next_batch += 1;
        let size = requests.len() as u32;
        let earliest = now + self.delays.lead(size);
        let begins_at = self.begins_at(now, gpu, size);
        let finish_at = begins_at + run;
        let lane = &mut self.lanes[gpu.0 as usize];
        lane.sent.push_back(Sent { batch, model, size, begins_at, run, earliest });
        lane.free_at = finish_at;
        // Not `begins_at`: a device that is through early begins early.
        let start_at = earliest;
        let start = Start { batch, model, gpu, start_at, finish_at, reason, rows: size, requests: 0..0 };
        out.actions.start(start, requests);
    }

    /// Takes a batch off the device's list; `None` where it is not on it.
    pub(super) fn finished(&mut self, now: Time, gpu: GpuId, batch: BatchId) -> Option<Sent> {
        let lane = self.lanes.get_mut(gpu.0 as usize)?;
        let place = lane.sent.iter().position(|sent| sent.batch == batch)?;
        let done = lane.sent.remove(place);
        lane.free_at = now;
        for sent in &mut lane.sent {
            sent.begins_at = sent.earliest.max(lane.free_at);
            lane.free_at = sent.begins_at + sent.run;
        }
        done
    }

    /// Forgets all that a preempted device was sent.
    pub(super) fn preempted(&mut self, gpu: GpuId) {
        self.lanes[gpu.0 as usize].sent.clear();
    }

    fn lane(&self, gpu: GpuId) -> &Lane {
        &self.lanes[gpu.0 as usize]
    }
}
