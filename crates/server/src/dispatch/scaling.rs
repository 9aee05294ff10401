//! How many devices there should be: the dispatcher's counts as an autoscaler's signals.
//!
//! Each class of devices has an autoscaler of its own. A request can be served by any class that its model is deployed
//! on, so that arrivals and losses are those of the whole server; need and device time are each class's own.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use downbeat_profile::Span;
use downbeat_scale::{Autoscaler, Decision, Settings, Signals};
use downbeat_sched::{ClassId, Need, Time};

/// How often is decided.
const EVERY: Span = Span::from_millis(5_000);

/// What happened since the last decision.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) arrivals: u64,
    pub(crate) answered: u64,
    pub(crate) bad: u64,
    pub(crate) batches: u64,
    pub(crate) rows: u64,
}

/// Decides, for every class.
#[derive(Debug)]
pub(crate) struct Scaling {
    classes: BTreeMap<ClassId, Watched>,
    since: Time,
}

#[derive(Debug)]
struct Watched {
    autoscaler: Autoscaler,
    /// Sums over the looks since the last decision.
    needed: f64,
    deviation: f64,
    looks: u32,
    /// Whether anything was ever decided about it.
    decided: bool,
}

impl Scaling {
    pub(crate) fn new(now: Time) -> Scaling {
        Scaling { classes: BTreeMap::new(), since: now }
    }

    /// Looks at what a class needs: it changes from second to second.
    pub(crate) fn look(&mut self, class: ClassId, need: Need) {
        let watched = self.watched(class);
        watched.needed += need.mean();
        watched.deviation += need.deviation();
        watched.looks += 1;
    }

    /// Whether it is time to decide: every few seconds, and at once for a class that is new, so that it is exported.
    pub(crate) fn is_due(&self, now: Time) -> bool {
        now.since(self.since) >= EVERY || self.classes.values().any(|watched| !watched.decided)
    }

    /// Begins the next interval, and says how long the last one was.
    pub(crate) fn begin_interval(&mut self, now: Time) -> Span {
        now.since(std::mem::replace(&mut self.since, now))
    }

    /// Decides for one class about the interval of length `over` that ends now, in which its devices that take work
    /// were `busy` for so long, in the order of rank.
    pub(crate) fn decide(
        &mut self,
        now: Time,
        over: Span,
        class: ClassId,
        busy: &[Span],
        tally: Tally,
        waiting: u64,
    ) -> Decision {
        let watched = self.watched(class);
        let looks = f64::from(watched.looks.max(1));
        let over_s = over.as_secs_f64().max(1e-3);
        let decision = watched.autoscaler.observe(&Signals {
            now,
            over,
            gpus: busy.len() as u32,
            coming: 0,
            arrivals: tally.arrivals,
            answered: tally.answered,
            bad: tally.bad,
            batches: tally.batches,
            rows: tally.rows,
            waiting,
            needed: watched.needed / looks,
            deviation: watched.deviation / looks,
            busy: busy.iter().map(|busy| busy.as_secs_f64() / over_s).collect(),
        });
        (watched.needed, watched.deviation, watched.looks) = (0.0, 0.0, 0);
        watched.decided = true;
        decision
    }

    fn watched(&mut self, class: ClassId) -> &mut Watched {
        // Who adds devices has limits of their own.
        self.classes.entry(class).or_insert_with(|| Watched {
            autoscaler: Autoscaler::new(Settings::advisory()),
            needed: 0.0,
            deviation: 0.0,
            looks: 0,
            decided: false,
        })
    }
}
