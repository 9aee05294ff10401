//! How a run went, from its beginning to its end.

use downbeat_sim::html::format;
use downbeat_sim::html::lines::{LineChart, Mark, Point, Series};
use downbeat_sim::html::page::{colour, figure, nothing};
use downbeat_sim::html::scale::Axis;
use maud::Markup;

use crate::report::{LoadReport, SliceReport};

/// The latency axis ends at this multiple of the SLO at the latest: what is later is late, however late.
const SLO_MULTIPLE_MAX: f64 = 3.0;

/// Latency by when requests were due.
pub(super) fn latency(report: &LoadReport) -> Markup {
    let slices = &report.detail.slices;
    if slices.iter().all(|slice| slice.p50_ms.is_nan()) {
        return figure("wide", "Latency over time", "", &nothing("No request had a result."));
    }
    let slo = common_slo(report);
    let slowest = slices.iter().map(|slice| slice.max_ms).fold(0.0, f64::max);
    let end = slo.map_or(slowest, |slo| slowest.clamp(slo, slo * SLO_MULTIPLE_MAX));
    let chart = LineChart {
        x: time_axis(report),
        y: Axis::from_zero([end], "latency, ms"),
        series: vec![
            line("p50", 0, slices, |slice| slice.p50_ms, format::ms),
            line("p99", 1, slices, |slice| slice.p99_ms, format::ms),
            line("longest", 3, slices, |slice| slice.max_ms, format::ms),
        ],
        marks: slo.map(|slo| Mark::Across(slo, format!("SLO {}", format::ms(slo)))).into_iter().collect(),
        summary: "Latency percentiles over the time of the run".to_owned(),
    };
    let note = "Of all models together, by when a request should have been sent.";
    figure("wide", "Latency over time", note, &chart.draw())
}

/// What was offered and what was answered in time.
pub(super) fn rates(report: &LoadReport) -> Markup {
    let slices = &report.detail.slices;
    if slices.is_empty() {
        return figure("", "Requests over time", "", &nothing("Nothing was measured."));
    }
    let chart = LineChart {
        x: time_axis(report),
        y: Axis::from_zero(slices.iter().map(|slice| slice.offered_rps), "requests per second"),
        series: vec![
            line("offered", 0, slices, |slice| slice.offered_rps, format::rps),
            line("in SLO", 2, slices, |slice| slice.in_slo_rps, format::rps),
        ],
        marks: Vec::new(),
        summary: "Requests offered and answered in time, over the time of the run".to_owned(),
    };
    figure("", "Requests over time", "Where the lines part, requests were late or lost.", &chart.draw())
}

fn time_axis(report: &LoadReport) -> Axis {
    Axis::from_zero([report.duration_s], "seconds since the end of warm-up").ending_at(report.duration_s)
}

fn line(
    label: &str,
    place: usize,
    slices: &[SliceReport],
    value: fn(&SliceReport) -> f64,
    say: fn(f64) -> String,
) -> Series {
    let point = |slice: &SliceReport| {
        let y = value(slice);
        Point {
            x: slice.at_s,
            y,
            hint: Some(format!("{label} at {} s: {}", format::number(slice.at_s), say(y))),
        }
    };
    Series { label: label.to_owned(), class: colour(place), points: slices.iter().map(point).collect() }
}

/// The SLO, where all models have the same.
fn common_slo(report: &LoadReport) -> Option<f64> {
    let first = report.models.first()?.slo_ms?;
    report.models.iter().all(|model| model.slo_ms == Some(first)).then_some(first)
}
