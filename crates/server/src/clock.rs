//! The scheduler's clock.

use std::time::{Duration, Instant};

use downbeat_profile::Span;
use downbeat_sched::Time;

/// Tells the scheduler's time: nanoseconds since the server started.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    origin: Instant,
    /// A time that a test sets, in place of the real one.
    #[cfg(test)]
    played: Option<&'static std::sync::atomic::AtomicU64>,
}

impl Clock {
    pub(crate) fn start() -> Clock {
        Clock {
            origin: Instant::now(),
            #[cfg(test)]
            played: None,
        }
    }

    /// A clock that shows what it is told.
    #[cfg(test)]
    pub(crate) fn played(nanos: &'static std::sync::atomic::AtomicU64) -> Clock {
        Clock { played: Some(nanos), ..Clock::start() }
    }

    pub(crate) fn now(self) -> Time {
        #[cfg(test)]
        if let Some(nanos) = self.played {
            return Time::from_nanos(nanos.load(std::sync::atomic::Ordering::Relaxed));
        }
        Time::ZERO + span(self.origin.elapsed())
    }

    /// When the operating system's clock shows `time`; `None` for a time that never comes.
    pub(crate) fn instant(self, time: Time) -> Option<Instant> {
        self.origin.checked_add(Duration::from_nanos(time.as_nanos()))
    }
}

/// A duration in the core's unit.
pub(crate) fn span(duration: Duration) -> Span {
    Span::from_nanos(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX))
}
