//! A model on one class of devices: its profile there, and what was learned about it.

use downbeat_profile::{LatencyProfile, Span};

use crate::candidate::{Candidate, Whole};
use crate::margin::Margin;
use crate::rate::ArrivalRate;
use crate::{ClassId, Delays, Need, Outlook, Priority, Time, Traffic};

/// log2 of the time in nanoseconds for which a plan holds: about 8 ms. Rates are means over a second, so that planning
/// for every request would find the same again and again...
const PLAN_BITS: u32 = 23;

/// ...once that second holds so many rows that a few more change little.
const PLAN_ROWS: u64 = 256;

/// How long a margin is kept without a batch to learn from.
const MARGIN_KEPT: Span = Span::from_millis(1_000);

/// How many times larger a batch may grow without a word to the matchmaker.
const SILENT_GROWTH_MOST: u32 = 3;

/// How much of what a model starts counts when its traffic is divided among classes.
const SHARE_WEIGHT: f64 = 1.0 / 16.0;

/// A model on one class of devices.
#[derive(Clone, Debug)]
pub(crate) struct Deployment {
    pub(crate) class: ClassId,
    pub(crate) profile: LatencyProfile,
    pub(crate) margin: Margin,
    /// When it was last learned from a batch.
    observed_at: Time,
    /// Batches that were started here and have not finished.
    pub(crate) running: u32,
    /// The part of the model's batches that lately ran here.
    share: f64,
    /// The batch size, in rows, for whose sake heads are given up.
    pub(crate) target: u32,
    /// How long after it was sent a batch of that size may have finished.
    takes_target: Span,
    /// Set while device time is short: see [`size_that_pays`](Self::size_that_pays).
    short: bool,
    /// The devices of this class that the model's traffic needs.
    pub(crate) need: Need,
    /// In which period these were planned.
    planned: u64,
}

impl Deployment {
    pub(crate) fn new(class: ClassId, profile: LatencyProfile) -> Deployment {
        Deployment {
            class,
            profile,
            margin: Margin::default(),
            observed_at: Time::ZERO,
            running: 0,
            share: 1.0,
            target: 1,
            takes_target: Span::MAX,
            short: false,
            need: Need::default(),
            planned: u64::MAX,
        }
    }

    /// Plans by the traffic, which is of this level, if the last plan is too old.
    #[inline]
    pub(crate) fn plan(
        &mut self,
        now: Time,
        level: Priority,
        arrivals: &mut ArrivalRate,
        delays: &Delays,
        outlook: &impl Outlook,
    ) {
        let period = now.as_nanos() >> PLAN_BITS;
        if period != self.planned || arrivals.lately() < PLAN_ROWS {
            self.planned = period;
            self.plan_anew(now, level, arrivals, delays, outlook);
        }
    }

    #[inline(never)]
    fn plan_anew(
        &mut self,
        now: Time,
        level: Priority,
        arrivals: &mut ArrivalRate,
        delays: &Delays,
        outlook: &impl Outlook,
    ) {
        let traffic = Traffic {
            profile: &self.profile,
            delays,
            gap: arrivals.gap(now),
            rows: arrivals.mean_rows(),
            allowance: arrivals.allowance(),
            dispersion: arrivals.dispersion(),
            room: outlook.room(self.class, level),
        };
        self.target = traffic.target();
        self.short = traffic.is_short_of_devices();
        // With a margin so large that nothing is in time, nothing would ever be learned again.
        if now.since(self.observed_at) > MARGIN_KEPT {
            self.margin = Margin::default();
        }
        self.need = traffic.need().part(self.share);
        self.learn_takes_target(delays);
    }

    /// The candidate of all that waits, and when its head will be given up if nothing starts before; `None` where there
    /// is not time for all. What [`Model`](crate::model::Model) would compose, for the most common case by far.
    #[inline]
    pub(crate) fn candidate_of(
        &self,
        whole: &Whole,
        now: Time,
        delays: &Delays,
    ) -> Option<(Candidate, Time)> {
        let Whole { rows, deadline, priority, .. } = *whole;
        let most = self.profile.max_batch();
        if rows > most {
            return None;
        }
        let takes_all = self.takes(rows, delays);
        if now + takes_all > deadline {
            return None;
        }
        let full = rows >= most;
        let size = self.size_that_pays(rows);
        let candidate = Candidate {
            class: self.class,
            size,
            frontrun: if full { Time::ZERO } else { deadline - self.takes(rows + 1, delays) },
            latest: deadline - if size == rows { takes_all } else { self.takes(size, delays) },
            latency: self.profile.latency(size),
            priority,
            drains: false,
            full,
            loss_permille: 0,
        };
        let head_lost_after =
            if rows <= self.target { candidate.latest } else { deadline - self.takes_target };
        Some((candidate, head_lost_after))
    }

    /// Up to how many rows a batch of all that waits may grow without a word to the matchmaker, and until when: its
    /// window does not open by then, with `update_lead` to spare. At most to a multiple, so that the matchmaker is never far
    /// off.
    #[inline]
    pub(crate) fn silent_growth(
        &self,
        whole: &Whole,
        now: Time,
        delays: &Delays,
        update_lead: Span,
        outlook: &impl Outlook,
    ) -> Option<(u32, Time)> {
        let Whole { rows, deadline, .. } = *whole;
        let most =
            rows.saturating_mul(SILENT_GROWTH_MOST).saturating_add(1).min(self.profile.max_batch() - 1);
        let early = update_lead + outlook.head_start(self.class, self.profile.latency(most), self.need);
        let opens_at = |size: u32| deadline - early - self.takes(size + 1, delays);
        // Either there is plenty of time, or hardly any.
        if most <= rows || opens_at(rows + 1) <= now {
            return None;
        }
        let (mut quiet, mut loud) = if opens_at(most) > now { (most, most + 1) } else { (rows + 1, most) };
        while quiet + 1 < loud {
            let middle = quiet + (loud - quiet) / 2;
            if opens_at(middle) > now {
                quiet = middle;
            } else {
                loud = middle;
            }
        }
        Some((quiet, opens_at(quiet)))
    }

    /// Returns the rows that run, of those that could run as one batch: all, unless device time is short and fewer cost
    /// less of it each. The others wait for the next batch.
    #[inline]
    pub(crate) fn size_that_pays(&self, rows: u32) -> u32 {
        if self.short { self.profile.cheapest_up_to(rows) } else { rows }
    }

    /// Learns whether a batch finished too late for one of its requests.
    pub(crate) fn observe(&mut self, now: Time, late: bool, delays: &Delays) {
        self.margin.observe(late, self.running);
        self.observed_at = now;
        self.learn_takes_target(delays);
    }

    fn learn_takes_target(&mut self, delays: &Delays) {
        self.takes_target = self.takes(self.target, delays);
    }

    /// How long after it was sent a batch may have finished, as far as deadlines are concerned.
    #[inline]
    fn takes(&self, size: u32, delays: &Delays) -> Span {
        self.margin.stretch(self.profile.latency(size)) + delays.lead(size)
    }

    /// Divides the model's traffic anew after a batch was started here, or on another class.
    pub(crate) fn divide(&mut self, started_here: bool) {
        self.share += SHARE_WEIGHT * (f64::from(u8::from(started_here)) - self.share);
    }

    /// Starts dividing with an equal part.
    pub(crate) fn set_share(&mut self, share: f64) {
        self.share = share;
    }
}
