//! What a matchmaker lets the shards know of the cluster.

use downbeat_sched::{
    ClassId, ClassSet, HigherNeeds, Need, Outlook, Policy, Pressure, Priority, Room, Span, Stance, Time,
};

use crate::sync::{AtomicU64, Ordering};

/// Written by one matchmaker, read by all shards. Each number is the latest; that they are not of the very same instant
/// harms nobody, because shards only plan by them.
#[derive(Debug)]
pub(crate) struct Board {
    present: AtomicU64,
    classes: Box<[[AtomicU64; FIELDS]]>,
}

const FIELDS: usize = 14;

impl Board {
    pub(crate) fn new() -> Board {
        let fields = || std::array::from_fn(|_| AtomicU64::new(0));
        Board {
            present: AtomicU64::new(0),
            classes: (0..downbeat_sched::CLASS_LIMIT).map(|_| fields()).collect(),
        }
    }

    pub(crate) fn publish_present(&self, present: ClassSet) {
        self.present.store(present.bits(), Ordering::Release);
    }

    /// The classes of which there is a device.
    #[inline]
    pub(crate) fn present(&self) -> ClassSet {
        ClassSet::from_bits(self.present.load(Ordering::Acquire))
    }

    pub(crate) fn publish(&self, class: ClassId, pressure: &Pressure) {
        let (mean, variance) = pressure.need.millionths();
        let [first, second, third] = pressure.higher.numbers();
        let values = [
            u64::from(pressure.gpus),
            pressure.backlog.as_nanos(),
            mean,
            variance,
            pressure.holding.as_nanos(),
            pressure.all_busy.to_bits(),
            pressure.patience.as_nanos(),
            pressure.randomness.to_bits(),
            pressure.loss.to_bits(),
            pressure.losers_patience.as_nanos(),
            first,
            second,
            third,
            pressure.stance.number(),
        ];
        for (field, value) in self.classes[class.0 as usize].iter().zip(values) {
            field.store(value, Ordering::Relaxed);
        }
    }

    pub(crate) fn pressure(&self, class: ClassId) -> Pressure {
        let Some(fields) = self.classes.get(class.0 as usize) else { return Pressure::default() };
        let [
            gpus,
            backlog,
            mean,
            variance,
            holding,
            all_busy,
            patience,
            randomness,
            loss,
            losers_patience,
            first,
            second,
            third,
            stance,
        ] = std::array::from_fn(|index| fields[index].load(Ordering::Relaxed));
        Pressure {
            gpus: gpus as u32,
            backlog: Span::from_nanos(backlog),
            need: Need::from_millionths((mean, variance)),
            holding: Span::from_nanos(holding),
            all_busy: f64::from_bits(all_busy),
            patience: Span::from_nanos(patience),
            randomness: f64::from_bits(randomness),
            loss: f64::from_bits(loss),
            losers_patience: Span::from_nanos(losers_patience),
            higher: HigherNeeds::from_numbers([first, second, third]),
            stance: Stance::from_number(stance),
        }
    }
}

/// How old what a shard has read off the board may be. It is on another processor's cache, and many read it.
const STALE: Span = Span::from_micros(200);

/// A board as one shard last read it.
#[derive(Debug)]
pub(crate) struct Horizon<P: Policy> {
    policy: P,
    classes: Vec<Seen<P::Guard>>,
    present: ClassSet,
    read_at: Time,
}

#[derive(Clone, Copy, Debug, Default)]
struct Seen<G> {
    pressure: Pressure,
    guard: G,
}

impl<P: Policy> Horizon<P> {
    pub(crate) fn new(policy: P) -> Horizon<P> {
        Horizon { policy, classes: Vec::new(), present: ClassSet::default(), read_at: Time::ZERO }
    }

    /// Whether it is time to read the board again. That a class has got its first device or lost its last is news at
    /// any time: requests may wait for it.
    #[inline]
    pub(crate) fn is_stale(&self, now: Time, board: &Board) -> bool {
        now.since(self.read_at) >= STALE || self.present != board.present()
    }

    /// The classes of which there was a device.
    pub(crate) fn present(&self) -> ClassSet {
        self.present
    }

    pub(crate) fn read(&mut self, now: Time, board: &Board) {
        self.read_at = now;
        self.present = board.present();
        let classes = u64::BITS - self.present.bits().leading_zeros();
        self.classes.resize(classes as usize, Seen::default());
        for (class, seen) in (0..).map(ClassId).zip(&mut self.classes) {
            let pressure = board.pressure(class);
            *seen = Seen { guard: self.policy.guard(&pressure), pressure };
        }
    }
}

impl<P: Policy> Outlook for Horizon<P> {
    fn room(&self, class: ClassId, level: Priority, own: Need) -> Room {
        let seen = self.classes.get(class.0 as usize);
        seen.map_or_else(Room::default, |seen| seen.pressure.room(level, own))
    }

    fn longest(&self, class: ClassId) -> Span {
        self.classes.get(class.0 as usize).map_or(Span::MAX, |seen| seen.pressure.longest())
    }

    fn head_start(&self, class: ClassId, latency: Span, own: Need) -> Span {
        let seen = self.classes.get(class.0 as usize);
        // What waits may be the shard's own candidate, which was not told yet.
        seen.map_or(Span::ZERO, |seen| {
            self.policy.head_start(&seen.guard, seen.pressure.backlog.max(latency), latency, own)
        })
    }
}
