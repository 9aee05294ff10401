//! Sends on time.
//!
//! Tokio's timers tick in milliseconds, so that waiting is done by a thread of its own, which sleeps with the kernel's
//! finest timer. It never spins: client and server may share few cores, and a core that spins is one that the server
//! does not have. How late requests really leave, the way from this thread to a connection included, is part of every
//! report.

#![allow(clippy::disallowed_types, clippy::disallowed_methods, reason = "here plans meet real time")]

#[cfg(test)]
mod tests;

use std::thread;
use std::time::{Duration, Instant};

use downbeat_engine::wake_up_on_time;

use crate::control::Control;
use crate::plan::{Due, Plan};

/// Nobody waits longer for the pacer to notice that it should stop.
const NAP_MAX: Duration = Duration::from_millis(50);

/// When a run began, and how long ago that is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Epoch(Instant);

impl Epoch {
    /// A run that begins a moment from now.
    pub(crate) fn soon() -> Epoch {
        Epoch(Instant::now() + Duration::from_millis(10))
    }

    /// The time since the beginning; 0 before it.
    pub(crate) fn elapsed(self) -> Duration {
        self.0.elapsed()
    }

    fn until(self, at: Duration) -> Duration {
        (self.0 + at).saturating_duration_since(Instant::now())
    }
}

/// Calls `send` for each request of the plan when it is due, and never before. Blocks until the end of the plan, or
/// until it is told to stop.
pub(crate) fn pace(plan: Plan, epoch: Epoch, control: &Control, mut send: impl FnMut(Due)) {
    wake_up_on_time();
    for due in plan {
        loop {
            if control.is_stopped() {
                return;
            }
            let rest = epoch.until(due.at);
            if rest.is_zero() {
                break;
            }
            thread::sleep(rest.min(NAP_MAX));
        }
        send(due);
    }
}
