//! Times as they were measured: a distribution given by some of its quantiles.

#[cfg(test)]
mod tests;

use downbeat_sched::Span;
use rand::{Rng, RngExt};

/// A distribution of times: which share of them stays within what. Between two quantiles it is even, below the first
/// one down to none, and none is above the last.
#[derive(Clone, Debug, PartialEq)]
pub struct Quantiles {
    /// Shares rise from above 0 to 1, times do not fall.
    points: Vec<(f64, Span)>,
}

impl Quantiles {
    /// The distribution with these quantiles, each a share and the time that this share stays within. `None` unless
    /// shares rise, from above 0 to 1, and times do not fall.
    pub fn new(points: Vec<(f64, Span)>) -> Option<Quantiles> {
        let rises = points.windows(2).all(|pair| pair[0].0 < pair[1].0 && pair[0].1 <= pair[1].1);
        let (first, last) = (points.first()?.0, points.last()?.0);
        (rises && first > 0.0 && last == 1.0).then_some(Quantiles { points })
    }

    /// The time that `share` of all stay within.
    pub fn at(&self, share: f64) -> Span {
        let above = self.points.partition_point(|(upto, _)| *upto < share).min(self.points.len() - 1);
        let (end, most) = self.points[above];
        let (begin, least) = above.checked_sub(1).map_or((0.0, Span::ZERO), |below| self.points[below]);
        let part = ((share - begin) / (end - begin)).clamp(0.0, 1.0);
        least + Span::from_nanos(((most - least).as_nanos() as f64 * part) as u64)
    }

    /// One such time.
    pub(crate) fn draw(&self, random: &mut impl Rng) -> Span {
        self.at(random.random())
    }
}
