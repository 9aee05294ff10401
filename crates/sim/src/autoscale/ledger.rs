//! The books of an elastic cluster: every model's every minute, and counts for the signals.

use downbeat_sched::{Span, Time};

use crate::devices::Executed;
use crate::in_flight::Traveller;
use crate::scenario::Scenario;
use crate::simulation::Books;

/// The length of a minute, in nanoseconds.
const MINUTE_NS: u64 = 60_000_000_000;

/// What became of requests, by the minute in which they were answered.
#[derive(Clone, Debug)]
pub(crate) struct Ledger {
    /// Each model's SLO.
    slo: Vec<Span>,
    response_reserve: Span,
    /// By minute, then by model.
    minutes: Vec<Vec<Tally>>,
    /// The first minute that is kept; see [`Ledger::forget`].
    first: usize,
    pub(crate) arrivals: u64,
    pub(crate) answered: u64,
    pub(crate) bad: u64,
    pub(crate) batches: u64,
    pub(crate) rows: u64,
    /// By device, since the beginning.
    pub(crate) busy: Vec<Span>,
}

/// The requests of one model that were answered in one minute.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// All of them.
    pub answered: u64,
    /// Those that were late, dropped or never answered.
    pub bad: u64,
}

impl Tally {
    /// The share of bad ones; 0 where there is none at all.
    pub fn bad_rate(&self) -> f64 {
        if self.answered == 0 { 0.0 } else { self.bad as f64 / self.answered as f64 }
    }
}

impl Ledger {
    pub(crate) fn new(scenario: &Scenario, gpus: usize) -> Ledger {
        Ledger {
            slo: scenario.models.iter().map(|model| model.slo).collect(),
            response_reserve: scenario.response_reserve,
            minutes: Vec::new(),
            first: 0,
            arrivals: 0,
            answered: 0,
            bad: 0,
            batches: 0,
            rows: 0,
            busy: vec![Span::ZERO; gpus],
        }
    }

    /// Each model's tally of a minute.
    pub(crate) fn minute(&self, minute: usize) -> &[Tally] {
        minute.checked_sub(self.first).and_then(|index| self.minutes.get(index)).map_or(&[], Vec::as_slice)
    }

    /// Takes the tallies of all minutes before `minute` out of the books, so that a copy of them is small.
    pub(crate) fn forget(&mut self, minute: usize) -> Vec<Vec<Tally>> {
        let count = minute.saturating_sub(self.first).min(self.minutes.len());
        self.first += count;
        self.minutes.drain(..count).collect()
    }

    fn tally(&mut self, model: u32, at: Time) -> &mut Tally {
        let minute = ((at.as_nanos() / MINUTE_NS) as usize).saturating_sub(self.first);
        if self.minutes.len() <= minute {
            self.minutes.resize(minute + 1, vec![Tally::default(); self.slo.len()]);
        }
        &mut self.minutes[minute][model as usize]
    }

    fn answer(&mut self, traveller: Traveller, at: Time, good: bool) {
        self.answered += 1;
        self.bad += u64::from(!good);
        let tally = self.tally(traveller.model, at);
        tally.answered += 1;
        tally.bad += u64::from(!good);
    }
}

impl Books for Ledger {
    fn arrived(&mut self, _: Traveller) {
        self.arrivals += 1;
    }

    fn finished(&mut self, traveller: Traveller, finish: Time) {
        let latency = finish.since(traveller.arrived) + self.response_reserve;
        let good = latency <= self.slo[traveller.model as usize];
        self.answer(traveller, finish, good);
    }

    fn expired(&mut self, traveller: Traveller, now: Time) {
        self.answer(traveller, now, false);
    }

    fn executed(&mut self, executed: &Executed) {
        self.busy[executed.gpu.0 as usize] += executed.finish.since(executed.start);
        self.batches += 1;
        self.rows += executed.requests.len() as u64;
    }

    fn fails_early(&self, _: u32) -> bool {
        false
    }
}
