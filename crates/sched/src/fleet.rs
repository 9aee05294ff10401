//! What each device was sent and has not finished.

use std::collections::VecDeque;

use downbeat_profile::Span;

use crate::{BatchId, ClassId, GpuId, Request, Time};

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
