//! How a thread sleeps until there is something to do.

#[cfg(loom)]
use loom::thread::{self, Thread};
#[cfg(not(loom))]
use std::thread::{self, Thread};

use std::sync::OnceLock;
#[cfg(not(loom))]
use std::time::Duration;

use crate::sync::{AtomicBool, Ordering, fence};

/// What wakes one thread, its owner. The owner announces that it is about to sleep, looks once more whether there is
/// something to do, and only then sleeps; whoever gives it something to do rings afterwards.
#[derive(Debug, Default)]
pub(crate) struct Bell {
    owner: OnceLock<Thread>,
    about_to_sleep: AtomicBool,
}

impl Bell {
    /// Makes the calling thread the owner.
    pub(crate) fn own(&self) {
        // Owned twice would be a thread started twice.
        let _ = self.owner.set(thread::current());
    }

    /// Wakes the owner, if it sleeps or is about to. What was written before this, the owner sees when it looks again.
    #[inline]
    pub(crate) fn ring(&self) {
        // Together with the one in `announce`: either the owner sees what was written, or this sees the announcement.
        fence(Ordering::SeqCst);
        if self.about_to_sleep.load(Ordering::Relaxed) {
            self.wake();
        }
    }

    #[cold]
    fn wake(&self) {
        if self.about_to_sleep.swap(false, Ordering::AcqRel)
            && let Some(owner) = self.owner.get()
        {
            owner.unpark();
        }
    }

    /// The owner is about to sleep, and must look once more for something to do before it does.
    pub(crate) fn announce(&self) {
        self.about_to_sleep.store(true, Ordering::Relaxed);
        fence(Ordering::SeqCst);
    }

    /// The owner found something to do after all.
    pub(crate) fn stay(&self) {
        self.about_to_sleep.store(false, Ordering::Relaxed);
    }

    /// The owner sleeps until somebody rings, or `at_most` has passed.
    #[cfg(not(loom))]
    pub(crate) fn sleep(&self, at_most: Duration) {
        if self.about_to_sleep.load(Ordering::Acquire) {
            thread::park_timeout(at_most);
        }
        self.stay();
    }

    /// The owner sleeps until somebody rings.
    #[cfg(loom)]
    pub(crate) fn sleep(&self) {
        while self.about_to_sleep.load(Ordering::Acquire) {
            thread::park();
        }
    }
}

#[cfg(test)]
mod tests;
