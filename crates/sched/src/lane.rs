//! The waiting requests of one model at one priority, and what each class of devices has given up of them.

use crate::candidate::{Finish, Whole};
use crate::queue::{DeadlineQueue, Entry, Ticket};
use crate::{Priority, Time};

/// The waiting requests of one model at one priority.
#[derive(Clone, Debug)]
pub(crate) struct Lane {
    pub(crate) priority: Priority,
    queue: DeadlineQueue,
    /// One for each class of devices the model is deployed on, in the model's order.
    views: Vec<View>,
    /// How many rows of this lane the batch that is being composed takes.
    pub(crate) share: u32,
}

/// How one class of devices sees a lane, in deadline order:
///
/// ```text
///   ... given up | prefix | suffix ...
/// ```
///
/// *Given up*: cannot run on this class any more; dropped once no class can. *Suffix*: the requests that would form the
/// next batch. *Prefix*: heads already given up for the sake of the larger batch behind them, not yet dropped; they run
/// if there is room for them after all.
#[derive(Clone, Debug, Default)]
struct View {
    /// The last ticket given up.
    given_up: Option<Ticket>,
    /// The most rows of a request that was given up for having so many.
    widest: u32,
    /// Rows past `given_up`.
    alive: u64,
    /// The last ticket of the prefix; never before `given_up`.
    prefix: Option<Ticket>,
    /// Rows past `prefix`.
    suffix: u64,
}

/// The next batch of a lane, were it alone.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Batch {
    pub(crate) rows: u32,
    /// The rows that there is both time and something waiting for: more than `rows` where the next request does not
    /// fit.
    pub(crate) reach: u32,
    /// Whether something is left waiting that nothing may overtake.
    pub(crate) blocked: bool,
    /// The earliest deadline in it.
    pub(crate) deadline: Time,
    /// When it is held back no more, were there time or not.
    pub(crate) held_until: Time,
    /// When the head will be given up if nothing starts before.
    pub(crate) head_lost_after: Time,
}

impl View {
    /// Takes in a ticket that has just come into `queue`.
    ///
    /// One due before others that this class has given up is given up with them. But what is no longer there says
    /// nothing about a newcomer: without this, a request due before any that was ever given up would be lost at once.
    /// Nor does a request that was given up for its many rows about one with fewer.
    #[inline]
    fn count(&mut self, ticket: Ticket, rows: u32, queue: &DeadlineQueue) {
        let before = queue.rows() - u64::from(rows);
        if self.alive == before {
            self.given_up = None;
            self.widest = 0;
            if self.suffix == before {
                self.prefix = None;
                (self.alive, self.suffix) = (queue.rows(), queue.rows());
                return;
            }
        } else if rows < self.widest && Some(ticket) <= self.given_up {
            self.judge_again_from(ticket, queue);
        }
        if self.suffix == self.alive {
            self.prefix = self.given_up;
        }
        self.alive += rows_if(rows, Some(ticket) > self.given_up);
        self.suffix += rows_if(rows, Some(ticket) > self.prefix);
    }

    /// Whether the class has given up nothing that waits, for whatever reason.
    #[inline]
    fn has_all(&self, queue: &DeadlineQueue) -> bool {
        self.alive == queue.rows() && self.suffix == queue.rows()
    }

    /// Takes back that the tickets past `ticket` were given up. Those that still must be will be as soon as they are
    /// the head.
    fn judge_again_from(&mut self, ticket: Ticket, queue: &DeadlineQueue) {
        let given_up = queue.iter_after(Some(ticket)).take_while(|other| Some(other.ticket) <= self.given_up);
        self.alive += given_up.map(|entry| u64::from(entry.rows)).sum::<u64>();
        self.given_up = queue.last_before(ticket);
    }

    #[inline]
    fn discount(&mut self, ticket: Ticket, rows: u32) {
        self.alive -= rows_if(rows, Some(ticket) > self.given_up);
        self.suffix -= rows_if(rows, Some(ticket) > self.prefix);
    }

    fn move_to_prefix(&mut self, head: Ticket, rows: u32) {
        self.prefix = Some(head);
        self.suffix -= u64::from(rows);
    }

    fn give_up(&mut self, head: Ticket, rows: u32) {
        if Some(head) > self.prefix {
            self.move_to_prefix(head, rows);
        }
        self.given_up = Some(head);
        self.alive -= u64::from(rows);
    }
}

fn rows_if(rows: u32, counts: bool) -> u64 {
    u64::from(rows) * u64::from(counts)
}

/// As many rows as can be told from more: no batch is larger than a few thousand.
fn at_most_u32(rows: u64) -> u32 {
    rows.min(u64::from(u32::MAX)) as u32
}

impl Lane {
    pub(crate) fn new(priority: Priority, classes: usize) -> Lane {
        Lane { priority, queue: DeadlineQueue::default(), views: vec![View::default(); classes], share: 0 }
    }

    /// How many requests wait.
    pub(crate) fn len(&self) -> usize {
        self.queue.len()
    }

    /// `false` where the ticket was already there.
    #[inline(always)]
    pub(crate) fn insert(&mut self, entry: Entry) -> bool {
        let Lane { queue, views, .. } = self;
        let Entry { ticket, rows, .. } = entry;
        let inserted = queue.insert(entry);
        if inserted {
            views.iter_mut().for_each(|view| view.count(ticket, rows, queue));
        }
        inserted
    }

    /// The rows that the ticket had; `None` where it was not there.
    pub(crate) fn remove(&mut self, ticket: Ticket) -> Option<u32> {
        let rows = self.queue.remove(ticket)?;
        self.views.iter_mut().for_each(|view| view.discount(ticket, rows));
        Some(rows)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = Entry> + '_ {
        self.queue.iter()
    }

    /// Forgets what each class gave up, after the model's classes or profiles changed.
    pub(crate) fn reset_views(&mut self, classes: usize) {
        let waiting = self.queue.rows();
        let fresh = View { alive: waiting, suffix: waiting, ..View::default() };
        self.views.clear();
        self.views.resize(classes, fresh);
    }

    /// All that waits, where the model has one class only and that has given up nothing.
    #[inline]
    pub(crate) fn whole(&self) -> Option<Whole> {
        let Lane { queue, views, priority, .. } = self;
        let [view] = &views[..] else { return None };
        let plain = view.has_all(queue) && queue.len() as u64 == queue.rows();
        let head = queue.first().filter(|_| plain)?;
        Some(Whole {
            rows: at_most_u32(queue.rows()),
            deadline: head.ticket.deadline,
            held_until: head.held_until(),
            priority: *priority,
        })
    }

    /// Gives up heads on class `class` for the sake of a batch of `target` rows, and says what would run then.
    ///
    /// Symphony's candidate formation; `None` where nothing can run on this class.
    pub(crate) fn form(&mut self, class: usize, finish: &Finish<'_>, target: u32) -> Option<Batch> {
        let Lane { queue, views, .. } = self;
        let view = &mut views[class];
        // With a target of 1 nothing is given up for others, so the prefix would change nothing.
        let goal = if target > 1 {
            while let Some(Entry { ticket: head, rows, .. }) = queue.first_after(view.prefix) {
                if head.deadline >= finish.at(at_most_u32(view.suffix)) && finish.takes(rows) {
                    break;
                }
                view.move_to_prefix(head, rows);
            }
            queue.fit(view.prefix, view.suffix, target).max(1)
        } else {
            1
        };
        let goal_finish = finish.at(goal);
        let (head, head_finish) = loop {
            let entry = queue.first_after(view.given_up)?;
            let Entry { ticket: head, rows, .. } = entry;
            // A head runs whole, or not at all.
            let head_finish = if rows <= goal { goal_finish } else { finish.whole(rows) };
            if head.deadline >= head_finish {
                break (entry, head_finish);
            }
            if head.deadline >= goal_finish {
                view.widest = view.widest.max(rows);
            }
            view.give_up(head, rows);
        };
        let deadline = head.ticket.deadline;
        let reach = finish.largest_by(deadline, at_most_u32(view.alive));
        let rows = queue.fit(view.given_up, view.alive, reach);
        Some(Batch {
            rows,
            reach,
            blocked: u64::from(rows) < view.alive,
            deadline,
            held_until: head.held_until(),
            head_lost_after: finish.now + deadline.since(head_finish),
        })
    }

    /// How many rows class `class` has not given up.
    pub(crate) fn alive(&self, class: usize) -> u32 {
        at_most_u32(self.views[class].alive)
    }

    /// How many rows of what class `class` has not given up fit into `room`, in deadline order.
    pub(crate) fn fit(&self, class: usize, room: u32) -> u32 {
        let view = &self.views[class];
        self.queue.fit(view.given_up, view.alive, room)
    }

    /// Takes out the earliest requests that class `class` has not given up, of as many rows as its share.
    pub(crate) fn take_share(&mut self, class: usize, mut each: impl FnMut(Ticket, u32)) {
        let Lane { queue, views, share, .. } = self;
        if let [view] = &mut views[..]
            && view.alive == queue.rows()
        {
            let View { prefix, suffix, .. } = view;
            queue.pop_rows(*share, |ticket, rows| {
                *suffix -= rows_if(rows, Some(ticket) > *prefix);
                each(ticket, rows);
            });
            view.alive = queue.rows();
            return;
        }
        let mut left = *share;
        while left > 0
            && let Some(Entry { ticket, rows, .. }) = queue.pop_after(views[class].given_up)
        {
            views.iter_mut().for_each(|view| view.discount(ticket, rows));
            left = left.saturating_sub(rows);
            each(ticket, rows);
        }
    }

    /// Takes out the earliest request if every class for which `counts` holds has given it up.
    pub(crate) fn take_lost(&mut self, counts: impl Fn(usize) -> bool) -> Option<Ticket> {
        let head = self.queue.first()?.ticket;
        let lost = |(class, view): (usize, &View)| !counts(class) || view.given_up >= Some(head);
        if self.views.iter().enumerate().all(lost) {
            self.remove(head);
            Some(head)
        } else {
            None
        }
    }
}

#[cfg(test)]
mod tests;
