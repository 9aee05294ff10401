//! When a thread goes on at once, and when it sleeps.

use downbeat_sched::{Span, Time};

use crate::bell::Bell;
use crate::clock::{self, Clock};
use crate::sync::Arc;

/// Waits shorter than this are not worth the way into the kernel and back.
const TOO_SHORT: Span = Span::from_micros(20);

/// The rhythm of one thread's turns.
pub(crate) struct Rhythm {
    clock: Clock,
    bell: Arc<Bell>,
    spin: bool,
    /// It has said that it is about to sleep, and looks once more.
    announced: bool,
}

impl Rhythm {
    /// To be made on the thread itself.
    pub(crate) fn new(clock: Clock, bell: Arc<Bell>, spin: bool) -> Rhythm {
        bell.own();
        wake_up_on_time();
        Rhythm { clock, bell, spin, announced: false }
    }

    #[inline]
    pub(crate) fn now(&self) -> Time {
        self.clock.now()
    }

    /// Ends a turn that began at `now`, with or without work. Sleeps after two turns without.
    #[inline]
    pub(crate) fn pause(&mut self, now: Time, worked: bool, wake_at: impl FnOnce() -> Time) {
        if worked {
            if self.announced {
                self.announced = false;
                self.bell.stay();
            }
        } else if self.spin {
            std::hint::spin_loop();
        } else if self.announced {
            self.announced = false;
            self.sleep(now, wake_at());
        } else {
            self.announced = true;
            self.bell.announce();
        }
    }

    fn sleep(&self, now: Time, wake_at: Time) {
        if wake_at.since(now) <= TOO_SHORT {
            self.bell.stay();
            std::hint::spin_loop();
        } else {
            self.bell.sleep(clock::until(now, wake_at));
        }
    }
}

/// Asks the kernel not to delay this thread's timers. It may delay them by 50 us to save wake-ups, which is as long as
/// some windows. Where this is not possible, the thread wakes up that much later.
fn wake_up_on_time() {
    #[cfg(target_os = "linux")]
    let _ = rustix::thread::set_current_timer_slack(Some(std::num::NonZeroU64::MIN));
}
