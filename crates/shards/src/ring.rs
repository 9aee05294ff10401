//! A bounded queue from one thread to one other.
//!
//! What travels is a few words, and the words are atomics: so it needs no unsafe code, and on the machines that matter
//! costs the same.

use std::marker::PhantomData;

use crate::sync::{Apart, Arc, AtomicU64, AtomicUsize, Ordering};

/// Something that can be carried in a few words.
pub(crate) trait Words: Copy {
    /// The words.
    type Packed: AsRef<[u64]> + AsMut<[u64]> + Copy + Default;

    fn pack(self) -> Self::Packed;

    /// The value of which these are the words.
    fn unpack(words: Self::Packed) -> Self;
}

/// A queue of up to `capacity` values, rounded up to a power of two.
pub(crate) fn ring<T: Words>(capacity: usize) -> (Producer<T>, Consumer<T>) {
    let capacity = capacity.next_power_of_two();
    let width = T::Packed::default().as_ref().len();
    let shared = Arc::new(Shared {
        words: (0..capacity * width).map(|_| AtomicU64::new(0)).collect(),
        mask: capacity - 1,
        taken: Apart(AtomicUsize::new(0)),
        put: Apart(AtomicUsize::new(0)),
    });
    let producer = Producer { shared: Arc::clone(&shared), put: 0, taken_seen: 0, of: PhantomData };
    (producer, Consumer { shared, taken: 0, put_seen: 0, of: PhantomData })
}

#[derive(Debug)]
struct Shared {
    words: Box<[AtomicU64]>,
    mask: usize,
    /// How many values were ever taken out, and put in.
    taken: Apart<AtomicUsize>,
    put: Apart<AtomicUsize>,
}

/// The end where values go in.
#[derive(Debug)]
pub(crate) struct Producer<T> {
    shared: Arc<Shared>,
    put: usize,
    /// `taken`, as far as it is known here.
    taken_seen: usize,
    of: PhantomData<T>,
}

/// The end where values come out.
#[derive(Debug)]
pub(crate) struct Consumer<T> {
    shared: Arc<Shared>,
    taken: usize,
    /// `put`, as far as it is known here.
    put_seen: usize,
    of: PhantomData<T>,
}

impl<T: Words> Producer<T> {
    /// Puts a value in; `false` where there is no room.
    #[inline]
    pub(crate) fn push(&mut self, value: T) -> bool {
        let Shared { words, mask, taken, put } = &*self.shared;
        if self.put.wrapping_sub(self.taken_seen) > *mask {
            // Acquire: the consumer has read what we are about to overwrite.
            self.taken_seen = taken.0.load(Ordering::Acquire);
            if self.put.wrapping_sub(self.taken_seen) > *mask {
                return false;
            }
        }
        let packed = value.pack();
        let width = packed.as_ref().len();
        let first = (self.put & mask) * width;
        for (word, value) in words[first..first + width].iter().zip(packed.as_ref()) {
            word.store(*value, Ordering::Relaxed);
        }
        self.put = self.put.wrapping_add(1);
        // Release: who sees the count sees the words.
        put.0.store(self.put, Ordering::Release);
        true
    }
}

impl<T: Words> Consumer<T> {
    /// Whether there is nothing to take out.
    pub(crate) fn is_empty(&self) -> bool {
        self.taken == self.shared.put.0.load(Ordering::Acquire)
    }

    /// Takes the oldest value out.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<T> {
        let Shared { words, mask, taken, put } = &*self.shared;
        if self.taken == self.put_seen {
            self.put_seen = put.0.load(Ordering::Acquire);
            if self.taken == self.put_seen {
                return None;
            }
        }
        let mut packed = T::Packed::default();
        let width = packed.as_ref().len();
        let first = (self.taken & mask) * width;
        for (value, word) in packed.as_mut().iter_mut().zip(&words[first..first + width]) {
            *value = word.load(Ordering::Relaxed);
        }
        self.taken = self.taken.wrapping_add(1);
        taken.0.store(self.taken, Ordering::Release);
        Some(T::unpack(packed))
    }
}

#[cfg(test)]
mod tests;
