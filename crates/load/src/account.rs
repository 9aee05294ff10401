//! The account of a run: what became of every request, how long it took, how late the client was.

mod tally;
#[cfg(test)]
mod tests;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

pub(crate) use tally::{Slice, State, Tally};

use crate::outcome::Outcome;
use crate::plan::Due;
use crate::wire::{Answer, Timing};

/// What becomes of a request, as whoever sent it knows it.
#[derive(Debug)]
pub(crate) enum Ending {
    /// The server answered.
    Answered(Answer),
    /// It did not, and why.
    Lost(Outcome, String),
}

/// Counts every request exactly once. Its memory does not grow with the run.
///
/// A request is counted when it is due; [`Ticket`] sees to it that something becomes of it. Requests of the warm-up are
/// followed, so that it is known when all have been answered, but not counted.
#[derive(Debug)]
pub(crate) struct Account {
    /// From here on requests count.
    from: Duration,
    slos: Vec<Option<Duration>>,
    /// Requests on their way, those of the warm-up too.
    waiting: AtomicU64,
    state: Mutex<State>,
}

impl Account {
    /// An account of requests that are due from `from` to `until`, for models with these SLOs.
    pub(crate) fn new(slos: Vec<Option<Duration>>, from: Duration, until: Duration) -> Arc<Account> {
        let state = Mutex::new(State::new(slos.len(), until.saturating_sub(from)));
        Arc::new(Account { from, slos, waiting: AtomicU64::new(0), state })
    }

    /// A request is due.
    pub(crate) fn issue(self: &Arc<Account>, due: Due) -> Ticket {
        self.waiting.fetch_add(1, Ordering::Relaxed);
        if self.counts(due) {
            self.lock().due(due.model, due.at - self.from);
        }
        Ticket { account: Arc::clone(self), due, sent: None, is_open: true }
    }

    /// Requests on their way.
    pub(crate) fn waiting(&self) -> u64 {
        self.waiting.load(Ordering::Acquire)
    }

    /// Looks at what has been counted so far.
    pub(crate) fn look<T>(&self, at: impl FnOnce(&State) -> T) -> T {
        at(&self.lock())
    }

    /// Ends the account: what has not been answered never was, and what comes later changes nothing.
    pub(crate) fn close(&self) -> State {
        let mut state = self.lock();
        state.close();
        std::mem::replace(&mut *state, State::closed())
    }

    fn counts(&self, due: Due) -> bool {
        due.at >= self.from
    }

    /// The state is whole between any two of its steps, also where somebody panicked.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn settle(&self, due: Due, sent: Option<Duration>, now: Duration, ending: Ending) {
        if self.counts(due) {
            self.enter(due, sent, now, ending);
        }
        // Last: whoever sees that nobody waits may close the account.
        self.waiting.fetch_sub(1, Ordering::Release);
    }

    fn enter(&self, due: Due, sent: Option<Duration>, now: Duration, ending: Ending) {
        // From when it should have been sent: a client that is late must not make the server look better.
        let latency = now.saturating_sub(due.at);
        let in_time = self.slos[due.model].is_none_or(|slo| latency <= slo);
        let at = due.at - self.from;
        let mut state = self.lock();
        match ending {
            Ending::Answered(Answer::Result(timing)) => {
                let outcome = if in_time { Outcome::Ok } else { Outcome::Late };
                state.answered(due.model, at, outcome, latency);
                if let (Some(Timing { queue, compute }), Some(sent)) = (timing, sent) {
                    state.explained(queue, compute, now.saturating_sub(sent));
                }
            }
            Ending::Answered(Answer::Refused(reason, message)) => {
                state.lost(due.model, Outcome::Refused(reason), message);
            }
            Ending::Lost(outcome, message) => state.lost(due.model, outcome, message),
        }
    }
}

/// A request that is due, until it is known what became of it. Dropped without that, it was never answered.
#[derive(Debug)]
pub(crate) struct Ticket {
    account: Arc<Account>,
    due: Due,
    sent: Option<Duration>,
    is_open: bool,
}

impl Ticket {
    /// The request was handed to a connection.
    pub(crate) fn sent(&mut self, now: Duration) {
        self.sent = Some(now);
        if self.account.counts(self.due) {
            self.account.lock().lag(now.saturating_sub(self.due.at));
        }
    }

    /// It is known what became of the request.
    pub(crate) fn settle(mut self, now: Duration, ending: Ending) {
        self.is_open = false;
        self.account.settle(self.due, self.sent, now, ending);
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        if self.is_open {
            let ending = Ending::Lost(Outcome::Unanswered, "the client gave it up".to_owned());
            self.account.settle(self.due, self.sent, self.due.at, ending);
        }
    }
}
