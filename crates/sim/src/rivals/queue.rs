//! Requests of one model that wait, earliest deadline first.

use std::collections::VecDeque;

use downbeat_sched::{Action, ModelId, Outcome, Request, RequestId, Time};

use crate::Outbox;

/// A deadline-ordered queue. Requests nearly always arrive in that order, so it is a ring, not a tree.
#[derive(Clone, Debug, Default)]
pub(super) struct DeadlineQueue {
    requests: VecDeque<Request>,
}

impl DeadlineQueue {
    pub(super) fn len(&self) -> u32 {
        self.requests.len() as u32
    }

    pub(super) fn is_empty(&self) -> bool {
        self.requests.is_empty()
    }

    pub(super) fn head(&self) -> Option<&Request> {
        self.requests.front()
    }

    pub(super) fn get(&self, place: u32) -> Option<&Request> {
        self.requests.get(place as usize)
    }

    pub(super) fn insert(&mut self, request: Request) {
        let key = |waiting: &Request| (waiting.deadline, waiting.id);
        if self.requests.back().is_none_or(|last| key(last) <= key(&request)) {
            self.requests.push_back(request);
        } else {
            let place = self.requests.partition_point(|waiting| key(waiting) < key(&request));
            self.requests.insert(place, request);
        }
    }

    /// Drops every request that is due before `limit`.
    pub(super) fn drop_due_before(&mut self, limit: Time, out: &mut Outbox) {
        while self.head().is_some_and(|head| head.deadline < limit) {
            self.drop_head(out);
        }
    }

    /// Drops the request that is due first.
    pub(super) fn drop_head(&mut self, out: &mut Outbox) {
        if let Some(head) = self.requests.pop_front() {
            expire(head.model, head.id, out);
        }
    }

    /// How many requests are due before `limit`.
    pub(super) fn due_before(&self, limit: Time) -> u32 {
        if self.head().is_none_or(|head| head.deadline >= limit) {
            return 0;
        }
        self.requests.partition_point(|waiting| waiting.deadline < limit) as u32
    }

    /// Takes out `count` requests after the first `skipped`.
    pub(super) fn take(&mut self, skipped: u32, count: u32) -> impl ExactSizeIterator<Item = Request> {
        self.requests.drain(skipped as usize..(skipped + count) as usize)
    }
}

/// Answers a request that will not run.
pub(super) fn expire(model: ModelId, request: RequestId, out: &mut Outbox) {
    out.actions.push(Action::Answer { model, request, outcome: Outcome::Expired });
}
