//! Devices that join, leave, fail, are sent batches and finish them.

use super::Matchmaker;
use crate::fleet::Sent;
use crate::{BatchId, CLASS_LIMIT, ClassId, ClassSet, GpuId, ID_LIMIT, Time};

impl Matchmaker {
    /// The classes of which there is a device that takes work.
    pub fn present(&self) -> ClassSet {
        self.present
    }

    /// How many devices of a class take work.
    pub fn gpus_of(&self, class: ClassId) -> u32 {
        self.pools.get(class.0 as usize).map_or(0, |pool| pool.pressure().gpus)
    }

    /// A device is ready for work; or it was to leave, still has something to do, and stays after all. `false` where it
    /// is here already, or cannot be.
    pub fn join(&mut self, id: GpuId, class: ClassId, now: Time) -> bool {
        if id.0 >= ID_LIMIT || class.0 >= CLASS_LIMIT {
            return false;
        }
        match self.fleet.get_mut(id) {
            None => self.fleet.add(id, class, now),
            Some(gpu) if gpu.leaving && gpu.class == class => gpu.leaving = false,
            Some(_) => return false,
        }
        self.pool(class).gain();
        self.present.set(class, true);
        self.place(id);
        true
    }

    /// A device takes no more batches; what it runs, it finishes.
    pub fn leave(&mut self, id: GpuId) {
        let Some(gpu) = self.fleet.get_mut(id).filter(|gpu| !gpu.leaving) else { return };
        gpu.leaving = true;
        let class = gpu.class;
        self.lose(id, class);
        self.forget_if_gone(id);
    }

    /// A device is gone; what it was sent and had not finished is told to `lost`, in the order in which it would have
    /// run.
    pub fn fail(&mut self, id: GpuId, lost: impl FnMut(BatchId)) {
        let Some(gpu) = self.fleet.remove(id) else { return };
        gpu.outstanding().iter().map(|sent| sent.batch).for_each(lost);
        if !gpu.leaving {
            self.lose(id, gpu.class);
        }
    }

    /// A device will be done with all it was sent at another time than predicted.
    pub fn late(&mut self, id: GpuId, free_at: Time, now: Time) {
        if let Some(gpu) = self.fleet.get_mut(id).filter(|gpu| !gpu.is_idle()) {
            gpu.free_at = free_at.max(now);
            self.place(id);
        }
    }

    /// What came of a grant: a batch was sent to the device, which is done with it at `finish_at`. `false` where the
    /// device has failed meanwhile: the batch is lost.
    pub fn sent(&mut self, id: GpuId, life: u32, sent: Sent, finish_at: Time) -> bool {
        let Some(gpu) = self.fleet.get_mut(id).filter(|gpu| gpu.life == life) else {
            return false;
        };
        gpu.reserved = false;
        let taken = gpu.send(sent, finish_at);
        // It is busy from now on, which is of interest only where somebody waits for a device.
        if self.pools[gpu.class.0 as usize].watched {
            self.place(id);
        }
        taken
    }

    /// Nothing came of a grant.
    pub fn declined(&mut self, id: GpuId, life: u32) {
        if let Some(gpu) = self.fleet.get_mut(id).filter(|gpu| gpu.life == life) {
            gpu.reserved = false;
            self.place(id);
            self.forget_if_gone(id);
        }
    }

    /// Whether a device was granted and nothing was heard of what came of it.
    pub fn is_reserved(&self, id: GpuId) -> bool {
        self.fleet.get(id).is_some_and(|gpu| gpu.reserved)
    }

    /// A device finished a batch; `false` where it was not sent it.
    pub fn finished(&mut self, id: GpuId, batch: BatchId, now: Time) -> bool {
        let Some(gpu) = self.fleet.get_mut(id) else { return false };
        if !gpu.finish(batch, now) {
            return false;
        }
        self.place(id);
        self.forget_if_gone(id);
        true
    }

    fn place(&mut self, id: GpuId) {
        if let Some(gpu) = self.fleet.get(id)
            && let Some(pool) = self.pools.get_mut(gpu.class.0 as usize)
        {
            pool.place(id, gpu);
        }
    }

    fn lose(&mut self, id: GpuId, class: ClassId) {
        self.pool(class).lose(id);
        self.present.set(class, self.gpus_of(class) > 0);
    }

    fn forget_if_gone(&mut self, id: GpuId) {
        if self.fleet.get(id).is_some_and(|gpu| gpu.leaving && gpu.is_idle() && !gpu.reserved) {
            self.fleet.remove(id);
        }
    }
}
