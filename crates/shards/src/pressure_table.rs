//! What a matchmaker lets the shards know of the cluster.

use crossbeam_utils::atomic::AtomicCell;
use downbeat_sched::{
    CLASS_LIMIT, ClassId, ClassSet, Guard, Need, Outlook, Pressure, Priority, Room, Span, Time,
};

use crate::sync::{AtomicU64, Ordering};

/// How hard each class of devices is pressed. Written by one matchmaker, read by all shards.
pub(crate) struct PressureTable {
    present: AtomicU64,
    classes: Box<[AtomicCell<Pressure>]>,
}

impl PressureTable {
    pub(crate) fn new() -> PressureTable {
        PressureTable {
            present: AtomicU64::new(0),
            classes: (0..CLASS_LIMIT).map(|_| AtomicCell::default()).collect(),
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
        self.classes[class.0 as usize].store(*pressure);
    }

    pub(crate) fn pressure(&self, class: ClassId) -> Pressure {
        self.classes.get(class.0 as usize).map_or_else(Pressure::default, AtomicCell::load)
    }
}

impl std::fmt::Debug for PressureTable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PressureTable").field("present", &self.present()).finish_non_exhaustive()
    }
}

/// How old a shard's copy of the table may be. The table is on another processor's cache, and many read it.
const STALE: Span = Span::from_micros(200);

/// A shard's copy of the table.
#[derive(Debug, Default)]
pub(crate) struct CachedPressure {
    classes: Vec<Cached>,
    present: ClassSet,
    read_at: Time,
}

#[derive(Clone, Copy, Debug)]
struct Cached {
    pressure: Pressure,
    guard: Guard,
}

impl CachedPressure {
    /// Whether it is time to read the table again. That a class has got its first device or lost its last is news at
    /// any time: requests may wait for it.
    #[inline]
    pub(crate) fn is_stale(&self, now: Time, table: &PressureTable) -> bool {
        now.since(self.read_at) >= STALE || self.present != table.present()
    }

    /// The classes of which there was a device.
    pub(crate) fn present(&self) -> ClassSet {
        self.present
    }

    pub(crate) fn read(&mut self, now: Time, table: &PressureTable) {
        self.read_at = now;
        self.present = table.present();
        let classes = (u64::BITS - self.present.bits().leading_zeros()) as u16;
        self.classes.clear();
        self.classes.extend((0..classes).map(|class| {
            let pressure = table.pressure(ClassId(class));
            Cached { guard: Guard::new(&pressure), pressure }
        }));
    }
}

impl Outlook for CachedPressure {
    fn room(&self, class: ClassId, level: Priority) -> Room {
        let cached = self.classes.get(class.0 as usize);
        cached.map_or_else(Room::default, |cached| cached.pressure.room(level))
    }

    fn head_start(&self, class: ClassId, latency: Span, own: Need) -> Span {
        let cached = self.classes.get(class.0 as usize);
        // What waits may be the shard's own candidate, which was not told yet.
        cached.map_or(Span::ZERO, |cached| {
            cached.guard.head_start(cached.pressure.backlog.max(latency), latency, own)
        })
    }
}
