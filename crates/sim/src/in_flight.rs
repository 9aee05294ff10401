//! Requests that have arrived and not left.

use std::collections::VecDeque;

use downbeat_sched::{RequestId, Time};

/// What the simulator remembers of a request until it leaves.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Traveller {
    pub(crate) model: u32,
    pub(crate) arrived: Time,
}

/// Requests that have arrived and not left, by their number.
///
/// Numbers are handed out in order and requests leave within about an SLO, so this is a window that slides over the
/// numbers: its memory follows the requests in flight, not the length of the run.
#[derive(Clone, Debug, Default)]
pub(crate) struct InFlight {
    first: u64,
    window: VecDeque<Option<Traveller>>,
    count: usize,
}

impl InFlight {
    pub(crate) fn enter(&mut self, traveller: Traveller) -> RequestId {
        let id = RequestId(self.first + self.window.len() as u64);
        self.window.push_back(Some(traveller));
        self.count += 1;
        id
    }

    /// Forgets a request and returns what was known of it; `None` where it had already left.
    pub(crate) fn leave(&mut self, id: RequestId) -> Option<Traveller> {
        let index = id.0.checked_sub(self.first)? as usize;
        let traveller = self.window.get_mut(index)?.take()?;
        self.count -= 1;
        while let Some(None) = self.window.front() {
            self.window.pop_front();
            self.first += 1;
        }
        Some(traveller)
    }

    /// Requests that ever entered.
    pub(crate) fn entered(&self) -> u64 {
        self.first + self.window.len() as u64
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Those that have not left.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Traveller> + '_ {
        self.window.iter().flatten().copied()
    }
}
