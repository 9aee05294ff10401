//! The distribution of latencies.

use downbeat_sim::html::format;
use downbeat_sim::html::lines::{LineChart, Mark, Point, Series};
use downbeat_sim::html::page::{COLOURS, colour, figure, nothing};
use downbeat_sim::html::scale::Axis;
use maud::Markup;

use crate::report::{LoadReport, ModelReport};

/// The tail is drawn down to one request in 10,000.
const TAIL_FLOOR: f64 = 1e-4;
/// The axis ends at this multiple of the SLO at the latest.
const SLO_MULTIPLE_MAX: f64 = 2.5;
/// What is left free beyond the slowest request.
const HEADROOM: f64 = 1.06;

/// The share of requests slower than x, on a logarithmic axis: a line crosses 1 % at its 99th percentile. Models with
/// different SLOs are drawn in units of theirs.
pub(super) fn tail(report: &LoadReport) -> Markup {
    let slo = |model: &ModelReport| model.slo_ms.filter(|slo| *slo > 0.0);
    let first = report.models.first().and_then(slo);
    let in_ms = report.models.iter().any(|model| slo(model).is_none())
        || report.models.iter().all(|model| slo(model) == first);
    let unit = |model: &ModelReport| if in_ms { 1.0 } else { slo(model).unwrap_or(1.0) };
    let limit = if in_ms {
        first.filter(|_| report.models.iter().all(|model| slo(model) == first))
    } else {
        Some(1.0)
    };

    let mut series: Vec<Series> = worst_first(report)
        .into_iter()
        .filter_map(|index| Some((index, report.detail.latency_cdf.get(index)?)))
        .filter(|(_, cdf)| !cdf.is_empty())
        .take(COLOURS)
        .enumerate()
        .map(|(place, (index, cdf))| {
            let model = &report.models[index];
            let start = cdf.first().map(|(ms, _)| Point { x: ms / unit(model), y: 1.0, hint: None });
            let rest =
                cdf.iter().map(|(ms, share)| Point { x: ms / unit(model), y: 1.0 - share, hint: None });
            Series {
                label: model.name.clone(),
                class: colour(place),
                points: start.into_iter().chain(rest).collect(),
            }
        })
        .collect();
    if series.is_empty() {
        return figure("", "Distribution of latencies", "", &nothing("No request had a result."));
    }
    let slowest =
        series.iter().flat_map(|line| &line.points).map(|point| point.x).fold(limit.unwrap_or(0.0), f64::max);
    let end = limit.map_or(slowest, |limit| slowest.min(limit * SLO_MULTIPLE_MAX)) * HEADROOM;
    for line in &mut series {
        line.points.retain(|point| point.x <= end);
    }
    let mut marks = vec![Mark::Across(0.01, "1 % (p99)".to_owned())];
    marks.extend(limit.map(|limit| {
        Mark::Up(limit, if in_ms { format!("SLO {}", format::ms(limit)) } else { "SLO".to_owned() })
    }));
    let shown = series.len();
    let chart = LineChart {
        x: Axis::from_zero([end], if in_ms { "latency, ms" } else { "latency ÷ the model's SLO" })
            .ending_at(end),
        y: Axis::log_share(TAIL_FLOOR, "share of requests slower than x"),
        series,
        marks,
        summary: "Share of requests slower than a latency, per model".to_owned(),
    };
    let which = if shown < report.models.len() { "The worst models. " } else { "" };
    let note = format!("{which}Where a line crosses 1 % is its p99; left of the SLO is in time.");
    figure("", "Distribution of latencies", &note, &chart.draw())
}

/// The models' indices by rising share in SLO.
fn worst_first(report: &LoadReport) -> Vec<usize> {
    let mut order: Vec<usize> = (0..report.models.len()).collect();
    let share = |index: &usize| report.models[*index].in_slo_share.unwrap_or(1.0);
    order.sort_by(|a, b| share(a).total_cmp(&share(b)));
    order
}
