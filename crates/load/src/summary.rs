//! From the account of a run to its report.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::time::Duration;

use hdrhistogram::{Counter, Histogram};

use crate::account::{Slice, State, Tally};
use crate::mix::ModelLoad;
use crate::outcome::Outcome;
use crate::report::{Detail, LoadReport, ModelReport, Quantiles, ServerTimes, SliceReport};

/// The share of the tightest SLO that the client may be late by, at the 99th percentile: more, and what is measured is
/// the client too.
const LAG_SHARE: f64 = 0.05;
/// And where there is no SLO.
const LAG_MAX_MS: f64 = 5.0;
/// A client that is so many times later even once was stalled, and a server on the same machine likely too.
const STALL: f64 = 5.0;

/// The largest 99th percentile of the client's lag with which its numbers are believed.
pub(crate) fn lag_limit_ms(models: &[ModelLoad]) -> f64 {
    let tightest = models.iter().filter_map(|model| model.slo).min();
    tightest.map_or(LAG_MAX_MS, |slo| slo.as_secs_f64() * 1e3 * LAG_SHARE)
}

/// Whether a client with such lags, which is punctual otherwise, was stopped for a moment with the machine that it is
/// on.
pub(crate) fn is_stalled(lag_ms: &Quantiles, models: &[ModelLoad]) -> bool {
    let limit_ms = lag_limit_ms(models);
    lag_ms.p90 <= limit_ms && lag_ms.max > limit_ms * STALL
}

/// The report of a run that was measured for so long. What the account does not know is left empty.
pub(crate) fn summarise(models: &[ModelLoad], state: &State, measured: Duration) -> LoadReport {
    let reports: Vec<ModelReport> =
        models.iter().zip(&state.models).map(|(m, t)| model_report(m, t)).collect();
    let offered = reports.iter().map(|model| model.offered).sum();
    let in_slo: u64 = reports.iter().map(|model| model.in_slo).sum();
    let seconds = measured.as_secs_f64();
    let per_second = |count: u64| if seconds > 0.0 { count as f64 / seconds } else { 0.0 };
    let lag_ms = millis(state.lag_us.value_at_quantile(0.99));
    let limit_ms = lag_limit_ms(models);
    let mut notes = Vec::new();
    if lag_ms > limit_ms {
        notes.push(format!(
            "the client could not keep up: it sent requests up to {lag_ms:.1} ms late (p99; at most {limit_ms:.1} would do). \
             Latencies count from when requests were due, so they are too long, not too short. Lower the rate, give the \
             client cores of its own or more --connections"
        ));
    }
    let lags_ms = quantiles(&state.lag_us);
    if lag_ms <= limit_ms && is_stalled(&lags_ms, models) {
        let worst_ms = lags_ms.max;
        notes.push(format!(
            "the client was once {worst_ms:.1} ms late: the machine stalled, and what that hit is not the server's doing"
        ));
    }
    LoadReport {
        duration_s: seconds,
        offered,
        offered_rps: per_second(offered),
        completed: state.latency_us.len(),
        in_slo,
        in_slo_share: of_those(&reports, |model| model.in_slo)
            .zip(of_those(&reports, |model| model.offered))
            .map(|(in_slo, offered)| in_slo as f64 / offered as f64),
        in_slo_share_worst: reports.iter().filter_map(|model| model.in_slo_share).reduce(f64::min),
        goodput_rps: per_second(in_slo),
        outcomes: sum(&reports),
        latency_ms: quantiles(&state.latency_us),
        client_lag_ms_p99: lag_ms,
        client_lag_ms: lags_ms,
        client_kept_up: lag_ms <= limit_ms,
        server_ms: (!state.overhead_us.is_empty()).then(|| ServerTimes {
            queue: quantiles(&state.queue_us),
            compute: quantiles(&state.compute_us),
            overhead: quantiles(&state.overhead_us),
        }),
        models: reports,
        notes,
        detail: Detail {
            slices: slices(state, measured),
            latency_cdf: state.models.iter().map(|tally| cdf(&tally.latency_us)).collect(),
        },
        ..LoadReport::default()
    }
}

fn model_report(model: &ModelLoad, tally: &Tally) -> ModelReport {
    let in_slo = tally.count(Outcome::Ok);
    let mut outcomes: BTreeMap<&'static str, u64> =
        Outcome::all().map(|outcome| (outcome.label(), 0)).collect();
    for (outcome, count) in &tally.outcomes {
        *outcomes.entry(outcome.label()).or_default() += count;
    }
    ModelReport {
        name: model.name.clone(),
        slo_ms: model.slo.map(|slo| slo.as_secs_f64() * 1e3),
        offered: tally.offered,
        in_slo,
        in_slo_share: model.slo.filter(|_| tally.offered > 0).map(|_| in_slo as f64 / tally.offered as f64),
        outcomes,
        latency_ms: quantiles(&tally.latency_us),
        errors: tally.messages.iter().map(|(outcome, message)| (outcome.label(), message.clone())).collect(),
    }
}

/// The sum over models that have an SLO and had requests; none without such a model.
fn of_those(models: &[ModelReport], count: fn(&ModelReport) -> u64) -> Option<u64> {
    models.iter().filter(|model| model.in_slo_share.is_some()).map(count).reduce(|a, b| a + b)
}

fn sum(models: &[ModelReport]) -> BTreeMap<&'static str, u64> {
    let mut all = BTreeMap::new();
    for (&label, &count) in models.iter().flat_map(|model| &model.outcomes) {
        *all.entry(label).or_default() += count;
    }
    all
}

fn slices(state: &State, measured: Duration) -> Vec<SliceReport> {
    let width_s = state.slice.as_secs_f64();
    let measured_s = measured.as_secs_f64();
    let report = |(index, slice): (usize, &Slice)| {
        let begin_s = index as f64 * width_s;
        let length_s = (measured_s - begin_s).min(width_s);
        let at_quantile = |quantile| match slice.latency_us.is_empty() {
            true => f64::NAN,
            false => millis(slice.latency_us.value_at_quantile(quantile)),
        };
        SliceReport {
            at_s: begin_s + length_s / 2.0,
            offered_rps: slice.offered as f64 / length_s,
            in_slo_rps: slice.in_slo as f64 / length_s,
            p50_ms: at_quantile(0.5),
            p99_ms: at_quantile(0.99),
            max_ms: at_quantile(1.0),
        }
    };
    let begun = state.slices.iter().enumerate().take_while(|(index, _)| *index as f64 * width_s < measured_s);
    begun.map(report).collect()
}

fn cdf(histogram: &Histogram<u64>) -> Vec<(f64, f64)> {
    let all = histogram.len() as f64;
    let mut seen = 0;
    let step = |value: hdrhistogram::iterators::IterationValue<u64>| {
        seen += value.count_at_value();
        (millis(value.value_iterated_to()), seen as f64 / all)
    };
    histogram.iter_recorded().map(step).collect()
}

fn quantiles<C: Counter>(histogram: &Histogram<C>) -> Quantiles {
    if histogram.is_empty() {
        return Quantiles::default();
    }
    let at = |quantile| millis(histogram.value_at_quantile(quantile));
    Quantiles {
        p50: at(0.5),
        p90: at(0.9),
        p99: at(0.99),
        p999: at(0.999),
        max: millis(histogram.max()),
        mean: histogram.mean() / 1e3,
    }
}

fn millis(us: u64) -> f64 {
    us as f64 / 1e3
}
