//! Devices that only take time.

use downbeat_sched::{GpuId, Span, Time};

use crate::sync::{AtomicU64, Ordering};

/// Devices that run what they are sent one after the other, in no time but the batch's. Shared by the hosts of all
/// shards.
#[derive(Debug)]
pub struct EmulatedDevices {
    /// By device: when it is done with all it was sent.
    free_at: Box<[AtomicU64]>,
}

impl EmulatedDevices {
    /// Devices with numbers below `gpus`.
    pub fn new(gpus: usize) -> EmulatedDevices {
        EmulatedDevices { free_at: (0..gpus).map(|_| AtomicU64::new(0)).collect() }
    }

    /// Sends a batch that is there at `ready_at`, and says when it will have finished.
    pub fn send(&self, gpu: GpuId, ready_at: Time, latency: Span) -> Time {
        let Some(free_at) = self.free_at.get(gpu.0 as usize) else { return ready_at + latency };
        // One matchmaker gives a device to one shard at a time, so that nobody comes in between.
        let start = ready_at.max(Time::from_nanos(free_at.load(Ordering::Acquire)));
        let finish = start + latency;
        free_at.store(finish.as_nanos(), Ordering::Release);
        finish
    }
}
