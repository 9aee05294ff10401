//! The matchmaker: which model gets which device, and when.

mod devices;
mod windows;

use downbeat_profile::Span;

use crate::candidate::Candidate;
use crate::fleet::Fleet;
use crate::pool::Pool;
use crate::{
    CLASS_LIMIT, ClassId, ClassSet, Delays, GpuId, Guard, ID_LIMIT, ModelId, Need, Outlook, Pressure,
    Priority, Release, Room, Rule, Time,
};

/// Decides from the models' [`Candidate`]s and the devices' free times alone; requests never come here.
///
/// A candidate whose window has opened takes an idle device, or waits for one in the order of `latest`. A device that
/// is about to become free is given away ahead of time, so that the batch is there when it does. The last idle device
/// is kept from batches that are early and would hold it for longer than others can wait.
///
/// Its counterpart is the [`Shard`](crate::Shard), which has the requests. Each grant must be followed by
/// [`sent`](Self::sent) or [`declined`](Self::declined); until then its device is given to nobody else, so that the
/// shard may be on another thread and take its time.
#[derive(Clone, Debug)]
pub struct Matchmaker {
    /// The rule of a class until it is given another one.
    rule: Rule,
    delays: Delays,
    pools: Vec<Pool>,
    /// Each model's candidates.
    posted: Vec<Posted>,
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

/// A model's candidates, the slowest class first. Hardly ever more than one.
#[derive(Clone, Debug, Default)]
struct Posted {
    first: Option<Candidate>,
    others: Vec<Candidate>,
}

impl Posted {
    #[inline]
    fn iter(&self) -> impl Iterator<Item = &Candidate> {
        self.first.iter().chain(&self.others)
    }

    #[inline]
    fn on(&self, class: ClassId) -> Option<&Candidate> {
        match &self.first {
            Some(first) if first.class == class => Some(first),
            _ => self.others.iter().find(|candidate| candidate.class == class),
        }
    }
}

impl Matchmaker {
    /// A matchmaker without candidates and devices.
    pub fn new(rule: Rule, delays: Delays) -> Self {
        Matchmaker {
            rule,
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
        let index = model.0 as usize;
        if self.posted.len() <= index {
            if candidates.is_empty() || model.0 >= ID_LIMIT {
                return;
            }
            self.posted.resize_with(index + 1, Posted::default);
        }
        self.pool_for(candidates);
        // By far the most common: one candidate, which grows.
        let Posted { first, others } = &mut self.posted[index];
        if let [new] = candidates
            && others.is_empty()
        {
            let pool = &mut self.pools[new.class.0 as usize];
            match first {
                Some(old) if old.class == new.class => pool.replace(model, old, new),
                Some(_) => return self.post_any(model, candidates),
                None => pool.post(model, new),
            }
            *first = Some(*new);
            return;
        }
        self.post_any(model, candidates);
    }

    #[inline(never)]
    fn post_any(&mut self, model: ModelId, candidates: &[Candidate]) {
        self.withdraw(model);
        for candidate in candidates {
            self.pool(candidate.class).post(model, candidate);
        }
        let Posted { first, others } = &mut self.posted[model.0 as usize];
        *first = candidates.first().copied();
        others.extend(candidates.iter().skip(1));
    }

    /// Makes sure that there is a pool for every class of `candidates`.
    #[inline]
    fn pool_for(&mut self, candidates: &[Candidate]) {
        for candidate in candidates {
            if self.pools.len() <= candidate.class.0 as usize {
                self.pool(candidate.class);
            }
        }
    }

    /// Withdraws all candidates of a model.
    #[inline]
    fn withdraw(&mut self, model: ModelId) {
        let Some(Posted { first, others }) = self.posted.get_mut(model.0 as usize) else { return };
        if let Some(candidate) = first.take() {
            self.pools[candidate.class.0 as usize].withdraw(model, &candidate);
        }
        for candidate in others.drain(..) {
            self.pools[candidate.class.0 as usize].withdraw(model, &candidate);
        }
    }

    /// Learns how many devices of a class a model's traffic needs.
    pub fn set_need(&mut self, model: ModelId, class: ClassId, need: Need) {
        self.pool(class).set_need(model, need);
    }

    /// Forgets a model: what it offered and what it needs.
    pub fn forget(&mut self, model: ModelId) {
        self.withdraw(model);
        self.pools.iter_mut().for_each(|pool| pool.set_need(model, Need::default()));
    }

    /// Follows another rule on a class from now on, with the same order of devices. Windows that are open stay open.
    pub fn follow(&mut self, class: ClassId, rule: Rule) {
        if class.0 < CLASS_LIMIT {
            self.pool(class).follow(rule);
        }
    }

    /// How hard a class is pressed.
    pub fn pressure(&mut self, class: ClassId) -> Pressure {
        let Some(pool) = self.pools.get_mut(class.0 as usize) else { return Pressure::default() };
        pool.refresh();
        *pool.pressure()
    }

    /// How many devices of a class the traffic of all models needs.
    pub fn need(&self, class: ClassId) -> Need {
        self.pools.get(class.0 as usize).map_or_else(Need::default, |pool| pool.pressure().need)
    }

    /// The next device to give away at `now` to a model whose window is open. The model's candidates are withdrawn with
    /// it.
    pub fn grant(&mut self, now: Time) -> Option<Grant> {
        if let Ok(grant) = self.grant_only(now) {
            return grant;
        }
        // All classes first: a model may have the choice between two whose windows open at this very instant.
        (0..self.pools.len()).for_each(|class| self.open_windows(ClassId(class as u16), now));
        (0..self.pools.len()).find_map(|class| self.grant_in(ClassId(class as u16), now))
    }

    /// The same for the most common case: one class of devices, some of them idle, and one window that is open, or
    /// none.
    #[inline]
    fn grant_only(&mut self, now: Time) -> Result<Option<Grant>, Crowd> {
        let Matchmaker { pools, posted, fleet, .. } = self;
        let [pool] = &mut pools[..] else { return Err(Crowd) };
        if pool.open.peek().is_some() || pool.held.peek().is_some() {
            return Err(Crowd);
        }
        let class = ClassId(0);
        let is_open = |pool: &mut Pool, (frontrun, model): (Time, u32)| {
            let latency = posted[model as usize].first.as_ref().map_or(Span::ZERO, |first| first.latency);
            frontrun <= now || frontrun - pool.head_start(model, latency) <= now
        };
        let Some(next) = pool.pending.peek() else { return Ok(None) };
        if !is_open(pool, next) {
            return Ok(None);
        }
        let id = pool.idle.first().ok_or(Crowd)?;
        if let Some(second) = pool.pending.peek_second()
            && is_open(pool, second)
        {
            return Err(Crowd);
        }
        let (frontrun, model) = next;
        if pool.idle.len() == 1 && frontrun > now {
            return Err(Crowd);
        }
        let (Some(candidate), Some(gpu)) = (posted[model as usize].first.take(), fleet.get_mut(id)) else {
            return Ok(None);
        };
        pool.withdraw(ModelId(model), &candidate);
        pool.idle.remove(id);
        gpu.reserved = true;
        let (free_at, life) = (gpu.free_at, gpu.life);
        pool.started(ModelId(model), &candidate);
        let reason = reason(pool, &candidate, now);
        Ok(Some(Grant { model: ModelId(model), gpu: id, life, class, free_at, reason }))
    }

    fn grant_in(&mut self, class: ClassId, now: Time) -> Option<Grant> {
        if let Some((model, gpu)) = self.held_and_let_go(class, now) {
            return self.give(model, class, gpu, now);
        }
        let (_, first) = self.pools[class.0 as usize].open.peek()?;
        let class = self.slower_class(first, class).unwrap_or(class);
        let pool = &self.pools[class.0 as usize];
        let (_, model) = pool.open.peek()?;
        let idle = pool.idle.first();
        let candidate = self.candidate(ModelId(model), class)?;
        let gpu = idle.or_else(|| self.gpu_about_to_be_free(class, &candidate, now))?;
        self.give(ModelId(model), class, gpu, now)
    }

    /// The next spare device to give away at `now` to a model whose window is not open yet. To be asked for only when
    /// all that has come in is known, and nothing is [due](Self::grant).
    ///
    /// Of several classes on which the model could start early it takes the one that finishes first.
    pub fn grant_early(&mut self, now: Time) -> Option<Grant> {
        (0..self.pools.len()).find_map(|class| {
            let (_, model) = self.pools[class].pending.peek()?;
            let posted = &self.posted[model as usize];
            let spare = posted
                .iter()
                .filter(|candidate| self.pools[candidate.class.0 as usize].may_start_early(candidate));
            let takes = |candidate: &&Candidate| self.delays.lead(candidate.size) + candidate.latency;
            let class = spare.min_by_key(takes)?.class;
            let gpu = self.pools[class.0 as usize].idle.first()?;
            let grant = self.give(ModelId(model), class, gpu, now)?;
            Some(Grant { reason: Release::Early, ..grant })
        })
    }

    fn give(&mut self, model: ModelId, class: ClassId, id: GpuId, now: Time) -> Option<Grant> {
        let candidate = self.candidate(model, class)?;
        self.withdraw(model);
        let gpu = self.fleet.get_mut(id)?;
        gpu.reserved = true;
        let (free_at, life) = (gpu.free_at, gpu.life);
        let pool = &mut self.pools[class.0 as usize];
        pool.idle.remove(id);
        pool.busy.remove(id.0);
        pool.started(model, &candidate);
        Some(Grant { model, gpu: id, life, class, free_at, reason: reason(pool, &candidate, now) })
    }

    /// Where a model could also have an idle device of a slower class, that class gives away first, in its own order: a
    /// model with a choice must not overtake a more urgent one without.
    #[inline]
    fn slower_class(&self, model: u32, class: ClassId) -> Option<ClassId> {
        let posted = &self.posted[model as usize];
        if posted.others.is_empty() {
            return None;
        }
        let mut slower = posted.iter().map(|other| other.class).take_while(|other| *other != class);
        slower.find(|other| {
            let pool = &self.pools[other.0 as usize];
            pool.idle.first().is_some() && pool.open.contains(model)
        })
    }

    /// The busy device that is free first, if the candidate sent now would be there just in time and not too late.
    fn gpu_about_to_be_free(&mut self, class: ClassId, candidate: &Candidate, now: Time) -> Option<GpuId> {
        let lead = self.delays.lead(candidate.size);
        let (free_at, gpu) = self.free_next(class, now)?;
        let in_time = free_at <= now + lead && free_at <= candidate.latest + lead;
        in_time.then_some(gpu)
    }

    /// The busy device that is free first, and when.
    fn free_next(&mut self, class: ClassId, now: Time) -> Option<(Time, GpuId)> {
        let pool = &mut self.pools[class.0 as usize];
        if !pool.watched {
            pool.watch(self.fleet.iter().filter(|(_, gpu)| gpu.class == class));
        }
        let busy = &mut pool.busy;
        while let Some((free_at, gpu)) = busy.peek() {
            if free_at > now {
                return Some((free_at, GpuId(gpu)));
            }
            // It should have been free by now and is not. Nobody knows when it will be: it takes no more before it
            // has finished.
            busy.remove(gpu);
        }
        None
    }

    /// When [`grant`](Self::grant) may have something to give although nothing happens before.
    pub fn wake_at(&mut self, now: Time) -> Time {
        (0..self.pools.len())
            .map(|class| self.wake_in_at(ClassId(class as u16), now))
            .min()
            .unwrap_or(Time::NEVER)
    }

    fn wake_in_at(&mut self, class: ClassId, now: Time) -> Time {
        let opens = self.next_to_open(class);
        let pool = &self.pools[class.0 as usize];
        // The most urgent model is sent ahead to the device that is free next.
        let sends = pool.open.peek().zip(pool.busy.peek()).and_then(|((_, model), (free_at, _))| {
            let candidate = self.candidate(ModelId(model), class)?;
            Some(free_at - self.delays.lead(candidate.size)).filter(|&at| at > now)
        });
        opens.into_iter().chain(sends).min().unwrap_or(Time::NEVER)
    }

    fn candidate(&self, model: ModelId, class: ClassId) -> Option<Candidate> {
        self.posted[model.0 as usize].on(class).copied()
    }

    fn pool(&mut self, class: ClassId) -> &mut Pool {
        let index = class.0 as usize;
        if self.pools.len() <= index {
            let rule = self.rule;
            self.pools.resize_with(index + 1, || Pool::new(rule));
        }
        &mut self.pools[index]
    }
}

/// More is to be looked at than in the most common case.
struct Crowd;

fn reason(pool: &Pool, candidate: &Candidate, now: Time) -> Release {
    if candidate.full {
        Release::Full
    } else if candidate.drains {
        Release::Drain
    } else if now >= candidate.frontrun {
        Release::Window
    } else {
        pool.pressure().rule.early()
    }
}

impl Outlook for Matchmaker {
    fn room(&self, class: ClassId, level: Priority) -> Room {
        let pool = self.pools.get(class.0 as usize);
        pool.map_or(Pressure { rule: self.rule, ..Pressure::default() }, |pool| *pool.pressure()).room(level)
    }

    fn head_start(&self, class: ClassId, latency: Span, own: Need) -> Span {
        let pool = self.pools.get(class.0 as usize);
        pool.map_or(Span::ZERO, |pool| {
            let pressure = pool.pressure();
            Guard::new(pressure).head_start(pressure.backlog, latency, own)
        })
    }
}
