//! A few dozen tickets in order.

use super::{Entry, Ticket};

/// A sorted run of entries whose first ones can be taken out in one step.
#[derive(Clone, Debug)]
pub(super) struct Run {
    /// Of fixed capacity; those before `head` have been taken out.
    entries: Vec<Entry>,
    head: usize,
}

impl Run {
    /// Few enough that moving half of them is quick, many enough that their bookkeeping does not count.
    pub(super) const CAPACITY: usize = 32;

    pub(super) fn new() -> Run {
        Run { entries: Vec::with_capacity(Run::CAPACITY), head: 0 }
    }

    #[inline]
    pub(super) fn entries(&self) -> &[Entry] {
        &self.entries[self.head..]
    }

    #[inline]
    pub(super) fn len(&self) -> usize {
        self.entries.len() - self.head
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(super) fn is_full(&self) -> bool {
        self.len() == Run::CAPACITY
    }

    /// Entry number `at`.
    #[inline]
    pub(super) fn get(&self, at: usize) -> Entry {
        self.entries[self.head + at]
    }

    #[inline]
    pub(super) fn first(&self) -> Entry {
        self.get(0)
    }

    #[inline]
    pub(super) fn last(&self) -> Entry {
        self.entries[self.entries.len() - 1]
    }

    /// Where the ticket is, or else where it would be.
    pub(super) fn find(&self, ticket: Ticket) -> Result<usize, usize> {
        self.entries().binary_search_by(|entry| entry.ticket.cmp(&ticket))
    }

    /// Adds an entry behind all others; `false` where there is no room at the end.
    #[inline]
    pub(super) fn append(&mut self, entry: Entry) -> bool {
        let room = self.entries.len() < Run::CAPACITY;
        if room {
            self.entries.push(entry);
        }
        room
    }

    /// Inserts an entry before entry number `at`; there must be room.
    pub(super) fn insert(&mut self, at: usize, entry: Entry) {
        if self.entries.len() < Run::CAPACITY {
            self.entries.insert(self.head + at, entry);
        } else {
            self.entries.copy_within(self.head..self.head + at, self.head - 1);
            self.head -= 1;
            self.entries[self.head + at] = entry;
        }
    }

    pub(super) fn pop_first(&mut self) -> Entry {
        self.head += 1;
        self.entries[self.head - 1]
    }

    /// Takes out the first `count` entries.
    #[inline]
    pub(super) fn skip(&mut self, count: usize) {
        self.head += count;
    }

    pub(super) fn remove(&mut self, at: usize) -> Entry {
        self.entries.remove(self.head + at)
    }

    /// Moves the later half to `behind`, which is empty, and says how many remain.
    pub(super) fn split(&mut self, behind: &mut Run) -> usize {
        let middle = self.head + self.len() / 2;
        behind.entries.extend_from_slice(&self.entries[middle..]);
        self.entries.truncate(middle);
        self.len()
    }

    /// Takes in all entries of the run behind; there must be room.
    pub(super) fn absorb(&mut self, behind: &Run) {
        self.entries.drain(..self.head);
        self.head = 0;
        self.entries.extend_from_slice(behind.entries());
    }

    pub(super) fn clear(&mut self) {
        self.entries.clear();
        self.head = 0;
    }
}
