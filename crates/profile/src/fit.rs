//! The line through a profile, l(b) = alpha * b + beta, and how far the profile is from it.

use serde::Serialize;

use crate::latency::check_point;
use crate::{LatencyProfile, ProfileError};

/// The line l(b) = alpha * b + beta nearest to measured latencies, and its error.
///
/// Nearest in the least-squares sense among the lines with alpha >= 0 and beta >= 0, so that a fit always makes a
/// [`LatencyProfile::linear`]. A freely fitted line can start below zero where latency grows faster than the batch,
/// and would then predict that small batches finish before they start.
///
/// The errors say whether the line may stand in for the table: the scheduler's arithmetic holds for any profile, but
/// published formulas in alpha and beta hold only as far as the line does.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Fit {
    /// What each further request of a batch costs, in milliseconds; 0 or more.
    pub alpha_ms: f64,
    /// What a batch costs however small it is, in milliseconds; 0 or more.
    pub beta_ms: f64,
    /// The largest |predicted - measured| / measured over the points.
    pub max_relative_error: f64,
    /// The root of the mean square of (predicted - measured) / measured over the points.
    pub rms_relative_error: f64,
}

impl Fit {
    /// The fit over `(batch, latency_ms)` points, in any order; a size that is given several times weighs as much more.
    ///
    /// Points of one size only say nothing about the slope: alpha is then 0, as [`LatencyProfile::from_points`] also
    /// continues a single point flat.
    pub fn of(points: &[(u32, f64)]) -> Result<Fit, ProfileError> {
        for &(batch, latency_ms) in points {
            check_point(batch, latency_ms)?;
        }
        if points.is_empty() { Err(ProfileError::Empty) } else { Ok(Fit::of_valid(points)) }
    }

    /// The fit over points that are valid and at least one.
    fn of_valid(points: &[(u32, f64)]) -> Fit {
        let count = points.len() as f64;
        // Relative to the slowest point, so that the sums stay finite for any latencies.
        let unit_ms = points.iter().map(|point| point.1).fold(0.0, f64::max);
        let scaled = || points.iter().map(|&(b, latency_ms)| (f64::from(b), latency_ms / unit_ms));
        let mean_b = scaled().map(|(b, _)| b).sum::<f64>() / count;
        let mean_l = scaled().map(|(_, l)| l).sum::<f64>() / count;
        let spread: f64 = scaled().map(|(b, _)| (b - mean_b).powi(2)).sum();
        let shared: f64 = scaled().map(|(b, l)| (b - mean_b) * (l - mean_l)).sum();

        // The squared error is convex: where its free minimum breaks one bound, the bounded minimum lies on that
        // bound. Both cannot break, because latencies are positive.
        let mut alpha = if spread > 0.0 { (shared / spread).max(0.0) } else { 0.0 };
        let mut beta = mean_l - alpha * mean_b;
        if beta < 0.0 {
            alpha = scaled().map(|(b, l)| b * l).sum::<f64>() / scaled().map(|(b, _)| b * b).sum::<f64>();
            beta = 0.0;
        }

        let line = Fit {
            alpha_ms: alpha * unit_ms,
            beta_ms: beta * unit_ms,
            max_relative_error: 0.0,
            rms_relative_error: 0.0,
        };
        let errors =
            || points.iter().map(|&(b, latency_ms)| (line.latency_ms(b) - latency_ms).abs() / latency_ms);
        Fit {
            max_relative_error: errors().fold(0.0, f64::max),
            rms_relative_error: (errors().map(|error| error * error).sum::<f64>() / count).sqrt(),
            ..line
        }
    }

    /// What the line predicts for a batch of `batch`, in milliseconds.
    pub fn latency_ms(&self, batch: u32) -> f64 {
        self.alpha_ms * f64::from(batch) + self.beta_ms
    }
}

impl LatencyProfile {
    /// The fit over the whole table, each size 1 ..= [`max_batch`](Self::max_batch) weighing the same.
    ///
    /// For a profile made of points this differs from [`Fit::of`] those points: the table also holds what lies between
    /// and past them. Report the fit of the points for a measurement, this one for what the scheduler works with.
    pub fn fit(&self) -> Fit {
        let points: Vec<_> = (1..=self.max_batch()).map(|b| (b, self.latency(b).as_millis_f64())).collect();
        Fit::of_valid(&points)
    }
}

#[cfg(test)]
mod tests;
