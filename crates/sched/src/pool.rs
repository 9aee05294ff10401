//! The devices of one class, and the models that want one.

use downbeat_profile::Span;

use crate::candidate::Candidate;
use crate::fleet::Gpu;
use crate::heap::KeyedHeap;
use crate::occupancy::Occupancy;
use crate::policy::{GpuOrder, IdleGpus, Need, Pressure};
use crate::{GpuId, ModelId, Priority, Time};

/// The devices of one class, and the models that want one.
#[derive(Clone, Debug)]
pub(crate) struct Pool<O: GpuOrder> {
    pub(crate) idle: O::Idle,
    /// Devices that will be free for one more batch, by when they will be.
    pub(crate) busy: KeyedHeap<Time>,
    /// Models whose window has not opened, by frontrun.
    pub(crate) pending: KeyedHeap<Time>,
    /// Models whose window is open, the most urgent first.
    pub(crate) open: KeyedHeap<(Priority, Time)>,
    pressure: Pressure,
    /// What `pressure.holding` is told from, and whether there is anything new in it.
    occupancy: Occupancy,
    occupancy_changed: bool,
    /// What `pressure.all_busy` was reckoned from.
    reckoned: (Need, u32),
    /// Each model's part in `pressure.need`.
    needs: Vec<Need>,
}

impl<O: GpuOrder> Default for Pool<O> {
    fn default() -> Self {
        Pool {
            idle: O::Idle::default(),
            busy: KeyedHeap::default(),
            pending: KeyedHeap::default(),
            open: KeyedHeap::default(),
            pressure: Pressure::default(),
            occupancy: Occupancy::default(),
            occupancy_changed: false,
            reckoned: (Need::default(), 0),
            needs: Vec::new(),
        }
    }
}

impl<O: GpuOrder> Pool<O> {
    /// How hard the class is pressed, but for what [`reckon`](Self::reckon) brings up to date.
    pub(crate) fn pressure(&self) -> &Pressure {
        &self.pressure
    }

    /// Brings up to date what is dear to reckon and seldom changes.
    pub(crate) fn reckon(&mut self) -> &Pressure {
        let Pressure { need, gpus, .. } = self.pressure;
        if self.reckoned != (need, gpus) {
            self.reckoned = (need, gpus);
            self.pressure.all_busy = Pressure::reckon_all_busy(need, gpus);
        }
        // Where all devices are never busy at once, nobody asks what holds them then.
        if self.occupancy_changed && self.pressure.all_busy > 0.0 {
            self.occupancy_changed = false;
            self.pressure.holding = self.occupancy.longest_holding_all(gpus, Pressure::ALL_BUSY_MAX);
        }
        &self.pressure
    }

    pub(crate) fn post(&mut self, model: ModelId, candidate: &Candidate) {
        self.pressure.backlog += candidate.latency;
        self.pending.set(model.0, candidate.frontrun);
    }

    pub(crate) fn withdraw(&mut self, model: ModelId, candidate: &Candidate) {
        self.pressure.backlog = self.pressure.backlog - candidate.latency;
        if !self.pending.remove(model.0) {
            self.open.remove(model.0);
        }
    }

    /// The same as to withdraw the old one and post the new one.
    pub(crate) fn replace(&mut self, model: ModelId, old: &Candidate, new: &Candidate) {
        self.pressure.backlog = self.pressure.backlog - old.latency;
        if !self.pending.contains(model.0) {
            self.open.remove(model.0);
        }
        self.post(model, new);
    }

    /// Learns that a batch is started.
    pub(crate) fn started(&mut self, latency: Span) {
        self.occupancy.add(latency);
        self.occupancy_changed = true;
    }

    /// Learns how many devices a model's traffic needs.
    pub(crate) fn set_need(&mut self, model: ModelId, need: Need) {
        let index = model.0 as usize;
        if self.needs.len() <= index {
            self.needs.resize(index + 1, Need::default());
        }
        if self.needs[index] != need {
            let old = std::mem::replace(&mut self.needs[index], need);
            self.pressure.need = self.pressure.need.replace(old, need);
        }
    }

    pub(crate) fn gain(&mut self) {
        self.pressure.gpus += 1;
    }

    pub(crate) fn lose(&mut self, gpu: GpuId) {
        self.pressure.gpus -= 1;
        self.idle.remove(gpu);
        self.busy.remove(gpu.0);
    }

    /// Puts a device of this class where it belongs: to those that are idle, to those that take one more batch, or nowhere.
    pub(crate) fn place(&mut self, id: GpuId, gpu: &Gpu) {
        if gpu.leaving || gpu.reserved || !gpu.takes_more() {
            self.idle.remove(id);
            self.busy.remove(id.0);
        } else if gpu.is_idle() {
            self.busy.remove(id.0);
            self.idle.insert(id, gpu.free_at);
        } else {
            self.idle.remove(id);
            self.busy.set(id.0, gpu.free_at);
        }
    }
}
