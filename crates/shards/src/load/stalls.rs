//! Time in which a thread did not have its processor.

use std::collections::VecDeque;

use downbeat_sched::{Span, Time};

/// How often is looked: asking for a thread's processor time is a way into the kernel.
const LOOK_EVERY: Span = Span::from_micros(100);

/// What is shorter is not noted.
const WORTH_NOTING: Span = Span::from_micros(200);

/// So many are remembered.
const REMEMBERED: usize = 64;

/// Notes when its thread, which never sleeps, was away: because the host of a virtual machine took the processor, or
/// somebody else in it.
#[derive(Clone, Debug, Default)]
pub(super) struct Stalls {
    looked_at: Time,
    used: Span,
    /// Until when, and for how long.
    recent: VecDeque<(Time, Span)>,
    total: Span,
}

impl Stalls {
    /// To be called again and again, on the thread itself.
    #[inline]
    pub(super) fn look(&mut self, now: Time) {
        if now.since(self.looked_at) >= LOOK_EVERY {
            self.note(now, processor_time());
        }
    }

    fn note(&mut self, now: Time, used: Span) {
        let away = now.since(self.looked_at) - (used - self.used);
        if self.looked_at > Time::ZERO && away >= WORTH_NOTING {
            self.total += away;
            self.recent.push_back((now, away));
            if self.recent.len() > REMEMBERED {
                self.recent.pop_front();
            }
        }
        (self.looked_at, self.used) = (now, used);
    }

    /// How long the thread was away after `then`, at most.
    pub(super) fn since(&self, then: Time) -> Span {
        let after = self.recent.iter().rev().take_while(|(until, _)| *until > then);
        after.fold(Span::ZERO, |sum, (until, away)| sum + (*away).min(until.since(then)))
    }

    /// How long it was away in all.
    pub(super) fn total(&self) -> Span {
        self.total
    }
}

fn processor_time() -> Span {
    let used = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Span::from_nanos(used.tv_sec as u64 * 1_000_000_000 + used.tv_nsec as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(us: u64) -> Time {
        Time::ZERO + Span::from_micros(us)
    }

    #[test]
    fn a_thread_is_away_where_time_passes_that_it_does_not_use() {
        let mut stalls = Stalls::default();
        let us = Span::from_micros;
        stalls.note(at(1_000), us(50));
        stalls.note(at(1_100), us(150));
        assert_eq!(stalls.total(), Span::ZERO);
        stalls.note(at(4_100), us(250));
        assert_eq!(stalls.total(), us(2_900));
        stalls.note(at(4_250), us(300));
        assert_eq!(stalls.total(), us(2_900), "too short to note");
        assert_eq!(stalls.since(at(500)), us(2_900));
        assert_eq!(stalls.since(at(3_100)), us(1_000), "the end of it");
        assert_eq!(stalls.since(at(4_100)), Span::ZERO);
    }
}
