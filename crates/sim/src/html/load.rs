//! What happens as the offered load rises: bad rate, requests in SLO, GPUs used.

use maud::Markup;

use super::goodput::{Ranked, Ranking};
use super::lines::{LineChart, Mark, Point, Series};
use super::page::figure;
use super::scale::Axis;
use super::{BAD_RATE_LIMIT, format};
use crate::{GoodputReport, LoadPoint};

/// Bad rates below this are drawn on the floor of the chart: one request in 10,000.
const BAD_RATE_FLOOR: f64 = 1e-4;

/// The worst model's bad rate, on a logarithmic axis that keeps the limit in sight.
pub(super) fn bad_rate(report: &GoodputReport, ranking: &Ranking<'_>) -> Markup {
    let chart = LineChart {
        x: load_axis(report),
        y: Axis::log_share(BAD_RATE_FLOOR, "bad rate of the worst model"),
        series: series(ranking, |point| point.bad_rate_worst),
        marks: vec![
            Mark::Across(BAD_RATE_LIMIT, "1 % limit".to_owned()),
            Mark::Up(report.fluid_bound_rps, "fluid bound".to_owned()),
        ],
        summary: "Bad rate of the worst model over offered load, per policy".to_owned(),
    };
    let note =
        "First seed. Goodput is where a line first rises above 1 %; what is below 0.01 % lies on the floor.";
    figure("", "Where each policy leaves its SLOs", note, &chart.draw())
}

/// Requests in SLO over offered load: whether a policy holds or collapses when overloaded.
pub(super) fn in_slo(report: &GoodputReport, ranking: &Ranking<'_>) -> Markup {
    let served = report.policies.values().flat_map(|p| &p.curve).map(|point| point.in_slo_rps);
    let (x, y) = (load_axis(report), Axis::from_zero(served, "requests in SLO, rps"));
    let end = x.end().min(y.end());
    let mut series = series(ranking, |point| point.in_slo_rps);
    series.push(straight("all that is offered", end, end));
    let chart = LineChart {
        x,
        y,
        series,
        marks: vec![Mark::Up(report.fluid_bound_rps, "fluid bound".to_owned())],
        summary: "Requests in SLO over offered load, per policy".to_owned(),
    };
    let note = "First seed. A line that bends down collapses under overload; \
                one that stays flat sheds only the surplus.";
    figure("", "What is still answered in time past the limit", note, &chart.draw())
}

/// GPUs used over offered load, against use in proportion to load.
pub(super) fn gpus_used(report: &GoodputReport, ranking: &Ranking<'_>) -> Markup {
    let count =
        report.policies.values().filter_map(|p| p.at_goodput.as_ref()).map(|run| run.gpus.count).max();
    let mut series = series(ranking, |point| point.gpus_used as f64);
    if let Some(count) = count {
        series.push(straight("in proportion to load", report.fluid_bound_rps, count as f64));
    }
    let used = report.policies.values().flat_map(|p| &p.curve).map(|point| point.gpus_used as f64);
    let chart = LineChart {
        x: load_axis(report),
        y: Axis::from_zero(used.chain(count.map(|n| n as f64)), "GPUs that carry 99 % of the work").whole(),
        series,
        marks: vec![Mark::Up(report.fluid_bound_rps, "fluid bound".to_owned())],
        summary: "GPUs used over offered load, per policy".to_owned(),
    };
    let note = "First seed. Nearer the dotted line is better: GPUs above it are paid for but not needed.";
    figure("", "GPUs that the load really occupies", note, &chart.draw())
}

fn series(ranking: &Ranking<'_>, y: fn(&LoadPoint) -> f64) -> Vec<Series> {
    let one = |ranked: &Ranked<'_>| {
        let point =
            |load: &LoadPoint| Point { x: load.offered_rps, y: y(load), hint: Some(hint(ranked.name, load)) };
        Series {
            label: ranked.name.to_owned(),
            class: ranked.class.clone(),
            points: ranked.policy.curve.iter().map(point).collect(),
        }
    };
    ranking.0.iter().map(one).collect()
}

/// A reference from the origin to a point.
fn straight(label: &str, x: f64, y: f64) -> Series {
    let end = |x, y| Point { x, y, hint: None };
    Series { label: label.to_owned(), class: "reference".to_owned(), points: vec![end(0.0, 0.0), end(x, y)] }
}

fn hint(policy: &str, load: &LoadPoint) -> String {
    format!(
        "{policy} at {}: {} bad, {} in SLO, {} used",
        format::rps(load.offered_rps),
        format::percent(load.bad_rate_worst),
        format::rps(load.in_slo_rps),
        format::counted(load.gpus_used, "GPU"),
    )
}

fn load_axis(report: &GoodputReport) -> Axis {
    Axis::from_zero(loads(report).chain([report.fluid_bound_rps]), "offered load, rps")
}

fn loads(report: &GoodputReport) -> impl Iterator<Item = f64> {
    report.policies.values().flat_map(|p| &p.curve).map(|point| point.offered_rps)
}
