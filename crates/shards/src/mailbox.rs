//! Latest-wins mailboxes, one for each model.
//!
//! A model's shard overwrites what is in the mailbox as often as it likes; the matchmaker reads the latest. A mailbox
//! that has something new is put on a dirty list, once, however often it is overwritten: so the matchmaker's work
//! follows what it can read, not what is written, and models without news cost it nothing.
//!
//! A mailbox is a sequence lock over words that are atomics. The writer never waits. The reader never waits either:
//! where it finds the writer in the middle, it leaves, because the writer will put the mailbox on the dirty list
//! afterwards.

use crate::sync::{AtomicBool, AtomicU64, Ordering, fence};

/// A mailbox of up to `N` words.
#[derive(Debug)]
#[repr(align(64))]
pub(crate) struct Mailbox<const N: usize> {
    /// Odd while the words are being written.
    version: AtomicU64,
    /// Whether it is on the dirty list.
    dirty: AtomicBool,
    words: [AtomicU64; N],
}

impl<const N: usize> Default for Mailbox<N> {
    fn default() -> Self {
        Mailbox {
            version: AtomicU64::new(0),
            dirty: AtomicBool::new(false),
            words: std::array::from_fn(|_| AtomicU64::new(0)),
        }
    }
}

impl<const N: usize> Mailbox<N> {
    /// Overwrites the first words. `true` where the mailbox must be put on the dirty list now. To be called by one
    /// thread at a time.
    #[must_use]
    #[inline]
    pub(crate) fn write(&self, words: &[u64]) -> bool {
        let version = self.version.load(Ordering::Relaxed);
        self.version.store(version.wrapping_add(1), Ordering::Relaxed);
        // Nobody who sees one of the new words takes the old version for current.
        fence(Ordering::Release);
        for (word, value) in self.words.iter().zip(words) {
            word.store(*value, Ordering::Relaxed);
        }
        self.version.store(version.wrapping_add(2), Ordering::Release);
        // Either this sees that the reader has cleared the flag, or the reader, which clears it first, sees the words.
        !self.dirty.swap(true, Ordering::AcqRel)
    }

    /// Takes it off the dirty list and reads the first words, as many as `words` has; `false` where the writer is in
    /// the middle of writing: then it will put the mailbox on the dirty list again. To be called by one thread at a
    /// time, after the mailbox was found on the list.
    #[must_use]
    #[inline]
    pub(crate) fn read(&self, words: &mut [u64]) -> bool {
        self.dirty.swap(false, Ordering::AcqRel);
        self.peek(words)
    }

    /// The same without taking it off the list: nothing is promised about news then.
    #[inline]
    pub(crate) fn peek(&self, words: &mut [u64]) -> bool {
        let version = self.version.load(Ordering::Acquire);
        for (value, word) in words.iter_mut().zip(&self.words) {
            *value = word.load(Ordering::Relaxed);
        }
        fence(Ordering::Acquire);
        version.is_multiple_of(2) && self.version.load(Ordering::Relaxed) == version
    }
}

#[cfg(test)]
mod tests;
