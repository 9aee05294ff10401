//! What the load will be in some minutes, from what it was: its trend, and the day before.

#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use downbeat_sched::{Span, Time};

use crate::signals::ratio;

/// A day, in seconds.
const DAY_S: f64 = 86_400.0;

/// The season is kept in bins of this many seconds.
const BIN_S: f64 = 300.0;

/// How far back the trend looks, in seconds.
const TREND_S: f64 = 600.0;

/// How much of a bin comes from the newest day.
const DAY_WEIGHT: f64 = 0.5;

/// No more growth, or less, than this is foretold.
const GROWTH_MAX: f64 = 4.0;

/// A day on which so little came in, as a part of the mean, says nothing about growth.
const RATE_MIN: f64 = 0.01;

/// How a rate will grow, from its history.
///
/// Where the same time of an earlier day is known, by how it went on then; else by the trend of the last minutes, as a
/// straight line.
#[derive(Clone, Debug)]
pub struct Forecast {
    season_s: f64,
    /// By time of day: the mean rate, where it is known.
    bins: Vec<Option<f64>>,
    /// The bin that is being filled: its number since the origin, and what came in it so far.
    open: Option<(u64, Mean)>,
    /// The time and rate of the last minutes, oldest first.
    trend: VecDeque<(f64, f64)>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Mean {
    requests: f64,
    time_s: f64,
}

impl Forecast {
    /// A forecast without history, for traffic that repeats every day.
    pub fn daily() -> Forecast {
        Forecast::with_season(Span::from_secs_f64(DAY_S))
    }

    /// A forecast without history, for traffic that repeats after `season`, of at least two bins of five minutes.
    pub fn with_season(season: Span) -> Forecast {
        let bins = (season.as_secs_f64() / BIN_S).round().max(2.0);
        Forecast {
            season_s: bins * BIN_S,
            bins: vec![None; bins as usize],
            open: None,
            trend: VecDeque::new(),
        }
    }

    /// Takes in a mean rate over the time `over` that ends at `now`. Times must not go back.
    pub fn observe(&mut self, now: Time, over: Span, rate_rps: f64) {
        if !rate_rps.is_finite() || rate_rps < 0.0 {
            return;
        }
        let (now_s, over_s) = (now.since_origin().as_secs_f64(), over.as_secs_f64());
        let number = ((now_s - 0.5 * over_s).max(0.0) / BIN_S) as u64;
        if self.open.is_some_and(|(open, _)| open != number) {
            self.close();
        }
        let (_, mean) = self.open.get_or_insert((number, Mean::default()));
        mean.requests += rate_rps * over_s;
        mean.time_s += over_s;
        if now_s >= (number + 1) as f64 * BIN_S {
            self.close();
        }
        self.trend.push_back((now_s, rate_rps));
        while self.trend.front().is_some_and(|&(at_s, _)| now_s - at_s > TREND_S) {
            self.trend.pop_front();
        }
    }

    /// The bin that was being filled is full.
    fn close(&mut self) {
        let Some((number, mean)) = self.open.take() else { return };
        let rate = ratio(mean.requests, mean.time_s);
        let place = (number % self.bins.len() as u64) as usize;
        let bin = &mut self.bins[place];
        *bin = Some(bin.map_or(rate, |before| before + DAY_WEIGHT * (rate - before)));
    }

    /// By which factor the rate will at most have grown at any time from now to `ahead` after it; at least 1.
    pub fn growth(&self, now: Time, ahead: Span) -> f64 {
        let (now_s, ahead_s) = (now.since_origin().as_secs_f64(), ahead.as_secs_f64());
        let steps = (ahead_s / (0.5 * BIN_S)).ceil().clamp(1.0, 1e3) as u32;
        let growth_at = |step: u32| {
            let later_s = ahead_s * f64::from(step) / f64::from(steps);
            self.seasonal(now_s, later_s).unwrap_or_else(|| self.linear(later_s))
        };
        (1..=steps).map(growth_at).fold(1.0, f64::max).min(GROWTH_MAX)
    }

    /// How it went on at the same time of an earlier day.
    fn seasonal(&self, now_s: f64, later_s: f64) -> Option<f64> {
        let (then, later) = (self.season_at(now_s)?, self.season_at(now_s + later_s)?);
        let known = self.bins.iter().flatten();
        let mean = known.clone().sum::<f64>() / known.count().max(1) as f64;
        (then > RATE_MIN * mean).then(|| later / then)
    }

    /// The rate at a time of day, between the middles of two bins in a straight line.
    fn season_at(&self, at_s: f64) -> Option<f64> {
        let place = (at_s.rem_euclid(self.season_s) / BIN_S - 0.5).rem_euclid(self.bins.len() as f64);
        let (first, part) = (place as usize % self.bins.len(), place.fract());
        let (a, b) = (self.bins[first]?, self.bins[(first + 1) % self.bins.len()]?);
        Some(a + part * (b - a))
    }

    /// By the straight line that fits the last minutes best.
    fn linear(&self, later_s: f64) -> f64 {
        let count = self.trend.len() as f64;
        let (Some(first), Some(last)) = (self.trend.front(), self.trend.back()) else { return 1.0 };
        if last.0 - first.0 < 0.5 * TREND_S {
            return 1.0;
        }
        let mean = |value: fn(&(f64, f64)) -> f64| self.trend.iter().map(value).sum::<f64>() / count;
        let (mean_s, mean_rate) = (mean(|point| point.0), mean(|point| point.1));
        let (mut covariance, mut variance) = (0.0, 0.0);
        for (at_s, rate) in &self.trend {
            covariance += (at_s - mean_s) * (rate - mean_rate);
            variance += (at_s - mean_s).powi(2);
        }
        let slope = ratio(covariance, variance);
        let at_now = mean_rate + slope * (last.0 - mean_s);
        if at_now > 0.0 { (at_now + slope * later_s).max(0.0) / at_now } else { 1.0 }
    }
}
