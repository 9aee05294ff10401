//! What came of a load.

use downbeat_sched::{RequestId, Span, Time};
use hdrhistogram::Histogram;
use serde::Serialize;

use super::Load;
use super::stalls::Stalls;

/// The authors' rule: no event of the load runs later than this.
const LATE: Span = Span::from_millis(2);

/// Less than this part of the requests may be dropped.
const DROPPED_MAX: f64 = 0.01;

/// What one shard's host counts of its requests, and how late it is itself.
#[derive(Clone, Debug)]
pub(super) struct Account {
    from: Time,
    until: Time,
    /// The first request that counts.
    first: Option<RequestId>,
    offered: u64,
    in_slo: u64,
    late: u64,
    dropped: u64,
    grants: u64,
    rows: u64,
    /// By how many nanoseconds events run late.
    lag: Histogram<u64>,
    /// Events that ran too late.
    too_late: u64,
    /// Those of them that would not have, had the thread had its processor all the time.
    too_late_by_stalls: u64,
    /// Only threads that never sleep can tell.
    stalls: Option<Stalls>,
}

impl Account {
    pub(super) fn new(from: Time, duration: Span) -> Account {
        let mut lag =
            Histogram::new_with_bounds(1, 60_000_000_000, 2).unwrap_or_else(|_| default_histogram());
        lag.auto(true);
        Account {
            from,
            until: from + duration,
            first: None,
            offered: 0,
            in_slo: 0,
            late: 0,
            dropped: 0,
            grants: 0,
            rows: 0,
            lag,
            too_late: 0,
            too_late_by_stalls: 0,
            stalls: None,
        }
    }

    pub(super) fn watching_stalls(self) -> Account {
        Account { stalls: Some(Stalls::default()), ..self }
    }

    /// To be called in every turn.
    #[inline]
    pub(super) fn look(&mut self, now: Time) {
        if let Some(stalls) = &mut self.stalls {
            stalls.look(now);
        }
    }

    pub(super) fn measured_from(&self) -> Time {
        self.from
    }

    pub(super) fn measured_until(&self) -> Time {
        self.until
    }

    /// An event that was due at `due` runs now.
    #[inline]
    pub(super) fn event(&mut self, due: Time, now: Time) {
        if due >= self.from && due < self.until {
            let lag = now.since(due);
            self.lag.saturating_record(lag.as_nanos());
            if lag > LATE {
                self.too_late(due, lag);
            }
        }
    }

    #[cold]
    fn too_late(&mut self, due: Time, lag: Span) {
        self.too_late += 1;
        let away = self.stalls.as_ref().map_or(Span::ZERO, |stalls| stalls.since(due));
        self.too_late_by_stalls += u64::from(lag - away <= LATE);
    }

    #[inline]
    pub(super) fn arrived(&mut self, at: Time, request: RequestId) {
        if at >= self.from {
            self.first.get_or_insert(request);
            self.offered += 1;
        }
    }

    pub(super) fn started(&mut self, now: Time, requests: usize) {
        if now >= self.from && now < self.until {
            self.grants += 1;
            self.rows += requests as u64;
        }
    }

    #[inline]
    pub(super) fn finished(&mut self, request: RequestId, in_slo: bool) {
        if self.counts(request) {
            if in_slo { self.in_slo += 1 } else { self.late += 1 }
        }
    }

    pub(super) fn dropped(&mut self, request: RequestId) {
        self.dropped += u64::from(self.counts(request));
    }

    #[inline]
    fn counts(&self, request: RequestId) -> bool {
        self.first.is_some_and(|first| request >= first)
    }
}

fn default_histogram() -> Histogram<u64> {
    // Bounds that are always valid.
    #[expect(clippy::unwrap_used, reason = "2 significant digits are allowed")]
    Histogram::new(2).unwrap()
}

/// What came of a load.
#[derive(Clone, Debug, Serialize)]
pub struct LoadReport {
    /// What the scheduler was loaded with.
    pub load: Load,
    /// Requests that came in while it was measured, per second.
    pub requests_per_s: f64,
    /// Batches that were started, per second.
    pub grants_per_s: f64,
    /// Requests that came in while it was measured.
    pub offered: u64,
    /// The part of them that the scheduler gave up.
    pub dropped: f64,
    /// The part of them that finished, but too late.
    pub late: f64,
    /// The part of them that finished inside the SLO.
    pub in_slo: f64,
    /// The part of them that had not left when it ended.
    pub unfinished: f64,
    /// By how much events of the load ran late.
    pub lag_us: LagReport,
    /// Events of the load that ran more than 2 ms late.
    pub late_events: u64,
    /// Those of them that would not have, had the threads had their processors all the time; only threads that never
    /// sleep can tell.
    pub late_events_by_stalls: Option<u64>,
    /// How long the shards' threads were without their processors, all together, in milliseconds.
    pub stalled_ms: Option<f64>,
    /// No event ran more than 2 ms late, and less than 1 % of requests were dropped, late or unfinished.
    pub pass: bool,
    /// Requests in a batch, on average.
    pub mean_batch: f64,
    /// Processor time of the whole process for each request. Threads that spin use all there is.
    pub cpu_us_per_request: f64,
}

/// By how many microseconds events ran late.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct LagReport {
    /// Half of them by no more than this.
    pub p50: f64,
    /// 99 %.
    pub p99: f64,
    /// 99.9 %.
    pub p999: f64,
    /// 99.99 %.
    pub p9999: f64,
    /// 99.999 %.
    pub p99999: f64,
    /// All of them.
    pub max: f64,
}

impl LoadReport {
    pub(super) fn sum(load: &Load, accounts: impl Iterator<Item = Account>, cpu_used: Span) -> LoadReport {
        let mut total = Account::new(Time::ZERO, load.duration);
        let mut stalled = Some(Span::ZERO);
        for account in accounts {
            total.offered += account.offered;
            total.in_slo += account.in_slo;
            total.late += account.late;
            total.dropped += account.dropped;
            total.grants += account.grants;
            total.rows += account.rows;
            total.too_late += account.too_late;
            total.too_late_by_stalls += account.too_late_by_stalls;
            stalled = stalled.zip(account.stalls).map(|(sum, stalls)| sum + stalls.total());
            // Both count the same range.
            let _ = total.lag.add(&account.lag);
        }
        let seconds = load.duration.as_secs_f64();
        let part = |count: u64| if total.offered == 0 { 0.0 } else { count as f64 / total.offered as f64 };
        let left = total.in_slo + total.late + total.dropped;
        let lag = |quantile: f64| total.lag.value_at_quantile(quantile) as f64 / 1e3;
        let lag_us = LagReport {
            p50: lag(0.5),
            p99: lag(0.99),
            p999: lag(0.999),
            p9999: lag(0.9999),
            p99999: lag(0.99999),
            max: total.lag.max() as f64 / 1e3,
        };
        let bad = 1.0 - part(total.in_slo);
        LoadReport {
            load: load.clone(),
            requests_per_s: total.offered as f64 / seconds,
            grants_per_s: total.grants as f64 / seconds,
            offered: total.offered,
            dropped: part(total.dropped),
            late: part(total.late),
            in_slo: part(total.in_slo),
            unfinished: part(total.offered.saturating_sub(left)),
            lag_us,
            late_events: total.too_late,
            late_events_by_stalls: stalled.map(|_| total.too_late_by_stalls),
            stalled_ms: stalled.map(Span::as_millis_f64),
            pass: total.offered > 0 && total.lag.max() <= LATE.as_nanos() && bad < DROPPED_MAX,
            mean_batch: total.rows as f64 / total.grants.max(1) as f64,
            cpu_us_per_request: cpu_used.as_secs_f64() * 1e6 / total.offered.max(1) as f64,
        }
    }
}

/// The processor time of this process.
pub(super) struct CpuMeter;

impl CpuMeter {
    pub(super) fn start() -> CpuMeter {
        CpuMeter
    }

    pub(super) fn used(&self) -> Span {
        let used = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
        Span::from_nanos(used.tv_sec as u64 * 1_000_000_000 + used.tv_nsec as u64)
    }
}
