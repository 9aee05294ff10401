//! The goodput of a server: the highest rate at which every model keeps its objective.

use crate::control::Control;
use crate::loader::Loader;
use crate::report::{LoadReport, Probe, SearchReport};
use crate::run::{Progress, RunSettings};
use crate::search::{Attempts, Found, Search};
use crate::summary::is_stalled;

/// The share of each model's requests that must be in SLO.
pub const IN_SLO_SHARE_MIN: f64 = 0.99;

/// Requests of the rarest model in a run below which whether 1 % of them are bad is chance.
const RAREST_REQUESTS: u64 = 1_000;

/// How a search is made.
#[derive(Clone, Copy, Debug)]
pub struct GoodputSettings {
    /// The rate that is tried first.
    pub first_rps: f64,
    /// How far apart the highest rate that passed and the lowest that failed may be, as a share of the former.
    pub precision: f64,
    /// Nothing above is tried.
    pub highest_rps: f64,
    /// A rate that fails is tried this often before it has, each time with other arrivals. A run that fails while the
    /// client itself was stopped for a moment does not count, and is made again with the same ones.
    pub tries: u32,
}

impl Loader {
    /// Searches the highest rate at which every model has 99 % of its requests in SLO. The report is of the run at that
    /// rate, with the search beside it; where no rate passed, of the last run, be it to its end or not.
    ///
    /// Each rate has a run of the load's duration, which ends early when it is sure to fail. The next begins when all
    /// requests of the one before have been answered. `watch` is told of each rate as it is tried, and of its progress.
    pub async fn find_goodput(
        &self,
        settings: GoodputSettings,
        control: &Control,
        watch: &mut (dyn FnMut(f64, &Progress) + Send),
    ) -> LoadReport {
        let mut search = Search::new(settings.first_rps, settings.precision, settings.highest_rps);
        let mut report = SearchReport {
            in_slo_share_min: IN_SLO_SHARE_MIN,
            precision: settings.precision,
            ..Default::default()
        };
        let mut best: Option<LoadReport> = None;
        let mut last = LoadReport::default();
        let found = loop {
            let rate_rps = match search.next_rate() {
                Ok(rate) => rate,
                Err(found) => break Some(found),
            };
            let mut passed = false;
            let mut attempts = Attempts::new(settings.tries);
            while let Some(arrivals) = attempts.next() {
                let run = RunSettings {
                    rate_rps,
                    seed: self.load().seed.wrapping_add(arrivals),
                    warmup: self.load().warmup,
                    give_up_below: Some(IN_SLO_SHARE_MIN),
                };
                let ran = self.run_as(run, control, &mut |progress| watch(rate_rps, progress)).await;
                if control.is_stopped() {
                    last = ran.report;
                    break;
                }
                // Where nothing was due, nothing was missed.
                let worst = ran.report.in_slo_share_worst.unwrap_or(1.0);
                passed = !ran.given_up && worst >= IN_SLO_SHARE_MIN;
                let stalled = is_stalled(&ran.report.client_lag_ms, &self.load().models);
                let counts = !passed && attempts.failed(stalled);
                report.client_limited |= counts && !ran.report.client_kept_up;
                report.probes.push(Probe {
                    rate_rps,
                    passed,
                    in_slo_share_worst: worst,
                    client_lag_ms_p99: ran.report.client_lag_ms_p99,
                    stalled,
                    given_up: ran.given_up,
                });
                if passed {
                    best = Some(ran.report);
                    break;
                }
                last = ran.report;
            }
            if control.is_stopped() {
                break None;
            }
            search.tried(rate_rps, passed);
        };
        self.conclude(best, last, report, found)
    }

    fn conclude(
        &self,
        best: Option<LoadReport>,
        last: LoadReport,
        mut search: SearchReport,
        found: Option<Found>,
    ) -> LoadReport {
        let passed = best.is_some();
        let mut report = best.unwrap_or(last);
        report.goodput_rps = if passed { report.rate_rps } else { 0.0 };
        report.interrupted = found.is_none();
        search.capped = matches!(found, Some(Found::AtLeast(_)));
        // Where the search ends it is the server that was judged; what the client was like counts at every rate.
        if search.client_limited {
            report.notes.push(
                "some rate failed while the client itself could not keep up: the server may do better"
                    .to_owned(),
            );
        }
        if search.capped {
            report.notes.push(
                "the highest rate allowed passed: the goodput is this or more (--highest-rate)".to_owned(),
            );
        }
        if !passed {
            report.notes.push("no rate passed so far; the numbers are of the last one tried".to_owned());
        }
        if let Some(model) =
            report.models.iter().filter(|m| passed && m.offered < RAREST_REQUESTS).min_by_key(|m| m.offered)
        {
            report.notes.push(format!(
                "model '{}' had only {} requests in the run: whether 1 % of them are bad is chance; --min-requests \
                 makes it surer",
                model.name, model.offered
            ));
        }
        report.search = Some(search);
        report
    }
}
