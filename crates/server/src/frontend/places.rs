//! Places in the server, on their way between those who read bytes and those who make sense of them.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::admission::Permit;

/// The places of messages, in their order. As an extension of a request: of those that have come in whole. As an
/// extension of a response: of answers that its body is about to be made of.
#[derive(Clone, Debug, Default)]
pub(super) struct Places(Arc<Mutex<VecDeque<Permit>>>);

impl Places {
    /// The place of one message.
    pub(super) fn one(place: Permit) -> Places {
        let places = Places::default();
        places.add(place);
        places
    }

    /// One more, behind the others.
    pub(super) fn add(&self, place: Permit) {
        self.lock().push_back(place);
    }

    /// The first one.
    pub(super) fn next(&self) -> Option<Permit> {
        self.lock().pop_front()
    }

    /// All of them.
    pub(super) fn take(&self) -> Vec<Permit> {
        self.lock().drain(..).collect()
    }

    /// Lets each hold so many bytes, whether there is room or not.
    pub(super) fn insist(&self, bytes: u64) {
        self.lock().iter().for_each(|place| place.insist(bytes));
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Permit>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
