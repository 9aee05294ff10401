//! The scheduler's clock.

use std::time::Duration;

use downbeat_profile::Span;
use downbeat_sched::Time;

/// Tells the scheduler's time: nanoseconds since the server started.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    real: downbeat_shards::Clock,
    /// A time that a test sets, in place of the real one.
    #[cfg(test)]
    played: Option<&'static std::sync::atomic::AtomicU64>,
}

impl Clock {
    pub(crate) fn start() -> Clock {
        Clock {
            real: downbeat_shards::Clock::start(),
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
        self.real.now()
    }

    /// The clock behind it, for the scheduler's threads.
    pub(crate) fn real(self) -> downbeat_shards::Clock {
        self.real
    }
}

/// A duration in the core's unit.
pub(crate) fn span(duration: Duration) -> Span {
    Span::from_nanos(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX))
}
