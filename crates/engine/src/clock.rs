//! What time it is, as an argument.

#![expect(clippy::disallowed_types, reason = "here real time enters; everything else takes a Clock")]

use std::cell::Cell;
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

/// Asks the kernel, once per thread, not to delay this thread's timers. It may delay them by 50 us to save wake-ups,
/// which is as long as some batches. Where this is not possible, the thread wakes up that much later.
pub fn wake_up_on_time() {
    thread_local! {
        static ASKED: Cell<bool> = const { Cell::new(false) };
    }
    if !ASKED.replace(true) {
        #[cfg(target_os = "linux")]
        let _ = rustix::thread::set_current_timer_slack(Some(std::num::NonZeroU64::MIN));
    }
}
