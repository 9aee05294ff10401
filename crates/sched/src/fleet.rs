//! What each device was sent and has not finished.

use std::collections::VecDeque;

use downbeat_profile::Span;

use crate::{BatchId, ClassId, GpuId, Request, RequestId, Time};

/// The devices, with the batches each was sent and has not finished.
#[derive(Clone, Debug, Default)]
pub(crate) struct Fleet {
    gpus: Vec<Option<Device>>,
    /// Emptied request lists, kept to be filled again.
    spare: Vec<Vec<Request>>,
}

#[derive(Clone, Debug)]
pub(crate) struct Device {
    pub(crate) class: ClassId,
    /// It takes no more batches, and goes when it has finished what it has.
    pub(crate) leaving: bool,
    /// In the order in which they run; at most two.
    outstanding: VecDeque<Outstanding>,
    /// When it is expected to be done with them.
    pub(crate) free_at: Time,
}

#[derive(Clone, Debug)]
pub(crate) struct Outstanding {
    pub(crate) batch: BatchId,
    /// When its requests will be at the device.
    pub(crate) ready_at: Time,
    pub(crate) latency: Span,
    pub(crate) requests: Vec<Request>,
    /// Those of them whose clients have gone: should the device fail, nobody wants them run again. Hardly ever any.
    pub(crate) cancelled: Vec<RequestId>,
}

impl Fleet {
    pub(crate) fn get_mut(&mut self, gpu: GpuId) -> Option<&mut Device> {
        self.gpus.get_mut(gpu.0 as usize)?.as_mut()
    }

    pub(crate) fn add(&mut self, gpu: GpuId, class: ClassId, now: Time) {
        let index = gpu.0 as usize;
        if self.gpus.len() <= index {
            self.gpus.resize(index + 1, None);
        }
        self.gpus[index] = Some(Device { class, leaving: false, outstanding: VecDeque::new(), free_at: now });
    }

    pub(crate) fn remove(&mut self, gpu: GpuId) -> Option<Device> {
        self.gpus.get_mut(gpu.0 as usize)?.take()
    }

    /// Notes that the client of a request that runs has gone. Does nothing where no device was sent the request.
    ///
    /// Looks through all devices: clients that go while their request runs are too rare to keep an index for.
    pub(crate) fn cancel(&mut self, request: &Request) {
        let sent = self.gpus.iter_mut().flatten().flat_map(|device| &mut device.outstanding);
        let mut of_model =
            sent.filter(|batch| batch.requests.first().is_some_and(|first| first.model == request.model));
        if let Some(batch) =
            of_model.find(|batch| batch.requests.iter().any(|running| running.id == request.id))
            && !batch.cancelled.contains(&request.id)
        {
            batch.cancelled.push(request.id);
        }
    }

    /// An empty list for the requests of a batch.
    pub(crate) fn blank_list(&mut self) -> Vec<Request> {
        self.spare.pop().unwrap_or_default()
    }

    /// Takes back a list that is no longer needed.
    pub(crate) fn recycle(&mut self, mut requests: Vec<Request>) {
        requests.clear();
        self.spare.push(requests);
    }
}

impl Device {
    pub(crate) fn send(&mut self, batch: Outstanding, finish_at: Time) {
        self.outstanding.push_back(batch);
        self.free_at = finish_at;
    }

    /// Strikes off a batch that has just finished. `None` where the device was not sent it, or it is not the next to finish: word of a batch
    /// from before the device failed and came back.
    pub(crate) fn finish(&mut self, batch: BatchId, now: Time) -> Option<Outstanding> {
        let finished = self.outstanding.pop_front_if(|next| next.batch == batch)?;
        self.free_at = self.outstanding.iter().fold(now, |at, next| at.max(next.ready_at) + next.latency);
        Some(finished)
    }

    /// Whether one more batch may be sent while the device is busy. Only one: what is sent can no longer be improved.
    pub(crate) fn takes_more(&self) -> bool {
        !self.leaving && self.outstanding.len() < 2
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.outstanding.is_empty()
    }

    pub(crate) fn into_outstanding(self) -> impl Iterator<Item = Outstanding> {
        self.outstanding.into_iter()
    }
}
