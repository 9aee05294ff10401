//! The waiting requests of one model at one priority, and what each class of devices has given up of them.

use crate::candidate::Finish;
use crate::queue::{DeadlineQueue, Ticket};
use crate::{Priority, Time};

/// The waiting requests of one model at one priority.
#[derive(Clone, Debug)]
pub(crate) struct Lane {
    pub(crate) priority: Priority,
    queue: DeadlineQueue,
    /// One for each class of devices the model is deployed on, in the model's order.
    views: Vec<View>,
    /// How many requests of this lane the batch that is being composed takes.
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
    /// Tickets past `given_up`.
    alive: usize,
    /// The last ticket of the prefix; never before `given_up`.
    prefix: Option<Ticket>,
    /// Tickets past `prefix`.
    suffix: usize,
}

/// The next batch of a lane, were it alone.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Batch {
    pub(crate) size: u32,
    /// The earliest deadline in it.
    pub(crate) deadline: Time,
    /// When the head will be given up if nothing starts before.
    pub(crate) head_lost_after: Time,
}

impl View {
    /// Takes in a ticket, where `waiting` others wait.
    ///
    /// One due before others that this class has given up is given up with them. But what is no longer there says
    /// nothing about a newcomer: without this, a request due before any that was ever given up would be lost at once.
    fn count(&mut self, ticket: Ticket, waiting: usize) {
        if self.alive == waiting {
            self.given_up = None;
        }
        if self.suffix == self.alive {
            self.prefix = self.given_up;
        }
        self.alive += usize::from(Some(ticket) > self.given_up);
        self.suffix += usize::from(Some(ticket) > self.prefix);
    }

    fn discount(&mut self, ticket: Ticket) {
        self.alive -= usize::from(Some(ticket) > self.given_up);
        self.suffix -= usize::from(Some(ticket) > self.prefix);
    }

    fn move_to_prefix(&mut self, head: Ticket) {
        self.prefix = Some(head);
        self.suffix -= 1;
    }

    fn give_up(&mut self, head: Ticket) {
        if Some(head) > self.prefix {
            self.move_to_prefix(head);
        }
        self.given_up = Some(head);
        self.alive -= 1;
    }
}

impl Lane {
    pub(crate) fn new(priority: Priority, classes: usize) -> Lane {
        Lane { priority, queue: DeadlineQueue::default(), views: vec![View::default(); classes], share: 0 }
    }

    pub(crate) fn len(&self) -> usize {
        self.queue.len()
    }

    /// `false` where the ticket was already there.
    pub(crate) fn insert(&mut self, ticket: Ticket) -> bool {
        let waiting = self.queue.len();
        let inserted = self.queue.insert(ticket);
        if inserted {
            self.views.iter_mut().for_each(|view| view.count(ticket, waiting));
        }
        inserted
    }

    /// `false` where the ticket was not there.
    pub(crate) fn remove(&mut self, ticket: Ticket) -> bool {
        let removed = self.queue.remove(ticket);
        if removed {
            self.views.iter_mut().for_each(|view| view.discount(ticket));
        }
        removed
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = Ticket> + '_ {
        self.queue.iter()
    }

    /// Forgets what each class gave up, after the model's classes or profiles changed.
    pub(crate) fn reset_views(&mut self, classes: usize) {
        let waiting = self.queue.len();
        let fresh = View { alive: waiting, suffix: waiting, ..View::default() };
        self.views.clear();
        self.views.resize(classes, fresh);
    }

    /// Gives up heads on class `class` for the sake of a batch of `target`, and says what would run then.
    ///
    /// Symphony's candidate formation; `None` where nothing can run on this class.
    pub(crate) fn form(&mut self, class: usize, finish: &Finish<'_>, target: u32) -> Option<Batch> {
        let Lane { queue, views, .. } = self;
        let view = &mut views[class];
        // With a target of 1 nothing is given up for others, so the prefix would change nothing.
        let goal = if target > 1 {
            while let Some(head) = queue.first_after(view.prefix) {
                if head.deadline >= finish.at(view.suffix as u32) {
                    break;
                }
                view.move_to_prefix(head);
            }
            target.min(view.suffix as u32).max(1)
        } else {
            1
        };
        let goal_finish = finish.at(goal);
        let head = loop {
            let head = queue.first_after(view.given_up)?;
            if head.deadline >= goal_finish {
                break head;
            }
            view.give_up(head);
        };
        let size = finish.largest_by(head.deadline).min(view.alive as u32);
        let head_lost_after = finish.now + head.deadline.since(goal_finish);
        Some(Batch { size, deadline: head.deadline, head_lost_after })
    }

    /// How many requests class `class` has not given up.
    pub(crate) fn alive(&self, class: usize) -> u32 {
        self.views[class].alive as u32
    }

    /// Takes out the earliest request that class `class` has not given up.
    pub(crate) fn take(&mut self, class: usize) -> Option<Ticket> {
        let ticket = self.queue.first_after(self.views[class].given_up)?;
        self.remove(ticket);
        Some(ticket)
    }

    /// Takes out the earliest request if every class for which `counts` holds has given it up.
    pub(crate) fn take_lost(&mut self, counts: impl Fn(usize) -> bool) -> Option<Ticket> {
        let head = self.queue.first()?;
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
