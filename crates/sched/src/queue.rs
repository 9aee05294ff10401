//! Waiting requests of one model and priority, by deadline.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::ops::Bound;

use crate::{RequestId, Time};

/// A waiting request: its place in the deadline order. Equal deadlines are served in order of arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Ticket {
    pub(crate) deadline: Time,
    pub(crate) id: RequestId,
}

/// Tickets in deadline order, each with its rows. Every operation costs O(log n).
#[derive(Clone, Debug, Default)]
pub(crate) struct DeadlineQueue {
    tickets: BTreeMap<Ticket, u32>,
    /// The rows of all.
    rows: u64,
}

impl DeadlineQueue {
    /// `false` where the ticket was already there.
    pub(crate) fn insert(&mut self, ticket: Ticket, rows: u32) -> bool {
        match self.tickets.entry(ticket) {
            Entry::Vacant(place) => {
                place.insert(rows);
                self.rows += u64::from(rows);
                true
            }
            Entry::Occupied(_) => false,
        }
    }

    /// The rows that the ticket had; `None` where it was not there.
    pub(crate) fn remove(&mut self, ticket: Ticket) -> Option<u32> {
        let rows = self.tickets.remove(&ticket)?;
        self.rows -= u64::from(rows);
        Some(rows)
    }

    /// The earliest deadline.
    pub(crate) fn first(&self) -> Option<(Ticket, u32)> {
        self.tickets.first_key_value().map(|(&ticket, &rows)| (ticket, rows))
    }

    /// The earliest deadline past `after`; `None` stands before all tickets.
    pub(crate) fn first_after(&self, after: Option<Ticket>) -> Option<(Ticket, u32)> {
        let first = self.first()?;
        match after {
            Some(after) if first.0 <= after => self.iter_after(Some(after)).next(),
            _ => Some(first),
        }
    }

    /// The last ticket before `before`.
    pub(crate) fn last_before(&self, before: Ticket) -> Option<Ticket> {
        self.tickets.range(..before).next_back().map(|(&ticket, _)| ticket)
    }

    pub(crate) fn len(&self) -> usize {
        self.tickets.len()
    }

    /// The rows of all tickets.
    pub(crate) fn rows(&self) -> u64 {
        self.rows
    }

    /// How many rows the longest run of tickets past `after` has that fits into `limit`; `there` rows are past it.
    pub(crate) fn fit(&self, after: Option<Ticket>, there: u64, limit: u32) -> u32 {
        if there <= u64::from(limit) {
            return there as u32;
        }
        // Where every ticket has one row, there is nothing to walk over.
        if self.rows == self.tickets.len() as u64 {
            return limit;
        }
        let mut fit = 0;
        for (_, rows) in self.iter_after(after) {
            if rows > limit - fit {
                break;
            }
            fit += rows;
        }
        fit
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (Ticket, u32)> + '_ {
        self.iter_after(None)
    }

    pub(crate) fn iter_after(&self, after: Option<Ticket>) -> impl Iterator<Item = (Ticket, u32)> + '_ {
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        self.tickets.range((from, Bound::Unbounded)).map(|(&ticket, &rows)| (ticket, rows))
    }
}
