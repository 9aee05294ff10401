//! Waiting requests of one model and priority, by deadline.

use std::collections::BTreeSet;
use std::ops::Bound;

use crate::{RequestId, Time};

/// A waiting request: its place in the deadline order. Equal deadlines are served in order of arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Ticket {
    pub(crate) deadline: Time,
    pub(crate) id: RequestId,
}

/// Tickets in deadline order. Every operation costs O(log n).
#[derive(Clone, Debug, Default)]
pub(crate) struct DeadlineQueue {
    tickets: BTreeSet<Ticket>,
}

impl DeadlineQueue {
    /// `false` where the ticket was already there.
    pub(crate) fn insert(&mut self, ticket: Ticket) -> bool {
        self.tickets.insert(ticket)
    }

    /// `false` where the ticket was not there.
    pub(crate) fn remove(&mut self, ticket: Ticket) -> bool {
        self.tickets.remove(&ticket)
    }

    /// The earliest deadline.
    pub(crate) fn first(&self) -> Option<Ticket> {
        self.tickets.first().copied()
    }

    /// The earliest deadline past `after`; `None` stands before all tickets.
    pub(crate) fn first_after(&self, after: Option<Ticket>) -> Option<Ticket> {
        let first = self.first()?;
        match after {
            Some(after) if first <= after => {
                self.tickets.range((Bound::Excluded(after), Bound::Unbounded)).next().copied()
            }
            _ => Some(first),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.tickets.len()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = Ticket> + '_ {
        self.tickets.iter().copied()
    }
}
