//! A point on the scheduler's clock.

use std::fmt;
use std::ops::{Add, Sub};

use downbeat_profile::Span;

/// A point in time: nanoseconds since an origin that the caller chooses.
///
/// The scheduler never reads a clock; it is told what time it is with every event. Arithmetic saturates at both ends.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(u64);

impl Time {
    /// The origin of the clock.
    pub const ZERO: Time = Time(0);
    /// Later than any event: "never".
    pub const NEVER: Time = Time(u64::MAX);

    /// The point `ns` nanoseconds after the origin.
    pub const fn from_nanos(ns: u64) -> Time {
        Time(ns)
    }

    /// Nanoseconds since the origin.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// The time since `earlier`; zero where `earlier` is in fact later.
    pub fn since(self, earlier: Time) -> Span {
        Span::from_nanos(self.0.saturating_sub(earlier.0))
    }

    /// The time since the origin.
    pub const fn since_origin(self) -> Span {
        Span::from_nanos(self.0)
    }

    /// The next instant that the clock can tell from this one.
    pub const fn next(self) -> Time {
        Time(self.0.saturating_add(1))
    }
}

impl Add<Span> for Time {
    type Output = Time;
    fn add(self, span: Span) -> Time {
        Time(self.0.saturating_add(span.as_nanos()))
    }
}

impl Sub<Span> for Time {
    type Output = Time;
    fn sub(self, span: Span) -> Time {
        Time(self.0.saturating_sub(span.as_nanos()))
    }
}

impl fmt::Debug for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Time::NEVER { f.write_str("never") } else { write!(f, "{:?}", self.since_origin()) }
    }
}
