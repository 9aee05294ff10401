//! How long a batch of one size is expected to run.

use std::collections::VecDeque;

use downbeat_sched::Span;

/// The profile until something was measured, then the longest of the last measurements.
///
/// Clockwork asks for the 99th percentile of a window of 10, which is the maximum.
#[derive(Clone, Debug)]
pub(super) struct Estimate {
    value: Span,
    recent: VecDeque<Span>,
    window: usize,
}

impl Estimate {
    pub(super) fn new(profile: Span, window: usize) -> Estimate {
        Estimate { value: profile, recent: VecDeque::new(), window }
    }

    pub(super) fn value(&self) -> Span {
        self.value
    }

    pub(super) fn measured(&mut self, took: Span) {
        if self.recent.len() == self.window {
            self.recent.pop_front();
        }
        if self.window > 0 {
            self.recent.push_back(took);
        }
        self.value = self.recent.iter().copied().max().unwrap_or(self.value);
    }
}
