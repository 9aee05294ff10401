//! Policies: when a window opens, which requests are given up, which idle device is taken.
//!
//! A policy is a type, so that the choices are compiled into the scheduler instead of being looked up per event.

mod adaptive;
mod deferred;
mod drop;
mod eager;
mod guarded;
mod order;
mod stance;

use std::fmt::Debug;

use downbeat_profile::Span;

pub use adaptive::Adaptive;
pub use deferred::Deferred;
pub use drop::{DropRule, HeadroomDrop, TimeoutDrop, Traffic, WindowDrop};
pub use eager::Eager;
pub use guarded::Guarded;
pub use order::{EarliestFree, GpuOrder, IdleGpus, SmallestId};
pub use stance::Stance;

use crate::levels::HigherNeeds;
use crate::{Candidate, ClassId, Priority, Release, Time};

/// A scheduling policy: a rule for opening windows, with a [`DropRule`] and a [`GpuOrder`].
pub trait Policy: Clone + Debug {
    /// Which requests are given up for others.
    type Drop: DropRule;
    /// Which idle device is taken first.
    type Order: GpuOrder;
    /// Whether deadlines are kept with a margin for batches that take longer than their profile, learned from those
    /// that did.
    const LEARNS_MARGIN: bool = false;

    /// What head starts are reckoned from, but for the backlog.
    type Guard: Copy + Debug + Default;

    /// Reckons it anew. The pressure changes less often than head starts are asked for.
    fn guard(&self, pressure: &Pressure) -> Self::Guard;

    /// The reason given for a batch that starts before its own window opened, where this rule is followed.
    fn early(&self, stance: Stance) -> Release;

    /// How long before its frontrun a candidate of `latency` may start, of a model that needs `own` devices itself.
    fn head_start(&self, guard: &Self::Guard, backlog: Span, latency: Span, own: Need) -> Span;

    /// The same on the last idle device, for a candidate that would hold it for longer than others can wait.
    fn head_start_on_last(&self, guard: &Self::Guard, backlog: Span, latency: Span) -> Span {
        self.head_start(guard, backlog, latency, Need::default())
    }

    /// What models with open windows are ordered by when they wait for a device, within a priority: the earliest first.
    fn urgency(&self, _pressure: &Pressure, candidate: &Candidate) -> Time {
        candidate.latest
    }
}

/// What models know of the cluster: the matchmaker's word, as far as they have heard it.
pub trait Outlook {
    /// [`Pressure::room`] of a class.
    fn room(&self, class: ClassId, level: Priority, own: Need) -> Room;

    /// [`Pressure::longest`] of a class.
    fn longest(&self, class: ClassId) -> Span;

    /// How long before its frontrun the window of a candidate of `latency` opens, of a model that needs `own` devices
    /// itself.
    fn head_start(&self, class: ClassId, latency: Span, own: Need) -> Span;
}

/// How much of a class of devices a model may use.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Room {
    /// How many times what it needs it may use for a while; infinite where nothing is needed.
    pub headroom: f64,
    /// How dear the devices' time is to it, from 0 to 1: 1 where it has the devices to itself and requests are lost,
    /// next to nothing where others need half of them.
    pub want: f64,
    /// The rule that is followed there.
    pub stance: Stance,
}

/// How hard one class of devices is pressed.
#[derive(Clone, Copy, Debug, Default)]
pub struct Pressure {
    /// Devices that take work.
    pub gpus: u32,
    /// The time that one device would need for the candidates of all models.
    pub backlog: Span,
    /// The devices that the traffic keeps busy if every model runs the largest batches it can sustain.
    pub need: Need,
    /// The longest batches that lately held all devices at once for more than [`ALL_BUSY_MAX`](Pressure::ALL_BUSY_MAX)
    /// of the time that all were busy. Only kept up where that ever happens: where `all_busy` is above 0.
    pub holding: Span,
    /// The part of the time for which all devices are busy at once, reckoned as (need / gpus) ^ gpus.
    pub all_busy: f64,
    /// How long the requests of the least patient model can wait for a device, of those that can at all.
    pub patience: Span,
    /// How randomly devices are taken: 1 where they are in use as if batches came at random, less where most of what is
    /// in use belongs to models that take turns with themselves.
    pub randomness: f64,
    /// The share of requests that models lately lost, a mean over the batches that they started. Only kept up where
    /// `all_busy` is above 0.
    pub loss: f64,
    /// How long the requests of those models can wait for a device: a mean over the lost ones; of the least patient
    /// model where none is lost.
    pub losers_patience: Span,
    /// The need of the higher levels alone, where there are several.
    pub higher: HigherNeeds,
    /// The rule that is followed; of interest to [`Adaptive`] alone.
    pub stance: Stance,
}

/// How many devices some traffic needs, on average and how much that varies, and how long it can wait for one.
///
/// In millionths, so that sums of it are exact in any order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Need {
    mean: u64,
    variance: u64,
    patience_us: u32,
    alone_us: u32,
}

impl Need {
    /// So many devices on average, with this standard deviation. Negative numbers and NaN give 0.
    pub fn new(mean: f64, deviation: f64) -> Need {
        Need::from_millionths(((mean * 1e6) as u64, (deviation * deviation * 1e6) as u64))
    }

    /// The longest time that is told from a longer one, in microseconds: past some seconds it makes no difference.
    const TIME_US_MAX: u64 = (1 << 24) - 1;

    /// The same where a request can wait so long for a device and still be in time, in whole microseconds.
    pub fn with_patience(self, patience: Span) -> Need {
        Need { patience_us: Self::time_us(patience), ..self }
    }

    /// The same where a batch of one row takes so long, in whole microseconds.
    pub fn with_alone(self, alone: Span) -> Need {
        Need { alone_us: Self::time_us(alone), ..self }
    }

    fn time_us(time: Span) -> u32 {
        (time.as_nanos() / 1_000).min(Self::TIME_US_MAX) as u32
    }

    /// How long a request can wait for a device and still be in time. Of no meaning in a sum.
    pub const fn patience(self) -> Span {
        Span::from_micros(self.patience_us as u64)
    }

    /// How long a batch of one row takes. Of no meaning in a sum.
    pub const fn alone(self) -> Span {
        Span::from_micros(self.alone_us as u64)
    }

    /// Mean and variance in millionths: the exact values, to be carried elsewhere.
    pub const fn millionths(self) -> (u64, u64) {
        (self.mean, self.variance)
    }

    /// The need of which [`millionths`](Self::millionths) are these.
    pub const fn from_millionths((mean, variance): (u64, u64)) -> Need {
        Need { mean, variance, patience_us: 0, alone_us: 0 }
    }

    /// The mean number of devices.
    pub fn mean(self) -> f64 {
        self.mean as f64 / 1e6
    }

    /// The standard deviation of it.
    pub fn deviation(self) -> f64 {
        (self.variance as f64 / 1e6).sqrt()
    }

    /// How much the number of devices in use varies, in millionths, if batches leave evenly spaced.
    ///
    /// A model that needs less than a device has one in use for that part of the time, n, and the variance is n (1 -
    /// n). One that needs more takes turns with itself: it has as many in use as it needs, or one more, at most a
    /// quarter. From half a device on it is a quarter, because nobody is that even.
    pub fn scatter_millionths(self) -> u64 {
        let part = self.mean.min(500_000);
        part * (1_000_000 - part) / 1_000_000
    }

    /// The part of it that `share` of the traffic needs.
    pub(crate) fn part(self, share: f64) -> Need {
        let part = Need::new(share * self.mean(), share * self.deviation());
        Need { mean: part.mean, variance: part.variance, ..self }
    }

    /// `self` with `old` replaced by `new` in the sum. Models are taken to vary independently of each other.
    pub(crate) fn replace(self, old: Need, new: Need) -> Need {
        Need {
            mean: self.mean.saturating_sub(old.mean).saturating_add(new.mean),
            variance: self.variance.saturating_sub(old.variance).saturating_add(new.variance),
            patience_us: 0,
            alone_us: 0,
        }
    }
}

impl Pressure {
    /// What happens for less than this part of the time can be relied on not to happen: half of what an objective of 99
    /// % allows.
    pub const ALL_BUSY_MAX: f64 = 0.005;

    /// The share of lost requests from which on they count for as much as they ever do: a tenth of what an objective of
    /// 99 % allows, so that something is done before it is too late.
    const LOSS_FULL: f64 = 0.001;

    /// How many standard deviations of what bursts need count as random.
    const BURST_DEVIATIONS: u64 = 2;

    /// The devices that would have nothing to do even when a standard deviation more than the mean comes in; below 0
    /// where there are too few.
    pub fn spare_gpus(&self) -> f64 {
        f64::from(self.gpus) - self.need.mean() - self.need.deviation()
    }

    /// How far [`loss`](Pressure::loss) counts: 1 where it counts in full.
    pub fn lost(&self) -> f64 {
        (self.loss / Self::LOSS_FULL).min(1.0)
    }

    /// [`all_busy`](Pressure::all_busy) with this need and so many devices.
    pub(crate) fn reckon_all_busy(need: Need, gpus: u32) -> f64 {
        let gpus = f64::from(gpus.max(1));
        let part = (need.mean() / gpus).min(1.0);
        // ln(x) <= x - 1, so that this is less than e^-200: it would vanish in any sum.
        if gpus * (1.0 - part) > 200.0 { 0.0 } else { part.powf(gpus) }
    }

    /// How long batches may get by waiting for more requests, so that others can wait for their end.
    ///
    /// One device is held by whatever runs on it: half of what the least patient can wait, because its batch may find
    /// another one waiting as well. Of several devices another one is free soon, and smaller batches would only keep
    /// all of them busy.
    pub fn longest(&self) -> Span {
        if self.gpus == 1 { Span::from_nanos(self.patience.as_nanos() / 2) } else { Span::MAX }
    }

    /// [`randomness`](Pressure::randomness) where the models' [`scatter`](Need::scatter_millionths) adds up to this.
    ///
    /// Of batches that come at random, the number in use at once has a variance as large as its mean: the need. Even
    /// ones have what the models scatter, and bursts come on top. Where more is needed than there is, nobody gets a
    /// turn when it is due.
    pub(crate) fn reckon_randomness(need: Need, scatter_millionths: u64, gpus: u32) -> f64 {
        let bursts = need.variance.saturating_mul(Self::BURST_DEVIATIONS * Self::BURST_DEVIATIONS);
        let millionths = scatter_millionths.saturating_add(bursts);
        let too_few = need.mean >= u64::from(gpus) * 1_000_000;
        if too_few || millionths >= need.mean { 1.0 } else { millionths as f64 / need.mean as f64 }
    }

    /// How much a model of this level, which needs `own` devices, may use. What is below gets what is left, and presses
    /// nobody.
    ///
    /// A model alone may use all that is spare. Of several that are in want at different times, each may use more than
    /// its share: what independent ones need beyond their mean adds up like square roots, so of the spare devices one
    /// has the root of its share.
    pub fn room(&self, level: Priority, own: Need) -> Room {
        let need = self.higher.of(level).unwrap_or_else(|| self.need.mean());
        let all = f64::from(self.gpus) / need;
        let share = (own.mean() / need).min(1.0);
        let headroom = if all > 1.0 { 1.0 + (all - 1.0) / share.sqrt() } else { all };
        Room { headroom, want: share.powi(4) * self.lost(), stance: self.stance }
    }
}

#[cfg(test)]
mod tests;
