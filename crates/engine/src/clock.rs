//! What time it is, as an argument.

#![expect(clippy::disallowed_types, reason = "here real time enters; everything else takes a Clock")]

use std::time::Instant;

use downbeat_profile::Span;

/// Tells the time since some instant in the past, never going back.
pub trait Clock {
    /// The time now.
    fn now(&mut self) -> Span;
}

/// Real time.
#[derive(Debug)]
pub struct WallClock {
    start: Instant,
}

impl WallClock {
    /// Real time, counted from now.
    pub fn start() -> WallClock {
        WallClock { start: Instant::now() }
    }
}

impl Clock for WallClock {
    fn now(&mut self) -> Span {
        Span::from_nanos(u64::try_from(self.start.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }
}
