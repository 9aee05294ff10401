//! How many devices traffic needs.

use downbeat_profile::Span;

/// How many devices some traffic needs, on average and how much that varies, and how long it can wait for one.
///
/// In millionths, so that sums of it are exact in any order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Need {
    mean: u64,
    variance: u64,
    patience_us: u32,
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

    fn time_us(time: Span) -> u32 {
        (time.as_nanos() / 1_000).min(Self::TIME_US_MAX) as u32
    }

    /// How long a request can wait for a device and still be in time. Of no meaning in a sum.
    pub const fn patience(self) -> Span {
        Span::from_micros(self.patience_us as u64)
    }

    /// Mean and variance in millionths: the exact values, to be carried elsewhere.
    pub const fn millionths(self) -> (u64, u64) {
        (self.mean, self.variance)
    }

    /// The need of which [`millionths`](Self::millionths) are these.
    pub const fn from_millionths((mean, variance): (u64, u64)) -> Need {
        Need { mean, variance, patience_us: 0 }
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
        }
    }
}
