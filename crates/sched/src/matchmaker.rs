//! The matchmaker: which model gets which device, and when.

mod devices;

use downbeat_profile::Span;

use crate::candidate::Candidate;
use crate::fleet::Fleet;
use crate::policy::{IdleGpus, Need, Outlook, Policy, Pressure};
use crate::pool::Pool;
use crate::{ClassId, ClassSet, Delays, GpuId, ID_LIMIT, ModelId, Release, Time};

/// Decides from the models' [`Candidate`]s and the devices' free times alone; requests never come here.
///
/// A candidate whose window has opened takes an idle device, or waits for one in the order of `latest`. A device that
/// is about to become free is given away ahead of time, so that the batch is there when it does.
///
/// Its counterpart is the [`Shard`](crate::Shard), which has the requests. Each grant must be followed by
/// [`sent`](Self::sent) or [`declined`](Self::declined); until then its device is given to nobody else, so that the shard may be on another
/// thread and take its time.
#[derive(Clone, Debug)]
pub struct Matchmaker<P: Policy> {
    policy: P,
    delays: Delays,
    pools: Vec<Pool<P::Order>>,
    /// Each model's candidates, the slowest class first.
    posted: Vec<Vec<Candidate>>,
    fleet: Fleet,
    present: ClassSet,
}

/// A device for a model. The model must post again (or withdraw) before it is granted another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grant {
    /// The model.
    pub model: ModelId,
    /// The device.
    pub gpu: GpuId,
    /// Tells the device from one of the same number that failed before it joined.
    pub life: u32,
    /// The device's class.
    pub class: ClassId,
    /// When the device is expected to be free; the past where it is idle.
    pub free_at: Time,
    /// Why now.
    pub reason: Release,
}

impl<P: Policy> Matchmaker<P> {
    /// A matchmaker without candidates and devices.
    pub fn new(policy: P, delays: Delays) -> Self {
        Matchmaker {
            policy,
            delays,
            pools: Vec::new(),
            posted: Vec::new(),
            fleet: Fleet::default(),
            present: ClassSet::default(),
        }
    }

    /// Makes room for models and devices with numbers below these, so that nobody has to wait for it when they join.
    pub fn reserve(&mut self, models: usize, gpus: usize) {
        self.fleet.reserve(gpus);
        self.posted.reserve(models.saturating_sub(self.posted.len()));
    }

    /// Replaces all candidates of a model: one for each class at most, the slowest class first.
    pub fn post(&mut self, model: ModelId, candidates: &[Candidate]) {
        if model.0 >= ID_LIMIT {
            return;
        }
        let index = model.0 as usize;
        if self.posted.len() <= index {
            if candidates.is_empty() {
                return;
            }
            self.posted.resize_with(index + 1, Vec::new);
        }
        let mut posted = std::mem::take(&mut self.posted[index]);
        let same_classes = posted.len() == candidates.len()
            && posted.iter().zip(candidates).all(|(old, new)| old.class == new.class);
        if same_classes {
            for (old, new) in posted.iter_mut().zip(candidates) {
                self.pool(new.class).replace(model, old, new);
                *old = *new;
            }
        } else {
            for candidate in posted.drain(..) {
                self.pool(candidate.class).withdraw(model, &candidate);
            }
            for candidate in candidates {
                self.pool(candidate.class).post(model, candidate);
            }
            posted.extend_from_slice(candidates);
        }
        self.posted[index] = posted;
    }

    /// Learns how many devices of a class a model's traffic needs.
    pub fn set_need(&mut self, model: ModelId, class: ClassId, need: Need) {
        self.pool(class).set_need(model, need);
    }

    /// Forgets a model: what it offered and what it needs.
    pub fn forget(&mut self, model: ModelId) {
        self.post(model, &[]);
        self.pools.iter_mut().for_each(|pool| pool.set_need(model, Need::default()));
    }

    /// How hard a class is pressed.
    pub fn pressure(&mut self, class: ClassId) -> Pressure {
        self.pools.get_mut(class.0 as usize).map_or_else(Pressure::default, |pool| *pool.reckon())
    }

    /// How many devices of a class the traffic of all models needs on average.
    pub fn needed(&self, class: ClassId) -> f64 {
        self.pools.get(class.0 as usize).map_or(0.0, |pool| pool.pressure().need.mean())
    }

    /// The next device to give away at `now`. The model's candidates are withdrawn with it.
    pub fn grant(&mut self, now: Time) -> Option<Grant> {
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
                let pool = &self.pools[other.0 as usize];
                pool.idle.first().is_some() && pool.open.contains(first)
            })
            .unwrap_or(class);
        let pool = &self.pools[class.0 as usize];
        let (_, model) = pool.open.peek()?;
        let model = ModelId(model);
        let candidate = self.candidate(model, class)?;
        let id = pool.idle.first().or_else(|| self.gpu_about_to_be_free(class, &candidate, now))?;
        self.post(model, &[]);
        let gpu = self.fleet.get_mut(id)?;
        gpu.reserved = true;
        let (free_at, life) = (gpu.free_at, gpu.life);
        let pool = &mut self.pools[class.0 as usize];
        pool.place(id, gpu);
        pool.started(candidate.latency);
        Some(Grant { model, gpu: id, life, class, free_at, reason: self.reason(&candidate, now) })
    }

    /// Moves the models whose window is open by now from `pending` to `open`.
    fn open_windows(&mut self, class: ClassId, now: Time) {
        while let Some((candidate, model, opens_at)) = self.next_to_open(class) {
            if opens_at > now {
                break;
            }
            let pool = &mut self.pools[class.0 as usize];
            pool.pending.remove(model.0);
            let urgency = self.policy.urgency(pool.pressure(), &candidate);
            pool.open.set(model.0, (candidate.priority, urgency));
        }
    }

    /// The pending candidate with the earliest frontrun, and when its window opens.
    fn next_to_open(&mut self, class: ClassId) -> Option<(Candidate, ModelId, Time)> {
        let pool = &mut self.pools[class.0 as usize];
        let (_, model) = pool.pending.peek()?;
        let pressure = pool.reckon();
        let candidate = self.posted[model as usize].iter().find(|candidate| candidate.class == class)?;
        let head_start = self.policy.head_start(pressure, candidate.latency);
        Some((*candidate, ModelId(model), candidate.frontrun - head_start))
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
    pub fn wake_at(&mut self, now: Time) -> Time {
        (0..self.pools.len())
            .map(|class| self.wake_in_at(ClassId(class as u16), now))
            .min()
            .unwrap_or(Time::NEVER)
    }

    fn wake_in_at(&mut self, class: ClassId, now: Time) -> Time {
        let opens = self.next_to_open(class).map(|(_, _, opens_at)| opens_at);
        let pool = &self.pools[class.0 as usize];
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

impl<P: Policy> Outlook for Matchmaker<P> {
    fn headroom(&self, class: ClassId) -> f64 {
        let pool = self.pools.get(class.0 as usize);
        pool.map_or_else(Pressure::default, |pool| *pool.pressure()).headroom()
    }

    fn head_start(&self, class: ClassId, latency: Span) -> Span {
        let pool = self.pools.get(class.0 as usize);
        pool.map_or(Span::ZERO, |pool| self.policy.head_start(pool.pressure(), latency))
    }
}
