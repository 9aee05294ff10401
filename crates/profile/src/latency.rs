//! l(b): how long a device takes for a batch of b.

use std::sync::Arc;

use crate::Span;

/// The largest batch a profile may describe. Profiles are dense tables, so this bounds their memory.
pub const LARGEST_BATCH: u32 = 65_536;

/// l(b), the latency of a batch of `b` requests on one class of device, for b = 1 ..= [`max_batch`].
///
/// Kept as a dense table, because the scheduler asks for l(b) and for the largest batch that fits a span several
/// times per request. Cloning shares the table.
///
/// Always monotone: l(b + 1) >= l(b) >= 1 ns. A larger batch measured as faster is measurement noise (a request can
/// always be padded), and the scheduler's windows rely on the order.
///
/// [`max_batch`]: LatencyProfile::max_batch
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LatencyProfile {
    table: Arc<[Span]>,
    /// By size less one: the size up to that at which a request costs least.
    cheapest: Arc<[u32]>,
}

/// Why numbers do not make a profile.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ProfileError {
    /// A latency that is zero, negative, infinite or not a number.
    #[error("the latency of a batch of {batch} is {latency_ms} ms; it must be a finite number above 0")]
    BadLatency {
        /// The batch size.
        batch: u32,
        /// The offending value.
        latency_ms: f64,
    },
    /// A coefficient that is negative, infinite or not a number.
    #[error("{name} is {value}; it must be a finite number, 0 or more")]
    BadCoefficient {
        /// Which coefficient.
        name: &'static str,
        /// The offending value.
        value: f64,
    },
    /// A factor that is zero, negative, infinite or not a number.
    #[error("the factor is {0}; it must be a finite number above 0")]
    BadFactor(f64),
    /// A batch size outside 1 ..= [`LARGEST_BATCH`].
    #[error("a batch of {0} cannot be described; sizes go from 1 to {LARGEST_BATCH}")]
    BadBatch(u32),
    /// The same batch size twice.
    #[error("the batch size {0} is given twice")]
    DuplicateBatch(u32),
    /// No measurement at all.
    #[error("no measurements")]
    Empty,
    /// A size past the largest measured one, where the caller refused to extrapolate.
    #[error("a batch of {wanted} is asked for, but the largest measured one is {measured}")]
    PastMeasured {
        /// The size asked for.
        wanted: u32,
        /// The largest size measured.
        measured: u32,
    },
}

/// What to do about batch sizes past the largest measured one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Beyond {
    /// Continue the line through the last two measured points, or flat where that line falls.
    Extrapolate,
    /// Refuse: [`ProfileError::PastMeasured`].
    Refuse,
}

impl LatencyProfile {
    /// l(b) = alpha * b + beta, for b up to `max_batch`.
    pub fn linear(alpha_ms: f64, beta_ms: f64, max_batch: u32) -> Result<LatencyProfile, ProfileError> {
        for (name, value) in [("alpha", alpha_ms), ("beta", beta_ms)] {
            if !value.is_finite() || value < 0.0 {
                return Err(ProfileError::BadCoefficient { name, value });
            }
        }
        Self::from_function(max_batch, |b| alpha_ms * f64::from(b) + beta_ms)
    }

    /// From measured `(batch, latency_ms)` points in any order, for b up to `max_batch`.
    ///
    /// Between measured sizes the latency is interpolated; below the smallest one it is that one's latency. Past the
    /// largest one `beyond` decides. The table passes through every point that no smaller batch exceeds.
    pub fn from_points(
        points: &[(u32, f64)],
        max_batch: u32,
        beyond: Beyond,
    ) -> Result<LatencyProfile, ProfileError> {
        let mut points = points.to_vec();
        points.sort_by_key(|point| point.0);
        for &(batch, latency_ms) in &points {
            check_point(batch, latency_ms)?;
        }
        if let Some(twice) = points.windows(2).find(|pair| pair[0].0 == pair[1].0) {
            return Err(ProfileError::DuplicateBatch(twice[0].0));
        }
        let measured = points.last().ok_or(ProfileError::Empty)?.0;
        if max_batch > measured && beyond == Beyond::Refuse {
            return Err(ProfileError::PastMeasured { wanted: max_batch, measured });
        }
        Self::from_function(max_batch, |b| at(&points, b))
    }

    /// From raw `(batch, latency_ms)` measurements in any order, several per batch size: each size counts with its
    /// median ([`medians`]), then as [`from_points`](Self::from_points).
    pub fn from_samples(
        samples: &[(u32, f64)],
        max_batch: u32,
        beyond: Beyond,
    ) -> Result<LatencyProfile, ProfileError> {
        Self::from_points(&medians(samples)?, max_batch, beyond)
    }

    /// The same profile on a device that takes `factor` times as long for everything, rounded to nanoseconds.
    ///
    /// For what is learned while serving: a clock that throttles slows all batch sizes alike.
    pub fn scaled(&self, factor: f64) -> Result<LatencyProfile, ProfileError> {
        if !factor.is_finite() || factor <= 0.0 {
            return Err(ProfileError::BadFactor(factor));
        }
        // Not through floating point, in which the longest spans are not exact.
        if factor == 1.0 {
            return Ok(self.clone());
        }
        let scale =
            |latency: &Span| Span::from_nanos(((latency.as_nanos() as f64 * factor).round() as u64).max(1));
        Ok(LatencyProfile::from_table(self.table.iter().map(scale).collect()))
    }

    fn from_table(table: Arc<[Span]>) -> LatencyProfile {
        let mut best = 1;
        let cost = |batch: u32| u128::from(table[batch as usize - 1].as_nanos());
        let cheapest = (1..=table.len() as u32).map(|batch| {
            // l(b)/b, compared without rounding.
            if cost(batch) * u128::from(best) <= cost(best) * u128::from(batch) {
                best = batch;
            }
            best
        });
        let cheapest = cheapest.collect();
        LatencyProfile { table, cheapest }
    }

    /// The size of at most `batch` at which a request costs the least device time, l(b)/b; the larger of two that cost
    /// the same. That is `batch` itself unless l(b) has steps: to fill a step is free, the first request of the next one
    /// is not. Sizes past the largest batch count as that.
    #[inline]
    pub fn cheapest_up_to(&self, batch: u32) -> u32 {
        self.cheapest[(batch.clamp(1, self.max_batch()) - 1) as usize]
    }

    /// A profile of the sizes 1 ..= `max_batch`, forced monotone.
    fn from_function(
        max_batch: u32,
        latency_ms: impl Fn(u32) -> f64,
    ) -> Result<LatencyProfile, ProfileError> {
        check_batch(max_batch)?;
        let mut slowest = Span::from_nanos(1);
        let table = (1..=max_batch)
            .map(|b| {
                let latency_ms = latency_ms(b);
                check_latency(b, latency_ms)?;
                slowest = slowest.max(Span::from_millis_f64(latency_ms));
                Ok(slowest)
            })
            .collect::<Result<_, ProfileError>>()?;
        Ok(LatencyProfile::from_table(table))
    }

    /// The largest batch this profile describes; at least 1.
    #[inline]
    pub fn max_batch(&self) -> u32 {
        self.table.len() as u32
    }

    /// l(b). Sizes outside 1 ..= [`max_batch`](Self::max_batch) are clamped to it.
    #[inline]
    pub fn latency(&self, batch: u32) -> Span {
        let index = (batch.max(1) as usize - 1).min(self.table.len() - 1);
        self.table[index]
    }

    /// The largest b with `b * per_request + l(b) <= budget`; 0 where not even one request fits.
    pub fn largest_within(&self, budget: Span, per_request: Span) -> u32 {
        let fits = |index: usize| per_request * (index as u64 + 1) + self.table[index] <= budget;
        let (mut low, mut high) = (0, self.table.len());
        while low < high {
            let middle = low + (high - low) / 2;
            if fits(middle) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low as u32
    }
}

/// One `(batch, latency_ms)` point per batch size, in ascending order: the median of that size's samples (of an even
/// number, the mean of the middle two).
///
/// The median, because what disturbs a measurement (a clock ramping up, another process) makes it slower by any
/// factor, and a mean would plan for the disturbance.
pub fn medians(samples: &[(u32, f64)]) -> Result<Vec<(u32, f64)>, ProfileError> {
    for &(batch, latency_ms) in samples {
        check_point(batch, latency_ms)?;
    }
    if samples.is_empty() {
        return Err(ProfileError::Empty);
    }
    let mut samples = samples.to_vec();
    samples.sort_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)));
    Ok(samples
        .chunk_by(|a, b| a.0 == b.0)
        .map(|same| {
            let (low, high) = (same[(same.len() - 1) / 2].1, same[same.len() / 2].1);
            (same[0].0, low + (high - low) / 2.0)
        })
        .collect())
}

/// Whether a measurement may be part of a profile.
pub(crate) fn check_point(batch: u32, latency_ms: f64) -> Result<(), ProfileError> {
    check_batch(batch)?;
    check_latency(batch, latency_ms)
}

fn check_batch(batch: u32) -> Result<(), ProfileError> {
    if (1..=LARGEST_BATCH).contains(&batch) { Ok(()) } else { Err(ProfileError::BadBatch(batch)) }
}

fn check_latency(batch: u32, latency_ms: f64) -> Result<(), ProfileError> {
    if latency_ms.is_finite() && latency_ms > 0.0 {
        Ok(())
    } else {
        Err(ProfileError::BadLatency { batch, latency_ms })
    }
}

/// The latency at `batch` on the line through the neighbouring points (sorted, valid, not empty).
///
/// A measured size gets exactly its own latency, and an interpolated one never leaves the range of its neighbours,
/// so that rounding alone cannot lift a size above the next measured one.
///
/// Past the last point the line goes on with the slope of the last two, but never downwards: two noisy points would
/// otherwise lead into negative latencies. The slope is that of the points as measured, not as forced monotone: where
/// an early outlier lies above all later points, the later points still say how latency grows.
fn at(points: &[(u32, f64)], batch: u32) -> f64 {
    let after = points.partition_point(|point| point.0 < batch);
    if after == 0 || points.len() == 1 {
        return points[0].1;
    }
    let right = after.min(points.len() - 1);
    let ((b0, l0), (b1, l1)) = (points[right - 1], points[right]);
    let (width, rise) = (f64::from(b1 - b0), l1 - l0);
    if batch < b1 {
        (l0 + rise * (f64::from(batch - b0) / width)).clamp(l0.min(l1), l0.max(l1))
    } else {
        // Finite even for absurd latencies: a `Span` saturates, so a profile can too.
        (l1 + rise.max(0.0) * (f64::from(batch - b1) / width)).min(f64::MAX)
    }
}

#[cfg(test)]
mod tests;
