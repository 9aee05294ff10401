//! How hard a class of devices is pressed, and what models are told of it.

use downbeat_profile::Span;

use crate::levels::HigherNeeds;
use crate::{ClassId, Need, Priority, Rule};

/// What models know of the cluster: the matchmaker's word, as far as they have heard it.
pub trait Outlook {
    /// [`Pressure::room`] of a class.
    fn room(&self, class: ClassId, level: Priority) -> Room;

    /// How long before its frontrun the window of a candidate of `latency` opens, of a model that needs `own` devices
    /// itself.
    fn head_start(&self, class: ClassId, latency: Span, own: Need) -> Span;
}

/// How much of a class of devices a model may use.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Room {
    /// How many times what it needs it may use for a while; infinite where nothing is needed.
    pub headroom: f64,
    /// The rule that is followed there.
    pub rule: Rule,
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
    /// The rule that is followed.
    pub rule: Rule,
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

    /// [`randomness`](Pressure::randomness) where the models' [`scatter`](Need::scatter_millionths) adds up to this.
    ///
    /// Of batches that come at random, the number in use at once has a variance as large as its mean: the need. Even
    /// ones have what the models scatter, and bursts come on top. Where more is needed than there is, nobody gets a
    /// turn when it is due.
    pub(crate) fn reckon_randomness(need: Need, scatter_millionths: u64, gpus: u32) -> f64 {
        let (mean, variance) = need.millionths();
        let bursts = variance.saturating_mul(Self::BURST_DEVIATIONS * Self::BURST_DEVIATIONS);
        let millionths = scatter_millionths.saturating_add(bursts);
        let too_few = mean >= u64::from(gpus) * 1_000_000;
        if too_few || millionths >= mean { 1.0 } else { millionths as f64 / mean as f64 }
    }

    /// How much a model of this level may use. What is below gets what is left, and presses nobody.
    pub fn room(&self, level: Priority) -> Room {
        let need = self.higher.of(level).unwrap_or_else(|| self.need.mean());
        Room { headroom: f64::from(self.gpus) / need, rule: self.rule }
    }
}

#[cfg(test)]
mod tests;
