//! Waiting requests of one model and priority, by deadline.

mod run;

#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use downbeat_profile::Span;

use crate::{RequestId, Time};

use run::Run;

/// A waiting request: its place in the deadline order. Equal deadlines are served in order of arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Ticket {
    pub(crate) deadline: Time,
    pub(crate) id: RequestId,
}

/// A waiting request: its ticket, and what else must be known of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) ticket: Ticket,
    pub(crate) rows: u32,
    /// So many microseconds before its deadline a batch that it leads is held back no more.
    pub(crate) leeway_us: u32,
}

impl Entry {
    /// When a batch that it leads is held back no more.
    #[inline]
    pub(crate) fn held_until(&self) -> Time {
        self.ticket.deadline - Span::from_micros(self.leeway_us.into())
    }
}

/// Entries in the order of their tickets.
///
/// Kept in runs of a few dozen. Deadlines of one model mostly arrive in order and leave in order, so that the common
/// cases are an append to the last run and a step in the first; anything else costs O(log n) and the move of half a
/// run.
#[derive(Clone, Debug, Default)]
pub(crate) struct DeadlineQueue {
    /// In order; none is empty.
    runs: VecDeque<Run>,
    /// Emptied runs, kept to be filled again: at most one more than are in use.
    spare: Vec<Run>,
    len: usize,
    /// The rows of all.
    rows: u64,
}

impl DeadlineQueue {
    /// `false` where the ticket was already there.
    #[inline]
    pub(crate) fn insert(&mut self, entry: Entry) -> bool {
        match self.runs.back_mut() {
            Some(last) if last.last().ticket < entry.ticket => {
                if !last.append(entry) {
                    self.begin_run(entry);
                }
            }
            None => self.begin_run(entry),
            Some(_) => {
                if !self.insert_among(entry) {
                    return false;
                }
            }
        }
        self.len += 1;
        self.rows += u64::from(entry.rows);
        true
    }

    fn begin_run(&mut self, entry: Entry) {
        let mut run = self.spare.pop().unwrap_or_else(Run::new);
        run.append(entry);
        self.runs.push_back(run);
    }

    /// Inserts an entry that does not go behind all others.
    #[cold]
    fn insert_among(&mut self, entry: Entry) -> bool {
        let mut index = self.run_of(entry.ticket);
        let Err(mut at) = self.runs[index].find(entry.ticket) else { return false };
        if self.runs[index].is_full() {
            let mut behind = self.spare.pop().unwrap_or_else(Run::new);
            let kept = self.runs[index].split(&mut behind);
            self.runs.insert(index + 1, behind);
            if at > kept {
                (index, at) = (index + 1, at - kept);
            }
        }
        self.runs[index].insert(at, entry);
        true
    }

    /// The rows that the ticket had; `None` where it was not there.
    pub(crate) fn remove(&mut self, ticket: Ticket) -> Option<u32> {
        if self.first()?.ticket == ticket {
            return self.pop_after(None).map(|entry| entry.rows);
        }
        if self.runs.back()?.last().ticket < ticket {
            return None;
        }
        let index = self.run_of(ticket);
        let at = self.runs[index].find(ticket).ok()?;
        Some(self.take_out(index, at).rows)
    }

    /// The earliest deadline.
    #[inline]
    pub(crate) fn first(&self) -> Option<Entry> {
        self.runs.front().map(Run::first)
    }

    /// The earliest deadline past `after`; `None` stands before all tickets.
    #[inline]
    pub(crate) fn first_after(&self, after: Option<Ticket>) -> Option<Entry> {
        let first = self.first()?;
        match after {
            Some(after) if first.ticket <= after => {
                self.place_after(after).map(|(run, at)| self.runs[run].get(at))
            }
            _ => Some(first),
        }
    }

    /// Takes out the earliest deadline past `after`.
    #[inline]
    pub(crate) fn pop_after(&mut self, after: Option<Ticket>) -> Option<Entry> {
        let first = self.runs.front_mut()?;
        match after {
            Some(after) if first.first().ticket <= after => {
                let (run, at) = self.place_after(after)?;
                Some(self.take_out(run, at))
            }
            _ => {
                let entry = first.pop_first();
                if first.is_empty() {
                    self.discard(0);
                }
                self.len -= 1;
                self.rows -= u64::from(entry.rows);
                Some(entry)
            }
        }
    }

    /// Takes out the earliest deadlines, until they have `rows`.
    #[inline]
    pub(crate) fn pop_rows(&mut self, rows: u32, mut each: impl FnMut(Ticket, u32)) {
        let mut left = rows;
        while left > 0
            && let Some(first) = self.runs.front_mut()
        {
            let mut count = 0;
            for &Entry { ticket, rows, .. } in first.entries() {
                each(ticket, rows);
                count += 1;
                self.rows -= u64::from(rows);
                left = left.saturating_sub(rows);
                if left == 0 {
                    break;
                }
            }
            self.len -= count;
            first.skip(count);
            if first.is_empty() {
                self.discard(0);
            }
        }
    }

    /// The last ticket before `before`.
    pub(crate) fn last_before(&self, before: Ticket) -> Option<Ticket> {
        let index = self.runs.partition_point(|run| run.last().ticket < before);
        let within = self.runs.get(index).and_then(|run| {
            let at = run.find(before).unwrap_or_else(|at| at);
            at.checked_sub(1).map(|at| run.get(at).ticket)
        });
        within.or_else(|| Some(self.runs.get(index.checked_sub(1)?)?.last().ticket))
    }

    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// The rows of all tickets.
    #[inline]
    pub(crate) fn rows(&self) -> u64 {
        self.rows
    }

    /// How many rows the longest run of tickets past `after` has that fits into `limit`; `there` rows are past it.
    pub(crate) fn fit(&self, after: Option<Ticket>, there: u64, limit: u32) -> u32 {
        if there <= u64::from(limit) {
            return there as u32;
        }
        // Where every ticket has one row, there is nothing to walk over.
        if self.rows == self.len as u64 {
            return limit;
        }
        let mut fit = 0;
        for Entry { rows, .. } in self.iter_after(after) {
            if rows > limit - fit {
                break;
            }
            fit += rows;
        }
        fit
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = Entry> + '_ {
        self.iter_after(None)
    }

    pub(crate) fn iter_after(&self, after: Option<Ticket>) -> impl Iterator<Item = Entry> + '_ {
        let place = match after {
            None => Some((0, 0)),
            Some(after) => self.place_after(after),
        };
        let (run, at) = place.unwrap_or((self.runs.len(), 0));
        self.runs.iter().skip(run).flat_map(Run::entries).skip(at).copied()
    }

    /// The run that has the ticket, or would have. There is one behind it.
    fn run_of(&self, ticket: Ticket) -> usize {
        self.runs.partition_point(|run| run.last().ticket < ticket)
    }

    /// Where the first ticket past `after` is: its run, and its place in that.
    fn place_after(&self, after: Ticket) -> Option<(usize, usize)> {
        let index = self.runs.partition_point(|run| run.last().ticket <= after);
        let run = self.runs.get(index)?;
        Some((index, run.find(after).map_or_else(|at| at, |at| at + 1)))
    }

    fn take_out(&mut self, index: usize, at: usize) -> Entry {
        let entry = self.runs[index].remove(at);
        self.len -= 1;
        self.rows -= u64::from(entry.rows);
        if self.runs[index].is_empty() {
            self.discard(index);
        } else if index + 1 < self.runs.len() {
            // Thinned out by cancellations, runs are joined: their memory follows what waits.
            let [front, back] = [index, index + 1].map(|index| self.runs[index].len());
            if front + back <= Run::CAPACITY * 3 / 4
                && let Some(run) = self.runs.remove(index + 1)
            {
                self.runs[index].absorb(&run);
                self.keep(run);
            }
        }
        entry
    }

    fn discard(&mut self, index: usize) {
        if let Some(run) = self.runs.remove(index) {
            self.keep(run);
        }
    }

    fn keep(&mut self, mut run: Run) {
        run.clear();
        self.spare.push(run);
        // As many as are in use and one: a queue that gets shorter gives its memory back as it does.
        self.spare.truncate(self.runs.len() + 1);
    }
}
