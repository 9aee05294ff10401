//! How long a batch of one size is expected to run.

use std::collections::VecDeque;

use downbeat_sched::{Span, Time};

/// The profile until something was measured, then the longest of the last measurements.
///
/// Clockwork asks for the 99th percentile of a window of 10, which is the maximum. An estimate that makes every request
/// infeasible would never be measured again, so one that is not renewed gives way to the profile.
#[derive(Clone, Debug)]
pub(super) struct Estimate {
    profile: Span,
    longest: Span,
    recent: VecDeque<Span>,
    window: usize,
    measured_at: Time,
}

impl Estimate {
    /// How long measurements count after the last of them.
    pub(super) const LASTS: Span = Span::from_millis(1000);

    pub(super) fn new(profile: Span, window: usize) -> Estimate {
        Estimate { profile, longest: profile, recent: VecDeque::new(), window, measured_at: Time::ZERO }
    }

    pub(super) fn value(&self, now: Time) -> Span {
        if self.expired(now) { self.profile } else { self.longest }
    }

    pub(super) fn measured(&mut self, now: Time, took: Span) {
        if self.expired(now) {
            self.recent.clear();
        }
        if self.recent.len() == self.window {
            self.recent.pop_front();
        }
        if self.window > 0 {
            self.recent.push_back(took);
        }
        self.longest = self.recent.iter().copied().max().unwrap_or(self.profile);
        self.measured_at = now;
    }

    fn expired(&self, now: Time) -> bool {
        now.since(self.measured_at) > Estimate::LASTS
    }
}
