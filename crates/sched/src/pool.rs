//! The devices of one class, and the models that want one.

use downbeat_profile::Span;

use crate::candidate::Candidate;
use crate::fleet::Gpu;
use crate::heap::KeyedHeap;
use crate::idle_gpus::IdleGpus;
use crate::levels::Levels;
use crate::occupancy::Occupancy;
use crate::{GpuId, Guard, ModelId, Need, Pressure, Priority, Rule, Time};

/// The devices of one class, and the models that want one.
#[derive(Clone, Debug)]
pub(crate) struct Pool {
    pub(crate) idle: IdleGpus,
    /// Devices that will be free for one more batch, by when they will be. Only kept while they are `watched`.
    pub(crate) busy: KeyedHeap<Time>,
    /// Whether anybody asks for busy devices: not as long as there are idle ones.
    pub(crate) watched: bool,
    /// Models whose window has not opened, by frontrun.
    pub(crate) pending: KeyedHeap<Time>,
    /// Models whose window is open, the most urgent first.
    pub(crate) open: KeyedHeap<(Priority, Time)>,
    /// Models whose window is open on all devices but the last idle one, by when it opens there.
    pub(crate) held: KeyedHeap<Time>,
    pressure: Pressure,
    guard: Guard,
    /// Whether anything has changed that is to be reckoned with.
    changed: bool,
    /// What `pressure.holding` is told from, and whether there is anything new in it.
    occupancy: Occupancy,
    occupancy_changed: bool,
    /// The share of requests lately lost, times how long each of them could have waited, in nanoseconds.
    lost_patience_ns: f64,
    /// What `pressure.all_busy` and `pressure.randomness` were reckoned from.
    reckoned: (Need, u32),
    /// The sum of what the models scatter, in millionths, so that it is exact.
    scatter: u64,
    /// Each model's part in `pressure.need`.
    needs: Vec<Need>,
    levels: Levels,
    /// How long each model with traffic can wait, the least patient first; without those that cannot.
    patience: KeyedHeap<Span>,
}

impl Pool {
    /// No devices, and no models that want any.
    pub(crate) fn new(rule: Rule) -> Pool {
        Pool {
            idle: IdleGpus::new(rule.order),
            busy: KeyedHeap::default(),
            watched: false,
            pending: KeyedHeap::default(),
            open: KeyedHeap::default(),
            held: KeyedHeap::default(),
            pressure: Pressure { rule, ..Pressure::default() },
            guard: Guard::default(),
            changed: true,
            occupancy: Occupancy::default(),
            occupancy_changed: false,
            lost_patience_ns: 0.0,
            reckoned: (Need::default(), 0),
            scatter: 0,
            needs: Vec::new(),
            levels: Levels::default(),
            patience: KeyedHeap::default(),
        }
    }

    /// How hard the class is pressed, but for what [`refresh`](Self::refresh) brings up to date.
    #[inline]
    pub(crate) fn pressure(&self) -> &Pressure {
        &self.pressure
    }

    /// How long before its frontrun the window of a model's candidate of `latency` opens.
    #[inline]
    pub(crate) fn head_start(&mut self, model: u32, latency: Span) -> Span {
        self.refresh();
        self.guard.head_start(self.pressure.backlog, latency, self.need_of(model))
    }

    /// The same on the last idle device, for a batch that holds it for longer than others can wait.
    pub(crate) fn head_start_on_last(&mut self, latency: Span) -> Span {
        self.refresh();
        self.guard.head_start_on_last(self.pressure.backlog, latency)
    }

    /// How many devices a model's traffic needs.
    #[inline]
    fn need_of(&self, model: u32) -> Need {
        self.needs.get(model as usize).copied().unwrap_or_default()
    }

    /// The level of the batch that the least patient model started last; above all others where it has started none.
    pub(crate) fn level_of_least_patient(&self) -> Priority {
        self.patience.peek().map_or(Priority(0), |(_, model)| self.levels.of(model))
    }

    /// Whether a candidate may have an idle device although its window is not open.
    ///
    /// An early start can cost others the time for which it holds the device. Nothing needs to stay idle where that
    /// costs nobody a deadline and no device time is short: all that waits could run on this device, one after the
    /// other, in the time that the least patient can wait, and there is a tenth of the devices more than the traffic
    /// needs. A batch that others cannot wait for leaves one device more.
    #[inline]
    pub(crate) fn may_start_early(&self, candidate: &Candidate) -> bool {
        let Pressure { gpus, patience, rule, need, backlog, .. } = self.pressure;
        let Some(reserve) = rule.reserve else { return false };
        let reserve = if candidate.latency > patience {
            reserve + 1
        } else if backlog > patience || need.mean() * SPARE_FACTOR > f64::from(gpus) {
            reserve.min(gpus.saturating_sub(1))
        } else {
            0
        };
        self.idle.len() > reserve as usize
    }

    /// Lets a model wait for any device.
    pub(crate) fn open(&mut self, model: u32, candidate: &Candidate) {
        let urgency = Rule::urgency(&self.pressure, candidate);
        self.open.set(model, (candidate.priority, urgency));
    }

    /// Refreshes cached values that are expensive to compute.
    #[inline]
    pub(crate) fn refresh(&mut self) {
        if self.changed {
            self.changed = false;
            self.recompute();
        }
    }

    #[inline(never)]
    fn recompute(&mut self) {
        let Pressure { need, gpus, .. } = self.pressure;
        if self.reckoned != (need, gpus) {
            self.reckoned = (need, gpus);
            self.pressure.all_busy = Pressure::reckon_all_busy(need, gpus);
            self.pressure.randomness = Pressure::reckon_randomness(need, self.scatter, gpus);
        }
        // Where all devices are never busy at once, nobody asks what holds them then.
        if self.occupancy_changed && self.pressure.all_busy > 0.0 {
            self.occupancy_changed = false;
            self.pressure.holding = self.occupancy.longest_holding_all(gpus, Pressure::ALL_BUSY_MAX);
        }
        let Pressure { loss, patience, .. } = self.pressure;
        self.pressure.losers_patience =
            if loss > LOSS_MIN { Span::from_nanos((self.lost_patience_ns / loss) as u64) } else { patience };
        self.guard = Guard::new(&self.pressure);
    }

    #[inline]
    pub(crate) fn post(&mut self, model: ModelId, candidate: &Candidate) {
        self.pressure.backlog += candidate.latency;
        self.pending.set(model.0, candidate.frontrun);
    }

    pub(crate) fn withdraw(&mut self, model: ModelId, candidate: &Candidate) {
        self.pressure.backlog = self.pressure.backlog - candidate.latency;
        if !self.pending.remove(model.0) {
            self.close(model);
        }
    }

    /// The same as to withdraw the old one and post the new one.
    #[inline]
    pub(crate) fn replace(&mut self, model: ModelId, old: &Candidate, new: &Candidate) {
        self.pressure.backlog = self.pressure.backlog - old.latency;
        if !self.pending.contains(model.0) {
            self.close(model);
        }
        self.post(model, new);
    }

    fn close(&mut self, model: ModelId) {
        if !self.open.remove(model.0) {
            self.held.remove(model.0);
        }
    }

    /// Learns that a batch is started.
    pub(crate) fn started(&mut self, model: ModelId, candidate: &Candidate) {
        let need = self.need_of(model.0);
        if self.levels.started(model.0, candidate.priority, need.millionths().0) {
            self.pressure.higher = self.levels.higher();
        }
        self.occupancy.add(candidate.latency);
        self.occupancy_changed = true;
        if self.pressure.all_busy > 0.0 {
            let loss = f64::from(candidate.loss_permille) / 1_000.0;
            let lost_patience_ns = loss * need.patience().as_nanos() as f64;
            self.pressure.loss += LOSS_WEIGHT * (loss - self.pressure.loss);
            self.lost_patience_ns += LOSS_WEIGHT * (lost_patience_ns - self.lost_patience_ns);
            self.changed = true;
        }
    }

    /// Learns how many devices a model's traffic needs.
    #[inline]
    pub(crate) fn set_need(&mut self, model: ModelId, need: Need) {
        let index = model.0 as usize;
        if self.needs.get(index) != Some(&need) {
            if self.needs.len() <= index {
                self.needs.resize(index + 1, Need::default());
            }
            let old = std::mem::replace(&mut self.needs[index], need);
            self.pressure.need = self.pressure.need.replace(old, need);
            if self.levels.needs(model.0, old.millionths().0, need.millionths().0) {
                self.pressure.higher = self.levels.higher();
            }
            self.scatter = self.scatter - old.scatter_millionths() + need.scatter_millionths();
            // Whoever cannot be in time at all gains nothing by what others do.
            if need.patience() == Span::ZERO {
                self.patience.remove(model.0);
            } else if need.patience() != old.patience() {
                self.patience.set(model.0, need.patience());
            }
            self.pressure.patience = self.patience.peek().map_or(Span::ZERO, |(patience, _)| patience);
            self.changed = true;
        }
    }

    /// Follows another rule from now on, with the same order of devices.
    pub(crate) fn follow(&mut self, rule: Rule) {
        self.pressure.rule = Rule { order: self.pressure.rule.order, ..rule };
        self.changed = true;
    }

    pub(crate) fn gain(&mut self) {
        self.pressure.gpus += 1;
        self.changed = true;
    }

    pub(crate) fn lose(&mut self, gpu: GpuId) {
        self.pressure.gpus -= 1;
        self.changed = true;
        self.idle.remove(gpu);
        self.busy.remove(gpu.0);
    }

    /// Puts a device of this class where it belongs: to those that are idle, to those that take one more batch, or
    /// nowhere.
    #[inline]
    pub(crate) fn place(&mut self, id: GpuId, gpu: &Gpu) {
        if gpu.leaving || gpu.reserved || !gpu.takes_more() {
            self.idle.remove(id);
            self.busy.remove(id.0);
        } else if gpu.is_idle() {
            self.busy.remove(id.0);
            self.idle.insert(id, gpu.free_at);
            if self.watched && self.idle.len() > UNWATCHED_IDLE + self.pressure.gpus as usize / 8 {
                self.watched = false;
                self.busy.clear();
            }
        } else {
            self.idle.remove(id);
            if self.watched {
                self.busy.set(id.0, gpu.free_at);
            }
        }
    }

    /// Begins to watch busy devices, if there are no idle ones and nobody does yet.
    pub(crate) fn watch<'a>(&mut self, gpus: impl Iterator<Item = (GpuId, &'a Gpu)>) {
        self.watched = true;
        for (id, gpu) in gpus {
            if gpu.takes_more() && !gpu.reserved && !gpu.is_idle() {
                self.busy.set(id.0, gpu.free_at);
            }
        }
    }
}

/// How much one batch counts in the mean of what is lost: the last few hundred tell.
const LOSS_WEIGHT: f64 = 1.0 / 256.0;

/// With less than so many times as many devices as the traffic needs, small batches that start early use up device time
/// that is short.
pub(crate) const SPARE_FACTOR: f64 = 1.1;

/// A mean loss of less is what remains of one long ago.
const LOSS_MIN: f64 = 1e-6;

/// With so many idle devices, and an eighth of all besides, nobody will ask for busy ones soon: to begin watching again
/// takes a step for each device, so it must not begin and end with each of them.
const UNWATCHED_IDLE: usize = 16;

#[cfg(test)]
mod tests {
    use super::Pool;
    use crate::{Candidate, ClassId, ModelId, Need, Priority, Rule, Span, Time};

    /// Three models that can wait for 2, 10 and 30 ms share one device.
    fn pool() -> Pool {
        let mut pool = Pool::new(Rule::ADAPTIVE);
        pool.gain();
        for (model, patience_ms) in [2, 10, 30].into_iter().enumerate() {
            let need = Need::new(0.3, 0.0).with_patience(Span::from_millis(patience_ms));
            pool.set_need(ModelId(model as u32), need);
        }
        pool.refresh();
        pool
    }

    fn start(pool: &mut Pool, model: u32, loss_permille: u16) {
        let candidate = Candidate {
            class: ClassId(0),
            size: 1,
            frontrun: Time::ZERO,
            latest: Time::ZERO,
            latency: Span::from_millis(1),
            priority: Priority(1),
            full: false,
            drains: false,
            loss_permille,
        };
        pool.started(ModelId(model), &candidate);
        pool.refresh();
    }

    #[test]
    fn losers_can_wait_for_as_long_as_the_least_patient_model_until_one_loses_anything() {
        let mut pool = pool();
        start(&mut pool, 2, 0);
        assert_eq!(pool.pressure().losers_patience, Span::from_millis(2));
        start(&mut pool, 2, 40);
        assert_eq!(pool.pressure().losers_patience.as_millis_f64().round(), 30.0);
    }

    /// The second loses three times as much as the third: (3 * 10 + 30) / 4 = 15 ms. Then only the second loses, and
    /// then nobody.
    #[test]
    fn losses_are_a_mean_over_the_last_few_hundred_batches_and_so_is_who_lost() {
        let mut pool = pool();
        let run = |pool: &mut Pool, batches, permille: [u16; 3]| {
            for batch in 0..batches {
                start(pool, batch % 3, permille[batch as usize % 3]);
            }
            let pressure = pool.pressure();
            (pressure.loss, pressure.losers_patience.as_millis_f64())
        };
        let near = |(loss, patience): (f64, f64), expected: (f64, f64)| {
            assert!((loss - expected.0).abs() < 0.02 * expected.0 + 1e-6, "lost {loss}, not {}", expected.0);
            assert!((patience - expected.1).abs() < 0.2, "{patience} ms, not {}", expected.1);
        };
        near(run(&mut pool, 3_000, [0, 30, 10]), (0.04 / 3.0, 15.0));
        near(run(&mut pool, 3_000, [0, 30, 0]), (0.01, 10.0));
        near(run(&mut pool, 9_000, [0, 0, 0]), (0.0, 2.0));
    }
}
