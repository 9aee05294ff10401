//! What is counted.

use std::collections::BTreeMap;
use std::time::Duration;

use hdrhistogram::Histogram;

use crate::outcome::Outcome;

/// Latencies are kept in microseconds up to this, an hour; the few that are longer count as this.
const LATENCY_MAX_US: u64 = 3_600_000_000;

/// The run is cut into at most so many slices, for pictures over time.
const SLICES: u32 = 120;
/// And into none shorter than this.
const SLICE_MIN: Duration = Duration::from_millis(100);

/// Everything that is counted.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) models: Vec<Tally>,
    pub(crate) latency_us: Histogram<u64>,
    /// How late requests were sent.
    pub(crate) lag_us: Histogram<u64>,
    /// Where the time went, of answers that say so: waiting, running, and the rest of the round trip.
    pub(crate) queue_us: Histogram<u64>,
    pub(crate) compute_us: Histogram<u64>,
    pub(crate) overhead_us: Histogram<u64>,
    pub(crate) slices: Vec<Slice>,
    pub(crate) slice: Duration,
    is_closed: bool,
}

/// One model.
#[derive(Debug)]
pub(crate) struct Tally {
    pub(crate) offered: u64,
    /// On their way.
    pub(crate) waiting: u64,
    pub(crate) outcomes: BTreeMap<Outcome, u64>,
    /// Of requests with a result.
    pub(crate) latency_us: Histogram<u64>,
    /// The first message of each outcome that has one.
    pub(crate) messages: BTreeMap<Outcome, String>,
}

/// A stretch of the run: requests by when they were due.
#[derive(Debug)]
pub(crate) struct Slice {
    pub(crate) offered: u64,
    pub(crate) in_slo: u64,
    pub(crate) latency_us: Histogram<u32>,
}

impl State {
    pub(super) fn new(models: usize, length: Duration) -> State {
        let slice = (length / SLICES).max(SLICE_MIN);
        let slices = length.as_nanos().div_ceil(slice.as_nanos()).max(1) as usize;
        State {
            models: (0..models).map(|_| Tally::new()).collect(),
            latency_us: histogram(),
            lag_us: histogram(),
            queue_us: histogram(),
            compute_us: histogram(),
            overhead_us: histogram(),
            slices: (0..slices).map(|_| Slice::new()).collect(),
            slice,
            is_closed: false,
        }
    }

    /// A state that counts nothing.
    pub(super) fn closed() -> State {
        State { is_closed: true, ..State::new(0, Duration::ZERO) }
    }

    pub(super) fn due(&mut self, model: usize, at: Duration) {
        if self.is_closed {
            return;
        }
        self.models[model].offered += 1;
        self.models[model].waiting += 1;
        self.slice_at(at).offered += 1;
    }

    pub(super) fn lag(&mut self, lag: Duration) {
        record(&mut self.lag_us, lag);
    }

    pub(super) fn answered(&mut self, model: usize, at: Duration, outcome: Outcome, latency: Duration) {
        if self.is_closed {
            return;
        }
        self.models[model].end(outcome);
        record(&mut self.models[model].latency_us, latency);
        record(&mut self.latency_us, latency);
        let slice = self.slice_at(at);
        slice.in_slo += u64::from(outcome == Outcome::Ok);
        slice.latency_us.saturating_record(micros(latency));
    }

    pub(super) fn explained(&mut self, queue: Duration, compute: Duration, round_trip: Duration) {
        record(&mut self.queue_us, queue);
        record(&mut self.compute_us, compute);
        record(&mut self.overhead_us, round_trip.saturating_sub(queue + compute));
    }

    pub(super) fn lost(&mut self, model: usize, outcome: Outcome, message: String) {
        if self.is_closed {
            return;
        }
        self.models[model].end(outcome);
        self.models[model].messages.entry(outcome).or_insert(message);
    }

    pub(super) fn close(&mut self) {
        for tally in &mut self.models {
            for _ in 0..tally.waiting {
                tally.end(Outcome::Unanswered);
            }
        }
        self.is_closed = true;
    }

    fn slice_at(&mut self, at: Duration) -> &mut Slice {
        let index = (at.as_nanos() / self.slice.as_nanos()) as usize;
        let last = self.slices.len() - 1;
        &mut self.slices[index.min(last)]
    }
}

impl Tally {
    fn new() -> Tally {
        Tally {
            offered: 0,
            waiting: 0,
            outcomes: BTreeMap::new(),
            latency_us: histogram(),
            messages: BTreeMap::new(),
        }
    }

    fn end(&mut self, outcome: Outcome) {
        self.waiting -= 1;
        *self.outcomes.entry(outcome).or_default() += 1;
    }

    pub(crate) fn count(&self, outcome: Outcome) -> u64 {
        self.outcomes.get(&outcome).copied().unwrap_or(0)
    }

    /// Requests that are known not to be in SLO.
    pub(crate) fn bad(&self) -> u64 {
        self.offered - self.waiting - self.count(Outcome::Ok)
    }
}

impl Slice {
    fn new() -> Slice {
        Slice { offered: 0, in_slo: 0, latency_us: bounded(2) }
    }
}

fn histogram() -> Histogram<u64> {
    bounded(3)
}

fn bounded<C: hdrhistogram::Counter>(digits: u8) -> Histogram<C> {
    #[expect(clippy::expect_used, reason = "the bounds are constants that a histogram accepts")]
    Histogram::new_with_bounds(1, LATENCY_MAX_US, digits).expect("bounds of a histogram")
}

fn record(histogram: &mut Histogram<u64>, time: Duration) {
    histogram.saturating_record(micros(time));
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}
