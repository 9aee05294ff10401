//! When a thread goes on at once, and when it sleeps.

use downbeat_sched::{Span, Time};

use crate::bell::Bell;
use crate::clock::{self, Clock};
use crate::settings::Settings;
use crate::sync::Arc;

/// Waits shorter than this are not worth the way into the kernel and back.
const TOO_SHORT: Span = Span::from_micros(20);

/// The rhythm of one thread's turns.
pub(crate) struct Rhythm {
    clock: Clock,
    bell: Arc<Bell>,
    spin: bool,
    grace: Span,
    /// When the last turn began.
    last: Time,
    /// It has said that it is about to sleep, and looks once more.
    announced: bool,
}

impl Rhythm {
    /// To be made on the thread itself.
    pub(crate) fn new(clock: Clock, bell: Arc<Bell>, settings: &Settings) -> Rhythm {
        bell.own();
        wake_up_on_time();
        let Settings { spin, grace, .. } = *settings;
        Rhythm { clock, bell, spin, grace, last: Time::ZERO, announced: false }
    }

    /// Begins a turn.
    #[inline]
    pub(crate) fn now(&mut self) -> Time {
        self.last = self.clock.now();
        self.last
    }

    /// Begins a turn. Where something was due since the last one began, the second is the time at which that is to be
    /// done, before the turn. `due` is told when that was.
    #[inline]
    pub(crate) fn now_and_due(&mut self, due: impl FnOnce(Time) -> Time) -> (Time, Option<Time>) {
        let before = self.last;
        let now = self.now();
        if self.grace == Span::ZERO {
            return (now, None);
        }
        let due = due(before);
        (now, (due <= now).then(|| forgiven(due.max(before), now, self.grace)))
    }

    /// Ends a turn, with or without work. Sleeps after two turns without.
    #[inline]
    pub(crate) fn pause(&mut self, worked: bool, wake_at: impl FnOnce() -> Time) {
        if worked {
            if self.announced {
                self.announced = false;
                self.bell.stay();
            }
        } else if self.spin {
            std::hint::spin_loop();
        } else if self.announced {
            self.announced = false;
            self.sleep(wake_at());
        } else {
            self.announced = true;
            self.bell.announce();
        }
    }

    fn sleep(&self, wake_at: Time) {
        if wake_at.since(self.last) <= TOO_SHORT {
            self.bell.stay();
            std::hint::spin_loop();
        } else {
            self.bell.sleep(clock::until(self.last, wake_at));
        }
    }
}

/// What time it counts as for something that was due at `due` and is done at `now`: as long as it is late by no more
/// than `grace`, when it should have been.
pub fn forgiven(due: Time, now: Time, grace: Span) -> Time {
    due + (now.since(due) - grace)
}

/// Asks the kernel not to delay this thread's timers. It may delay them by 50 us to save wake-ups, which is as long as
/// some windows. Where this is not possible, the thread wakes up that much later.
pub fn wake_up_on_time() {
    #[cfg(target_os = "linux")]
    let _ = rustix::thread::set_current_timer_slack(Some(std::num::NonZeroU64::MIN));
}
