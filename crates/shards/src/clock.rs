//! What time it is.

#![expect(clippy::disallowed_types, reason = "here real time enters; shard and matchmaker are told it")]

use std::time::{Duration, Instant};

use downbeat_sched::Time;

/// Real time since the clock was started. All threads of a runtime share one.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    origin: Instant,
}

impl Clock {
    /// A clock that begins now.
    pub fn start() -> Clock {
        Clock { origin: Instant::now() }
    }

    /// The time now.
    #[inline]
    pub fn now(&self) -> Time {
        Time::from_nanos(self.origin.elapsed().as_nanos() as u64)
    }
}

/// How long from `now` until `then`.
pub(crate) fn until(now: Time, then: Time) -> Duration {
    Duration::from_nanos(then.since(now).as_nanos())
}
