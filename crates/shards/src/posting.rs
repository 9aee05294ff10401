//! What a model's mailbox holds: its candidates and needs.

use downbeat_sched::{Candidate, ClassId, ModelId, Need, Offer, Priority, Span, Time};

use crate::mailbox::Mailbox;
use crate::sync::{AtomicU64, Ordering};

/// A model can be deployed on so many classes of its domain at most.
pub const CLASSES_PER_MODEL: usize = 8;

const HEADER: usize = 2;
const PER_CLASS: usize = 6;

/// The words of a posting for one class, which is what almost all models are deployed on.
const ONE_CLASS: usize = HEADER + PER_CLASS;
const MOST: usize = HEADER + CLASSES_PER_MODEL * PER_CLASS;

/// What one model shares between its shard and the matchmaker.
#[derive(Debug, Default)]
pub(crate) struct Cell {
    mailbox: Mailbox<MOST>,
    /// How many grants the model has seen. What it offered before a grant is of no interest after it.
    grants_seen: AtomicU64,
    /// One more than the number of the shard that has the model; 0 where none has.
    home: AtomicU64,
    /// One more than the number of the shard that should have it; 0 where it was removed or never added.
    route: AtomicU64,
    /// How much of what the model was told by [`Control`](crate::Control) has been carried out.
    carried_out: AtomicU64,
}

/// A posting, as the matchmaker reads it. Kept to be filled again.
#[derive(Debug, Default)]
pub(crate) struct Posting {
    pub(crate) grants_seen: u32,
    /// The shard that the model is on.
    pub(crate) shard: u16,
    /// The model is gone.
    pub(crate) gone: bool,
    pub(crate) candidates: Vec<Candidate>,
    pub(crate) needs: Vec<(ClassId, Need)>,
}

impl Cell {
    /// The model has seen another grant.
    pub(crate) fn see_grant(&self) {
        self.grants_seen.fetch_add(1, Ordering::AcqRel);
    }

    /// The shard that has the model by now.
    pub(crate) fn home(&self) -> Option<u16> {
        shard(self.home.load(Ordering::Acquire))
    }

    pub(crate) fn set_home(&self, shard: Option<u16>) {
        self.home.store(number(shard), Ordering::Release);
    }

    /// The shard that requests for the model go to.
    pub(crate) fn route(&self) -> Option<u16> {
        shard(self.route.load(Ordering::Acquire))
    }

    pub(crate) fn set_route(&self, shard: Option<u16>) {
        self.route.store(number(shard), Ordering::Release);
    }

    /// How often something that the model was told has been carried out.
    pub(crate) fn carried_out(&self) -> u64 {
        self.carried_out.load(Ordering::Acquire)
    }

    pub(crate) fn carry_out(&self) {
        self.carried_out.fetch_add(1, Ordering::AcqRel);
    }

    /// The rows that came for the model in about the last second, when it last posted.
    pub(crate) fn lately(&self) -> u64 {
        let mut words = [0; HEADER];
        if self.mailbox.peek(&mut words) { words[1] } else { 0 }
    }

    /// Posts an offer; `true` where the mailbox must be put on the dirty list.
    #[must_use]
    #[inline]
    pub(crate) fn post(&self, shard: u16, offer: &Offer, lately: u64) -> bool {
        if offer.needs.len() <= 1 {
            self.post_into(&mut [0; ONE_CLASS], shard, offer, lately)
        } else {
            self.post_into(&mut [0; MOST], shard, offer, lately)
        }
    }

    #[inline]
    fn post_into(&self, words: &mut [u64], shard: u16, offer: &Offer, lately: u64) -> bool {
        let mut candidates = offer.candidates.iter().peekable();
        let mut count = 0;
        for ((class, need), words) in offer.needs.iter().zip(words[HEADER..].chunks_exact_mut(PER_CLASS)) {
            let candidate = candidates.next_if(|candidate| candidate.class == *class);
            pack(*class, *need, candidate, words);
            count += 1;
        }
        words[0] = self.header(shard) | count as u64;
        words[1] = lately;
        self.mailbox.write(&words[..HEADER + count * PER_CLASS])
    }

    /// Posts that the model is gone.
    #[must_use]
    pub(crate) fn post_gone(&self, shard: u16) -> bool {
        self.mailbox.write(&[self.header(shard) | GONE, 0])
    }

    fn header(&self, shard: u16) -> u64 {
        self.grants_seen.load(Ordering::Acquire) << 32 | u64::from(shard) << 16
    }

    /// Takes the latest posting off the dirty list; `false` where it is being overwritten.
    pub(crate) fn read(&self, posting: &mut Posting) -> bool {
        let mut words = [0; MOST];
        if !self.mailbox.read(&mut words[..ONE_CLASS]) {
            return false;
        }
        // Another one by then, perhaps, but whole.
        if words[0] & COUNT > 1 && !self.mailbox.peek(&mut words) {
            return false;
        }
        posting.fill(&words);
        true
    }
}

fn shard(number: u64) -> Option<u16> {
    number.checked_sub(1).map(|shard| shard as u16)
}

fn number(shard: Option<u16>) -> u64 {
    shard.map_or(0, |shard| u64::from(shard) + 1)
}

const COUNT: u64 = 0xff;
const GONE: u64 = 1 << 8;

impl Posting {
    fn fill(&mut self, words: &[u64; MOST]) {
        self.candidates.clear();
        self.needs.clear();
        self.grants_seen = (words[0] >> 32) as u32;
        self.shard = (words[0] >> 16) as u16;
        self.gone = words[0] & GONE != 0;
        for words in words[HEADER..].chunks_exact(PER_CLASS).take((words[0] & COUNT) as usize) {
            let class = ClassId((words[0] & 0xff) as u16);
            let (mean, patience) = split_time(words[4]);
            let need = Need::from_millionths((mean, words[5])).with_patience(patience);
            self.needs.push((class, need));
            if words[0] & OFFERED != 0 {
                self.candidates.push(unpack(class, words));
            }
        }
    }
}

const OFFERED: u64 = 1 << 8;
const FULL: u64 = 1 << 9;
const DRAINS: u64 = 1 << 10;
/// The part of word 4 that tells millionths: good for a mean of a million devices.
const MILLIONTHS: u64 = (1 << 40) - 1;

/// A word of millionths, and above them a time in microseconds.
#[inline]
fn join_time(millionths: u64, time: Span) -> u64 {
    millionths.min(MILLIONTHS) | (time.as_nanos() / 1_000) << MILLIONTHS.count_ones()
}

/// The same taken apart.
#[inline]
fn split_time(word: u64) -> (u64, Span) {
    (word & MILLIONTHS, Span::from_micros(word >> MILLIONTHS.count_ones()))
}

/// Word 0: class 8 bits, offered 1, full 1, drains 1, priority 8 from 16, loss 16 from 24, size 24 from 40. Words 4 and
/// 5: the mean that is needed with how long requests can wait, and the variance.
#[inline]
fn pack(class: ClassId, need: Need, candidate: Option<&Candidate>, words: &mut [u64]) {
    words[0] = u64::from(class.0);
    let (mean, variance) = need.millionths();
    words[4] = join_time(mean, need.patience());
    words[5] = variance;
    if let Some(candidate) = candidate {
        words[0] |= OFFERED
            | if candidate.full { FULL } else { 0 }
            | if candidate.drains { DRAINS } else { 0 }
            | u64::from(candidate.priority.0) << 16
            | u64::from(candidate.loss_permille) << 24
            | u64::from(candidate.size) << 40;
        words[1] = candidate.frontrun.as_nanos();
        words[2] = candidate.latest.as_nanos();
        words[3] = candidate.latency.as_nanos();
    }
}

#[inline]
fn unpack(class: ClassId, words: &[u64]) -> Candidate {
    Candidate {
        class,
        size: (words[0] >> 40) as u32,
        frontrun: Time::from_nanos(words[1]),
        latest: Time::from_nanos(words[2]),
        latency: Span::from_nanos(words[3]),
        priority: Priority((words[0] >> 16) as u8),
        full: words[0] & FULL != 0,
        drains: words[0] & DRAINS != 0,
        loss_permille: (words[0] >> 24) as u16,
    }
}

/// The cells of all models.
#[derive(Debug)]
pub(crate) struct Cells(Box<[Cell]>);

impl Cells {
    /// Cells for models with numbers below `models`.
    pub(crate) fn new(models: u32) -> Cells {
        Cells((0..models).map(|_| Cell::default()).collect())
    }

    pub(crate) fn len(&self) -> u32 {
        self.0.len() as u32
    }

    /// The cell of a model, which must have a number below `len`.
    #[inline]
    pub(crate) fn of(&self, model: ModelId) -> &Cell {
        &self.0[model.0 as usize]
    }

    pub(crate) fn get(&self, model: ModelId) -> Option<&Cell> {
        self.0.get(model.0 as usize)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use downbeat_sched::*;

    use super::{CLASSES_PER_MODEL, Cell, Posting};

    fn candidate(class: u16) -> Candidate {
        Candidate {
            class: ClassId(class),
            size: 65_536,
            frontrun: Time::from_nanos(u64::from(class)),
            latest: Time::from_nanos(1 << 60),
            latency: Span::from_millis(3),
            priority: Priority(255),
            full: class.is_multiple_of(2),
            drains: class.is_multiple_of(3),
            loss_permille: 999,
        }
    }

    #[test]
    fn a_posting_is_read_as_it_was_written() {
        let cell = Cell::default();
        let mut posting = Posting::default();
        for classes in 0..=CLASSES_PER_MODEL as u16 {
            let needs = (0..classes).map(|class| {
                let patience = Span::from_millis(class.into());
                let need = Need::new(f64::from(class), 0.5).with_patience(patience);
                (ClassId(63 - class), need)
            });
            let offered = (0..classes).filter(|class| class % 3 != 1).map(|class| candidate(63 - class));
            let offer = Offer { candidates: offered.collect(), needs: needs.collect(), ..Offer::default() };
            cell.see_grant();
            assert!(cell.post(7, &offer, 1_000));
            assert!(cell.read(&mut posting));
            assert_eq!(posting.candidates, offer.candidates);
            assert_eq!(posting.needs, offer.needs);
            assert_eq!((posting.grants_seen, posting.shard), (u32::from(classes) + 1, 7));
            assert!(!posting.gone);
            assert_eq!(cell.lately(), 1_000);
        }
        assert!(cell.post_gone(7));
        assert!(cell.read(&mut posting));
        assert!(posting.gone && posting.candidates.is_empty() && posting.needs.is_empty());
    }

    #[test]
    fn a_model_takes_less_than_half_a_kilobyte_for_its_mailbox() {
        assert!(size_of::<Cell>() <= 512, "{}", size_of::<Cell>());
    }
}
