//! How fast rows come in, in how large requests, and how much time they bring along.

use downbeat_profile::Span;

use crate::Time;

/// log2 of a bucket's width in nanoseconds: about 67 ms.
const BUCKET_BITS: u32 = 26;
const BUCKETS: u64 = 16;

/// How much one request counts in the means of gaps and of rows: bursts are told from the last few hundred.
const WEIGHT: f64 = 1.0 / 256.0;

/// Nothing is gained by telling bursts that are worse than this apart.
const DISPERSION_MAX: f64 = 100.0;

/// A model's arrivals over a sliding window of about a second.
#[derive(Clone, Debug)]
pub(crate) struct ArrivalRate {
    /// Rows by bucket, and in all of them.
    counts: [u64; BUCKETS as usize],
    total: u64,
    /// The number of the newest bucket since the origin of the clock.
    newest: u64,
    /// When the first request ever came, and its rows; before that there is no rate.
    first: Option<(Time, u32)>,
    /// Running mean of the time from arrival to deadline.
    allowance: Span,
    last: Time,
    /// Running means of the gaps between arrivals and of their squares, in nanoseconds.
    gap_ns: f64,
    squared_gap: f64,
    /// Running means of the rows of a request and of their squares.
    rows: f64,
    squared_rows: f64,
}

impl ArrivalRate {
    pub(crate) fn new() -> ArrivalRate {
        ArrivalRate {
            counts: [0; BUCKETS as usize],
            total: 0,
            newest: 0,
            first: None,
            allowance: Span::ZERO,
            last: Time::ZERO,
            gap_ns: 0.0,
            squared_gap: 0.0,
            rows: 1.0,
            squared_rows: 1.0,
        }
    }

    /// Counts a request of `rows` that arrives now and must be done in `allowance`.
    #[inline]
    pub(crate) fn count(&mut self, now: Time, allowance: Span, rows: u32) {
        self.advance(now);
        self.counts[(self.newest % BUCKETS) as usize] += u64::from(rows);
        self.total += u64::from(rows);
        let rows_f64 = f64::from(rows);
        if self.first.is_none() {
            self.first = Some((now, rows));
            self.allowance = allowance;
            (self.rows, self.squared_rows) = (rows_f64, rows_f64 * rows_f64);
        } else {
            // Deadlines differ from request to request; a mean over the last dozens follows changes and ignores strays.
            // By way of a signed number, which a processor converts in one step; the clock stops long before its end.
            let gap_ns = now.since(self.last).as_nanos().cast_signed() as f64;
            self.gap_ns += WEIGHT * (gap_ns - self.gap_ns);
            self.squared_gap += WEIGHT * (gap_ns * gap_ns - self.squared_gap);
            // Where every request has one row, there is nothing to learn.
            if rows != 1 || self.squared_rows != 1.0 {
                self.rows += WEIGHT * (rows_f64 - self.rows);
                self.squared_rows += WEIGHT * (rows_f64 * rows_f64 - self.squared_rows);
            }
            let mean = self.allowance.as_nanos();
            let mean = mean - mean / 32 + allowance.as_nanos() / 32;
            self.allowance = Span::from_nanos(mean);
        }
        self.last = now;
    }

    /// The mean time between two rows; [`Span::MAX`] where there is no telling.
    pub(crate) fn gap(&mut self, now: Time) -> Span {
        self.advance(now);
        let Some((first, first_rows)) = self.first else { return Span::MAX };
        let oldest = Time::from_nanos((self.newest + 1).saturating_sub(BUCKETS) << BUCKET_BITS);
        let elapsed = now.since(first.max(oldest)).as_nanos();
        // The first request opens the measurement and must not be counted as if it had filled a gap.
        let gaps = if first > oldest { self.total.saturating_sub(first_rows.into()) } else { self.total };
        elapsed.checked_div(gaps).map_or(Span::MAX, |gap| Span::from_nanos(gap.max(1)))
    }

    /// The squared coefficient of variation of the gaps: about 1 for Poisson arrivals, more where they come in bursts.
    ///
    /// The number of rows in a span varies by the number of requests, each of which counts as many rows, and by how
    /// much requests differ: with m rows on average and m2 their mean square, the dispersion past 1 counts m times, and
    /// m2/m - m is added. That all requests have many rows makes no burst.
    pub(crate) fn dispersion(&self) -> f64 {
        let mean_squared = self.gap_ns * self.gap_ns;
        let gaps = if mean_squared > 0.0 {
            (self.squared_gap / mean_squared - 1.0).clamp(0.0, DISPERSION_MAX)
        } else {
            1.0
        };
        if self.squared_rows == 1.0 {
            return gaps;
        }
        let sizes = (self.squared_rows / self.rows - self.rows).max(0.0);
        (1.0 + self.rows * (gaps - 1.0) + sizes).clamp(0.0, DISPERSION_MAX)
    }

    /// The mean rows of a request.
    pub(crate) fn mean_rows(&self) -> u32 {
        self.rows.round() as u32
    }

    /// Rows in the window.
    pub(crate) fn lately(&self) -> u64 {
        self.total
    }

    /// Arrival to deadline, as it was lately.
    pub(crate) fn allowance(&self) -> Span {
        self.allowance
    }

    #[inline]
    fn advance(&mut self, now: Time) {
        let bucket = now.as_nanos() >> BUCKET_BITS;
        if bucket > self.newest {
            self.advance_to(bucket);
        }
    }

    #[cold]
    fn advance_to(&mut self, bucket: u64) {
        let steps = (bucket - self.newest).min(BUCKETS);
        for step in 1..=steps {
            let old = &mut self.counts[((bucket - steps + step) % BUCKETS) as usize];
            self.total -= *old;
            *old = 0;
        }
        self.newest = bucket;
    }
}

#[cfg(test)]
mod tests {
    use super::ArrivalRate;
    use crate::{Span, Time};

    fn ms(ms: u64) -> Time {
        Time::ZERO + Span::from_millis(ms)
    }

    #[test]
    fn even_arrivals_give_their_gap_from_the_second_request_on() {
        let mut rate = ArrivalRate::new();
        assert_eq!(rate.gap(ms(0)), Span::MAX);
        for step in 0..5_000 {
            let now = ms(500 + 2 * step);
            rate.count(now, Span::from_millis(25), 1);
            if step > 0 {
                let gap = rate.gap(now).as_millis_f64();
                assert!((1.9..=2.1).contains(&gap), "after {step} gaps: {gap}");
            }
        }
    }

    #[test]
    fn the_allowance_follows_the_requests_and_ignores_a_stray() {
        let mut rate = ArrivalRate::new();
        let allowance_after = |rate: &mut ArrivalRate, requests: u64, allowance_ms| {
            (0..requests).for_each(|_| rate.count(ms(0), Span::from_millis(allowance_ms), 1));
            rate.allowance().as_millis_f64()
        };
        assert_eq!(allowance_after(&mut rate, 1, 20), 20.0);
        assert!((20.0..22.0).contains(&allowance_after(&mut rate, 1, 80)));
        assert!((79.0..=80.0).contains(&allowance_after(&mut rate, 200, 80)));
        assert!((20.0..21.0).contains(&allowance_after(&mut rate, 200, 20)));
    }

    #[test]
    fn a_rate_is_forgotten_after_the_window() {
        let mut rate = ArrivalRate::new();
        for step in 0..1_000 {
            rate.count(ms(step), Span::from_millis(25), 1);
        }
        assert_eq!(rate.gap(ms(5_000)), Span::MAX);
    }
    #[test]
    fn the_gap_is_the_time_between_rows() {
        let mut rate = ArrivalRate::new();
        for step in 0..1_000 {
            rate.count(ms(8 * step), Span::from_millis(25), 4);
        }
        let gap = rate.gap(ms(8_000)).as_millis_f64();
        assert!((1.9..=2.1).contains(&gap), "{gap}");
        assert_eq!(rate.mean_rows(), 4);
    }

    /// Gaps of 0 and 2 ms in turn vary like Poisson arrivals: a mean of 1 and a mean square of 2. So do requests of 4
    /// rows each; those of 1 and 9 rows in turn have a mean of 5 and a mean square of 41.
    #[test]
    fn requests_of_very_different_rows_are_bursts_and_those_of_many_rows_are_not() {
        let dispersion = |sizes: [u32; 2]| {
            let mut rate = ArrivalRate::new();
            (0..5_000u64).for_each(|step| rate.count(ms(step / 2 * 2), Span::ZERO, sizes[step as usize % 2]));
            rate.dispersion()
        };
        for (sizes, expected) in [([1, 1], 1.0), ([4, 4], 1.0), ([1, 9], 1.0 + 41.0 / 5.0 - 5.0)] {
            let found = dispersion(sizes);
            assert!((found - expected).abs() < 0.1, "{sizes:?}: {found}, not {expected}");
        }
    }
}
