//! Candidates: the batch a model would run next on a class of devices, as the matchmaker sees it.

use downbeat_profile::{LatencyProfile, Span};

use crate::margin::Margin;
use crate::{ClassId, Delays, Priority, Time};

/// The batch that a model would run next on one class of devices, and the window in which to send it.
///
/// All that the matchmaker knows of a model. Times are instants of *sending*: what passes until the device can start
/// is already taken off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// The class of devices.
    pub class: ClassId,
    /// Rows in the batch.
    pub size: u32,
    /// Before this instant one more row could still join for free, so waiting costs nothing. In the past where the next
    /// request has too many rows to join: nothing may overtake it, so there is nothing to wait for.
    pub frontrun: Time,
    /// After this instant the batch can no longer finish in time.
    pub latest: Time,
    /// l(size): how long the batch keeps a device.
    pub latency: Span,
    /// The highest priority among its requests.
    pub priority: Priority,
    /// Whether as many rows wait as the model allows in a batch, so that there is nothing to wait for. The batch has fewer where a request would have had to be split.
    pub full: bool,
    /// Whether no more requests come for the model, so that there is nothing to wait for either.
    pub drains: bool,
    /// How many of a thousand requests the model lately lost.
    pub loss_permille: u16,
}

impl Candidate {
    /// The candidate of `size` rows, the earliest due at `deadline`, where `reach` rows wait that there would be time
    /// for.
    #[inline]
    pub(crate) fn new(
        class: ClassId,
        finish: &Finish<'_>,
        size: u32,
        reach: u32,
        deadline: Time,
        priority: Priority,
    ) -> Candidate {
        let Finish { profile, delays, .. } = finish;
        let full = !finish.takes(reach + 1);
        let sent_by = |size| deadline - finish.latency(size) - delays.lead(size);
        Candidate {
            class,
            size,
            frontrun: if full { Time::ZERO } else { sent_by(reach + 1) },
            latest: sent_by(size),
            latency: profile.latency(size),
            priority,
            full,
            drains: false,
            loss_permille: 0,
        }
    }
}

/// All that waits, where it could run as one batch: requests of one row each, none of them given up.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Whole {
    pub(crate) rows: u32,
    /// The earliest deadline.
    pub(crate) deadline: Time,
    /// When it is held back no more.
    pub(crate) held_until: Time,
    pub(crate) priority: Priority,
}

/// When a batch of any size would finish on a device, if it were sent now. Sizes are in rows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Finish<'a> {
    pub(crate) profile: &'a LatencyProfile,
    pub(crate) margin: Margin,
    pub(crate) delays: &'a Delays,
    pub(crate) now: Time,
    /// When the device is done with what it was sent before; the past where it is idle or not yet known.
    pub(crate) free_at: Time,
}

impl Finish<'_> {
    /// How long a batch of `size` may take, as far as deadlines are concerned.
    #[inline]
    fn latency(&self, size: u32) -> Span {
        self.margin.stretch(self.profile.latency(size))
    }

    /// When a batch of `size` would start.
    #[inline]
    pub(crate) fn start(&self, size: u32) -> Time {
        (self.now + self.delays.lead(size)).max(self.free_at)
    }

    /// When a batch of `size` would finish. Sizes past the largest batch take as long as the largest.
    #[inline]
    pub(crate) fn at(&self, size: u32) -> Time {
        let size = size.min(self.profile.max_batch());
        self.start(size) + self.latency(size)
    }

    /// Whether the model takes batches of `rows`.
    #[inline]
    pub(crate) fn takes(&self, rows: u32) -> bool {
        rows <= self.profile.max_batch()
    }

    /// When a batch of no less than `rows` would finish; never where that is more than the model takes.
    #[inline]
    pub(crate) fn whole(&self, rows: u32) -> Time {
        if self.takes(rows) { self.at(rows) } else { Time::NEVER }
    }

    /// The largest batch of at most `rows` that finishes by `deadline`; 0 where none does.
    pub(crate) fn largest_by(&self, deadline: Time, rows: u32) -> u32 {
        let rows = rows.min(self.profile.max_batch());
        // Most of the time there is time for all that waits.
        if self.at(rows) <= deadline {
            return rows;
        }
        let (mut fits, mut too_large) = (0, rows);
        while too_large - fits > 1 {
            let middle = fits + (too_large - fits) / 2;
            if self.at(middle) <= deadline {
                fits = middle;
            } else {
                too_large = middle;
            }
        }
        fits
    }
}
