//! The matchmaker: which model gets which device, and when.

use downbeat_profile::Span;

use crate::candidate::Candidate;
use crate::heap::KeyedHeap;
use crate::occupancy::Occupancy;
use crate::policy::{GpuOrder, Need, Policy, Pressure};
use crate::{ClassId, Delays, GpuId, ModelId, Priority, Release, Time};

/// Decides from the models' [`Candidate`]s and the devices' free times alone; requests never come here.
///
/// A candidate whose window has opened takes an idle device, or waits for one in the order of `latest`. A device that
/// is about to become free is given away ahead of time, so that the batch is there when it does.
#[derive(Clone, Debug)]
pub(crate) struct Matchmaker<P: Policy> {
    policy: P,
    delays: Delays,
    pools: Vec<Pool<P::Order>>,
    /// Each model's candidates, the slowest class first.
    posted: Vec<Vec<Candidate>>,
    gpus: Vec<Option<Gpu>>,
}

/// The devices of one class, and the models that want one.
#[derive(Clone, Debug)]
struct Pool<O: GpuOrder> {
    idle: KeyedHeap<O::Key>,
    /// Devices that will be free for one more batch, by when they will be.
    busy: KeyedHeap<Time>,
    /// Models whose window has not opened, by frontrun.
    pending: KeyedHeap<Time>,
    /// Models whose window is open, the most urgent first.
    open: KeyedHeap<(Priority, Time)>,
    pressure: Pressure,
    /// What `pressure.holding` is told from.
    occupancy: Occupancy,
    /// Each model's part in `pressure.need`.
    needs: Vec<Need>,
}

#[derive(Clone, Copy, Debug)]
struct Gpu {
    class: ClassId,
    /// When the device is expected to be done with all it was sent.
    free_at: Time,
}

/// A device for a model. The model must post again (or withdraw) before it is granted another one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Grant {
    pub(crate) model: ModelId,
    pub(crate) gpu: GpuId,
    pub(crate) class: ClassId,
    /// When the device is expected to be free; the past where it is idle.
    pub(crate) free_at: Time,
    pub(crate) reason: Release,
}

impl<O: GpuOrder> Default for Pool<O> {
    fn default() -> Self {
        Pool {
            idle: KeyedHeap::default(),
            busy: KeyedHeap::default(),
            pending: KeyedHeap::default(),
            open: KeyedHeap::default(),
            pressure: Pressure::default(),
            occupancy: Occupancy::default(),
            needs: Vec::new(),
        }
    }
}

impl<O: GpuOrder> Pool<O> {
    fn withdraw(&mut self, model: ModelId, candidate: &Candidate) {
        self.pressure.backlog = self.pressure.backlog - candidate.latency;
        if !self.pending.remove(model.0) {
            self.open.remove(model.0);
        }
    }

    fn started(&mut self, latency: Span) {
        self.occupancy.add(latency);
        let Pressure { gpus, .. } = self.pressure;
        self.pressure.holding = self.occupancy.longest_holding_all(gpus, Pressure::ALL_BUSY_MAX);
    }
}

impl<P: Policy> Matchmaker<P> {
    pub(crate) fn new(policy: P, delays: Delays) -> Self {
        Matchmaker { policy, delays, pools: Vec::new(), posted: Vec::new(), gpus: Vec::new() }
    }

    /// Replaces all candidates of a model.
    pub(crate) fn post(&mut self, model: ModelId, candidates: &[Candidate]) {
        let index = model.0 as usize;
        if self.posted.len() <= index {
            self.posted.resize_with(index + 1, Vec::new);
        }
        let mut posted = std::mem::take(&mut self.posted[index]);
        for candidate in posted.drain(..) {
            self.pool(candidate.class).withdraw(model, &candidate);
        }
        for candidate in candidates {
            let pool = self.pool(candidate.class);
            pool.pressure.backlog += candidate.latency;
            pool.pending.set(model.0, candidate.frontrun);
        }
        posted.extend_from_slice(candidates);
        self.posted[index] = posted;
    }

    /// Takes in a device that is idle from now on.
    pub(crate) fn add_gpu(&mut self, gpu: GpuId, class: ClassId, now: Time) {
        let index = gpu.0 as usize;
        if self.gpus.len() <= index {
            self.gpus.resize(index + 1, None);
        }
        self.remove_gpu(gpu);
        self.gpus[index] = Some(Gpu { class, free_at: now });
        let pool = self.pool(class);
        pool.pressure.gpus += 1;
        pool.idle.set(gpu.0, P::Order::key(now));
    }

    /// Forgets a device.
    pub(crate) fn remove_gpu(&mut self, gpu: GpuId) {
        if let Some(Gpu { class, .. }) = self.gpus.get_mut(gpu.0 as usize).and_then(Option::take) {
            let pool = self.pool(class);
            pool.pressure.gpus -= 1;
            pool.idle.remove(gpu.0);
            pool.busy.remove(gpu.0);
        }
    }

    /// How many devices of a class take work.
    pub(crate) fn gpus_of(&self, class: ClassId) -> u32 {
        self.pools.get(class.0 as usize).map_or(0, |pool| pool.pressure.gpus)
    }

    /// How hard a class is pressed.
    pub(crate) fn pressure(&self, class: ClassId) -> Pressure {
        self.pools.get(class.0 as usize).map_or_else(Pressure::default, |pool| pool.pressure)
    }

    /// Learns how many devices of a class a model's traffic needs.
    pub(crate) fn set_need(&mut self, model: ModelId, class: ClassId, need: Need) {
        let pool = self.pool(class);
        let index = model.0 as usize;
        if pool.needs.len() <= index {
            pool.needs.resize(index + 1, Need::default());
        }
        let old = std::mem::replace(&mut pool.needs[index], need);
        pool.pressure.need = pool.pressure.need.replace(old, need);
    }

    /// Forgets a model: what it offered and what it needs.
    pub(crate) fn forget(&mut self, model: ModelId) {
        self.post(model, &[]);
        for class in 0..self.pools.len() {
            self.set_need(model, ClassId(class as u16), Need::default());
        }
    }

    /// Learns that a device has nothing left to do.
    pub(crate) fn set_idle(&mut self, gpu: GpuId, now: Time) {
        if let Some(class) = self.set_free_at(gpu, now) {
            let pool = self.pool(class);
            pool.busy.remove(gpu.0);
            pool.idle.set(gpu.0, P::Order::key(now));
        }
    }

    /// Learns that a device will be done at `free_at`; `takes_more` where one more batch may be sent before that.
    pub(crate) fn set_busy(&mut self, gpu: GpuId, free_at: Time, takes_more: bool) {
        if let Some(class) = self.set_free_at(gpu, free_at) {
            let pool = self.pool(class);
            pool.idle.remove(gpu.0);
            if takes_more {
                pool.busy.set(gpu.0, free_at);
            } else {
                pool.busy.remove(gpu.0);
            }
        }
    }

    fn set_free_at(&mut self, gpu: GpuId, free_at: Time) -> Option<ClassId> {
        let gpu = self.gpus.get_mut(gpu.0 as usize)?.as_mut()?;
        gpu.free_at = free_at;
        Some(gpu.class)
    }

    /// The next device to give away at `now`. The model's candidates are withdrawn with it.
    pub(crate) fn grant(&mut self, now: Time) -> Option<Grant> {
        // All classes first: a model may have the choice between two whose windows open at this very instant.
        (0..self.pools.len()).for_each(|class| self.open_windows(ClassId(class as u16), now));
        (0..self.pools.len()).find_map(|class| self.grant_in(ClassId(class as u16), now))
    }

    fn grant_in(&mut self, class: ClassId, now: Time) -> Option<Grant> {
        let (_, first) = self.pools[class.0 as usize].open.peek()?;
        // Where the model could also have an idle device of a slower class, that class gives away first, in its own
        // order: a model with a choice must not overtake a more urgent one without.
        let slower = self.posted[first as usize].iter().take_while(|other| other.class != class);
        let class = slower
            .map(|other| other.class)
            .find(|other| {
                self.idle_gpu(*other).is_some() && self.pools[other.0 as usize].open.contains(first)
            })
            .unwrap_or(class);
        let (_, model) = self.pools[class.0 as usize].open.peek()?;
        let model = ModelId(model);
        let candidate = self.candidate(model, class)?;
        let gpu = self.idle_gpu(class).or_else(|| self.gpu_about_to_be_free(class, &candidate, now))?;
        self.post(model, &[]);
        self.pools[class.0 as usize].started(candidate.latency);
        let free_at = self.gpus[gpu.0 as usize].map_or(now, |gpu| gpu.free_at);
        Some(Grant { model, gpu, class, free_at, reason: self.reason(&candidate, now) })
    }

    /// Moves the models whose window is open by now from `pending` to `open`.
    fn open_windows(&mut self, class: ClassId, now: Time) {
        while let Some((candidate, opens_at)) = self.next_to_open(class) {
            if opens_at > now {
                break;
            }
            let pool = &mut self.pools[class.0 as usize];
            if let Some((_, model)) = pool.pending.peek() {
                pool.pending.remove(model);
                let urgency = self.policy.urgency(&pool.pressure, &candidate);
                pool.open.set(model, (candidate.priority, urgency));
            }
        }
    }

    /// The pending candidate with the earliest frontrun, and when its window opens.
    fn next_to_open(&self, class: ClassId) -> Option<(Candidate, Time)> {
        let pool = &self.pools[class.0 as usize];
        let (_, model) = pool.pending.peek()?;
        let candidate = self.candidate(ModelId(model), class)?;
        let head_start = self.policy.head_start(&pool.pressure, candidate.latency);
        Some((candidate, candidate.frontrun - head_start))
    }

    fn idle_gpu(&self, class: ClassId) -> Option<GpuId> {
        self.pools[class.0 as usize].idle.peek().map(|(_, gpu)| GpuId(gpu))
    }

    /// The busy device that is free first, if the candidate sent now would be there just in time and not too late.
    fn gpu_about_to_be_free(&mut self, class: ClassId, candidate: &Candidate, now: Time) -> Option<GpuId> {
        let lead = self.delays.lead(candidate.size);
        let busy = &mut self.pools[class.0 as usize].busy;
        while let Some((free_at, gpu)) = busy.peek() {
            if free_at > now {
                let in_time = free_at <= now + lead && free_at <= candidate.latest + lead;
                return in_time.then_some(GpuId(gpu));
            }
            // It should have been free by now and is not. Nobody knows when it will be: it takes no more before it
            // has finished.
            busy.remove(gpu);
        }
        None
    }

    fn reason(&self, candidate: &Candidate, now: Time) -> Release {
        if candidate.full {
            Release::Full
        } else if now >= candidate.frontrun {
            Release::Window
        } else {
            P::EARLY
        }
    }

    /// When [`grant`](Self::grant) may have something to give although nothing happens before.
    pub(crate) fn wake_at(&self, now: Time) -> Time {
        (0..self.pools.len())
            .map(|class| self.wake_in_at(ClassId(class as u16), now))
            .min()
            .unwrap_or(Time::NEVER)
    }

    fn wake_in_at(&self, class: ClassId, now: Time) -> Time {
        let pool = &self.pools[class.0 as usize];
        let opens = self.next_to_open(class).map(|(_, opens_at)| opens_at);
        // The most urgent model is sent ahead to the device that is free next.
        let sends = pool.open.peek().zip(pool.busy.peek()).and_then(|((_, model), (free_at, _))| {
            let candidate = self.candidate(ModelId(model), class)?;
            Some(free_at - self.delays.lead(candidate.size)).filter(|&at| at > now)
        });
        opens.into_iter().chain(sends).min().unwrap_or(Time::NEVER)
    }

    fn candidate(&self, model: ModelId, class: ClassId) -> Option<Candidate> {
        self.posted[model.0 as usize].iter().find(|candidate| candidate.class == class).copied()
    }

    fn pool(&mut self, class: ClassId) -> &mut Pool<P::Order> {
        let index = class.0 as usize;
        if self.pools.len() <= index {
            self.pools.resize_with(index + 1, Pool::default);
        }
        &mut self.pools[index]
    }
}
