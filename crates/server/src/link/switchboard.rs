//! Which device is at the end of which connection.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};

use crossbeam_channel::Sender;
use downbeat_sched::GpuId;

use super::Outgoing;
use crate::dispatch::{Batch, Outbox};

/// Leads batches to the connections of their devices.
#[derive(Clone, Debug, Default)]
pub(crate) struct Switchboard {
    lines: Arc<RwLock<BTreeMap<GpuId, Line>>>,
}

#[derive(Clone, Debug)]
struct Line {
    outgoing: Sender<Outgoing>,
    /// Which of the worker's devices.
    device: u32,
}

impl Switchboard {
    /// Gives a device the smallest free number: load is gathered on the smallest, and a worker that comes back is to
    /// take its place again.
    pub(crate) fn connect(&self, device: u32, outgoing: &Sender<Outgoing>) -> GpuId {
        let mut lines = self.lines.write().unwrap_or_else(PoisonError::into_inner);
        let gpu = (0..).map(GpuId).find(|gpu| !lines.contains_key(gpu)).unwrap_or(GpuId(u32::MAX));
        lines.insert(gpu, Line { outgoing: outgoing.clone(), device });
        gpu
    }

    /// Frees a device's number. Only after the dispatcher was told that the device is gone.
    pub(crate) fn disconnect(&self, gpu: GpuId) {
        self.lines.write().unwrap_or_else(PoisonError::into_inner).remove(&gpu);
    }
}

impl Outbox for Switchboard {
    fn send(&self, gpu: GpuId, batch: Batch) {
        let lines = self.lines.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(Line { outgoing, device }) = lines.get(&gpu) {
            // A connection that has just broken: the dispatcher is about to be told, and will send the batch elsewhere.
            let _ = outgoing.send(Outgoing::Batch { device: *device, batch });
        }
    }
}
