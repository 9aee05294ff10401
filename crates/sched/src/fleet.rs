//! The devices: their classes, what each was sent, when each is free.

use downbeat_profile::Span;

use crate::{BatchId, ClassId, GpuId, Time};

/// The devices of a matchmaker.
#[derive(Clone, Debug, Default)]
pub(crate) struct Fleet {
    gpus: Vec<Option<Gpu>>,
    /// How often any device has joined.
    joins: u32,
}

/// A device. What its batches consist of, only the shards know.
#[derive(Clone, Debug)]
pub(crate) struct Gpu {
    pub(crate) class: ClassId,
    /// Tells a device from one of the same number that failed before it.
    pub(crate) life: u32,
    /// It takes no more batches, and goes when it has finished what it has.
    pub(crate) leaving: bool,
    /// It was granted, and what comes of that is not known yet.
    pub(crate) reserved: bool,
    /// When it is expected to be done with all it was sent.
    pub(crate) free_at: Time,
    /// In the order in which they run.
    sent: [Sent; MOST_SENT],
    count: u8,
}

/// What a device is sent at most: one batch ahead of the one it runs. What is sent can no longer be improved.
const MOST_SENT: usize = 2;

/// A batch that was sent to a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sent {
    /// Its number.
    pub batch: BatchId,
    /// When its requests will be at the device.
    pub ready_at: Time,
    /// How long it will keep the device.
    pub latency: Span,
}

const NOTHING: Sent = Sent { batch: BatchId(0), ready_at: Time::ZERO, latency: Span::ZERO };

impl Fleet {
    /// Makes room for devices with numbers below `gpus`, so that none of them has to wait for it when it joins.
    pub(crate) fn reserve(&mut self, gpus: usize) {
        self.gpus.reserve(gpus.saturating_sub(self.gpus.len()));
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (GpuId, &Gpu)> {
        (0..).map(GpuId).zip(&self.gpus).filter_map(|(id, gpu)| Some((id, gpu.as_ref()?)))
    }

    pub(crate) fn get(&self, gpu: GpuId) -> Option<&Gpu> {
        self.gpus.get(gpu.0 as usize)?.as_ref()
    }

    pub(crate) fn get_mut(&mut self, gpu: GpuId) -> Option<&mut Gpu> {
        self.gpus.get_mut(gpu.0 as usize)?.as_mut()
    }

    pub(crate) fn add(&mut self, gpu: GpuId, class: ClassId, now: Time) {
        let index = gpu.0 as usize;
        if self.gpus.len() <= index {
            self.gpus.resize(index + 1, None);
        }
        self.joins = self.joins.wrapping_add(1);
        self.gpus[index] = Some(Gpu {
            class,
            life: self.joins,
            leaving: false,
            reserved: false,
            free_at: now,
            sent: [NOTHING; MOST_SENT],
            count: 0,
        });
    }

    pub(crate) fn remove(&mut self, gpu: GpuId) -> Option<Gpu> {
        self.gpus.get_mut(gpu.0 as usize)?.take()
    }
}

impl Gpu {
    /// `false` where the device has as much as it may be sent.
    pub(crate) fn send(&mut self, sent: Sent, finish_at: Time) -> bool {
        let Some(place) = self.sent.get_mut(usize::from(self.count)) else { return false };
        *place = sent;
        self.count += 1;
        self.free_at = finish_at;
        true
    }

    /// Strikes off a batch that has just finished. `false` where the device was not sent it: word of a batch from
    /// before the device failed and came back.
    pub(crate) fn finish(&mut self, batch: BatchId, now: Time) -> bool {
        let Some(at) = self.outstanding().iter().position(|sent| sent.batch == batch) else { return false };
        self.sent.copy_within(at + 1.., at);
        self.count -= 1;
        self.free_at = self.outstanding().iter().fold(now, |at, next| at.max(next.ready_at) + next.latency);
        true
    }

    /// What it was sent and has not finished, in the order in which it runs.
    pub(crate) fn outstanding(&self) -> &[Sent] {
        &self.sent[..usize::from(self.count)]
    }

    /// Whether one more batch may be sent while the device is busy.
    pub(crate) fn takes_more(&self) -> bool {
        !self.leaving && usize::from(self.count) < MOST_SENT
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.count == 0
    }
}
