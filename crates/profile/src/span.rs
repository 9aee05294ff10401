//! A length of time, in whole nanoseconds.

use std::fmt;
use std::ops::{Add, AddAssign, Mul, Sub};

use serde::Serialize;

/// A length of time, in whole nanoseconds.
///
/// The one unit of latency in Downbeat. A window in which a batch may start can be tens of microseconds wide and
/// depends on differences of measured latencies, so microseconds would round away what the scheduler decides by.
/// Arithmetic saturates: no event, however absurd, may overflow the scheduler.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct Span(u64);

impl Span {
    /// No time at all.
    pub const ZERO: Span = Span(0);
    /// The longest span; sums that would pass it stay here.
    pub const MAX: Span = Span(u64::MAX);

    /// A span of `ns` nanoseconds.
    pub const fn from_nanos(ns: u64) -> Span {
        Span(ns)
    }

    /// A span of `us` microseconds.
    pub const fn from_micros(us: u64) -> Span {
        Span(us.saturating_mul(1_000))
    }

    /// A span of `ms` milliseconds.
    pub const fn from_millis(ms: u64) -> Span {
        Span(ms.saturating_mul(1_000_000))
    }

    /// A span of `ms` milliseconds, rounded to the nearest nanosecond; negative values and NaN give zero.
    pub fn from_millis_f64(ms: f64) -> Span {
        Span((ms * 1e6).round() as u64)
    }

    /// A span of `s` seconds, rounded to the nearest nanosecond; negative values and NaN give zero.
    pub fn from_secs_f64(s: f64) -> Span {
        Span((s * 1e9).round() as u64)
    }

    /// The span in nanoseconds.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// The span in milliseconds.
    pub fn as_millis_f64(self) -> f64 {
        self.0 as f64 / 1e6
    }

    /// The span in seconds.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }
}

impl Add for Span {
    type Output = Span;
    fn add(self, other: Span) -> Span {
        Span(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Span {
    fn add_assign(&mut self, other: Span) {
        *self = *self + other;
    }
}

impl Sub for Span {
    type Output = Span;
    /// The difference, or zero where `other` is the longer one.
    fn sub(self, other: Span) -> Span {
        Span(self.0.saturating_sub(other.0))
    }
}

impl Mul<u64> for Span {
    type Output = Span;
    fn mul(self, times: u64) -> Span {
        Span(self.0.saturating_mul(times))
    }
}

impl fmt::Debug for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}ms", self.as_millis_f64())
    }
}
