//! How long requests took, against their SLOs.

use maud::Markup;

use super::cast::{Cast, falling, name, slo_ms};
use super::lines::{LineChart, Mark, Point, Series};
use super::page::{figure, nothing};
use super::scale::Axis;
use super::{BAD_RATE_LIMIT, format};
use crate::{ModelReport, RunReport};

/// The tail is drawn down to one request in 10,000.
const TAIL_FLOOR: f64 = 1e-4;
/// The latency axis ends at this multiple of the SLO at the latest: what is later is late, however late.
const SLO_MULTIPLE_MAX: f64 = 2.5;
/// What is left free beyond the slowest request.
const HEADROOM: f64 = 1.06;
/// Points of a pooled distribution.
const POOLED_POINTS: usize = 240;

/// The share of requests slower than x, on a logarithmic axis: a line crosses 1 % at its 99th percentile.
pub(super) fn tail(run: &RunReport, cast: &Cast) -> Markup {
    let measure = Measure::of(run);
    let mut series = named_tails(run, cast, measure);
    if series.is_empty() {
        return figure("", "Latency", "", &nothing("No request ran."));
    }
    let slowest = series.iter().flat_map(|s| &s.points).map(|p| p.x).fold(measure.slo(), f64::max);
    let end = slowest.min(measure.slo() * SLO_MULTIPLE_MAX) * HEADROOM;
    for line in &mut series {
        line.points.retain(|point| point.x <= end);
    }
    let pooled = pooled_tail(run, cast, measure, end);
    if !pooled.is_empty() {
        series.push(Series { label: cast.pooled_label(), class: "rest".to_owned(), points: pooled });
    }
    let chart = LineChart {
        x: Axis::from_zero([end], measure.title()).ending_at(end),
        y: Axis::log_share(TAIL_FLOOR, "share of requests slower than x"),
        series,
        marks: vec![
            Mark::Across(BAD_RATE_LIMIT, "1 % (p99)".to_owned()),
            Mark::Up(measure.slo(), measure.slo_label()),
        ],
        summary: "Share of requests slower than a latency, per model".to_owned(),
    };
    let note = "Of the requests that ran. Where a line crosses 1 % is its p99; left of the SLO is in time.";
    figure("", &title(run), note, &chart.draw())
}

/// What latencies are measured in.
#[derive(Clone, Copy, Debug)]
enum Measure {
    /// In ms, when all models have this SLO.
    Ms(f64),
    /// Each in its own SLO, so that models with different ones share an axis.
    Slos,
}

impl Measure {
    fn of(run: &RunReport) -> Self {
        let first = slo_ms(run, 0);
        match first {
            Some(slo) if (0..run.models.len()).all(|model| slo_ms(run, model) == first) => Self::Ms(slo),
            _ => Self::Slos,
        }
    }

    /// How many ms one unit has for a model; nothing when the model has no SLO to measure by.
    fn unit_ms(self, run: &RunReport, model: usize) -> Option<f64> {
        match self {
            Self::Ms(_) => Some(1.0),
            Self::Slos => slo_ms(run, model),
        }
    }

    fn slo(self) -> f64 {
        match self {
            Self::Ms(slo) => slo,
            Self::Slos => 1.0,
        }
    }

    fn title(self) -> &'static str {
        match self {
            Self::Ms(_) => "latency, ms",
            Self::Slos => "latency ÷ the model's SLO",
        }
    }

    fn slo_label(self) -> String {
        match self {
            Self::Ms(slo) => format!("SLO {}", format::ms(slo)),
            Self::Slos => "SLO".to_owned(),
        }
    }
}

fn named_tails(run: &RunReport, cast: &Cast, measure: Measure) -> Vec<Series> {
    let mut series = Vec::new();
    for model in cast.named.iter().copied() {
        let Some(points) = tail_of(run, model, measure) else { continue };
        series.push(Series { label: name(run, model).to_owned(), class: cast.class(model), points });
    }
    series
}

/// One minus a model's distribution; nothing when none of its requests ran.
fn tail_of(run: &RunReport, model: usize, measure: Measure) -> Option<Vec<Point>> {
    let unit_ms = measure.unit_ms(run, model)?;
    let cdf = run.detail.latency_cdf.get(model)?;
    let (fastest_ms, _) = cdf.first()?;
    // Everything is slower than a little less than the fastest.
    let start = Point { x: fastest_ms / unit_ms, y: 1.0, hint: None };
    let rest = cdf.iter().map(|(x_ms, share)| Point { x: x_ms / unit_ms, y: 1.0 - share, hint: None });
    Some([start].into_iter().chain(rest).collect())
}

/// The tail of the pooled models together, each weighted by the requests it ran.
fn pooled_tail(run: &RunReport, cast: &Cast, measure: Measure, end: f64) -> Vec<Point> {
    let member = |model: &usize| {
        let report = run.models.get(*model)?;
        let cdf = run.detail.latency_cdf.get(*model)?;
        Some((measure.unit_ms(run, *model)?, cdf, (report.in_slo + report.late) as f64))
    };
    let members: Vec<_> = cast.pooled.iter().filter_map(member).collect();
    let total: f64 = members.iter().map(|(_, _, weight)| weight).sum();
    if total <= 0.0 {
        return Vec::new();
    }
    let share_slower = |x: f64| {
        let slower = members.iter().map(|(unit, cdf, weight)| weight * (1.0 - share_until(cdf, x * unit)));
        slower.sum::<f64>() / total
    };
    let xs = (0..=POOLED_POINTS).map(|i| end * i as f64 / POOLED_POINTS as f64);
    let mut points: Vec<Point> = xs.map(|x| Point { x, y: share_slower(x), hint: None }).collect();
    // One point on the floor ends the line; more would underline the axis.
    let above_floor = points.iter().take_while(|point| point.y > TAIL_FLOOR).count();
    points.truncate(above_floor + 1);
    points
}

/// The share of requests that took at most `latency_ms`.
fn share_until(cdf: &[(f64, f64)], latency_ms: f64) -> f64 {
    let after = cdf.partition_point(|(x, _)| *x <= latency_ms);
    after.checked_sub(1).and_then(|last| cdf.get(last)).map_or(0.0, |(_, share)| *share)
}

/// The model whose 99th percentile is nearest its SLO or furthest past it, with the two.
pub(super) fn tightest_model(run: &RunReport) -> Option<(usize, f64, f64)> {
    let with_slo = |(index, model): (usize, &ModelReport)| Some((index, model.p99_ms, slo_ms(run, index)?));
    let mut models: Vec<_> =
        run.models.iter().enumerate().filter_map(with_slo).filter(|m| m.1.is_finite()).collect();
    models.sort_by(|a, b| falling(a.1 / a.2, b.1 / b.2));
    models.first().copied()
}

/// Whether a model's p99 is inside its SLO and can be believed: it is of the requests that ran, and says nothing where
/// many did not.
pub(super) fn in_time(run: &RunReport, model: usize) -> bool {
    let Some(report) = run.models.get(model) else { return true };
    let late = slo_ms(run, model).is_some_and(|slo| report.p99_ms > slo);
    !(late || report.bad_rate > BAD_RATE_LIMIT)
}

fn title(run: &RunReport) -> String {
    let Some((model, p99, slo)) = tightest_model(run) else { return "Latency against the SLO".to_owned() };
    let whose = if run.models.len() == 1 { String::new() } else { format!(" ({})", name(run, model)) };
    let (p99, slo, bad_rate) = (format::ms(p99), format::ms(slo), run.models[model].bad_rate);
    if in_time(run, model) {
        format!("The tightest p99, {p99}, keeps its SLO of {slo}{whose}")
    } else if bad_rate > BAD_RATE_LIMIT {
        format!("What ran has a p99 of {p99} of {slo}, and {} were bad{whose}", format::percent(bad_rate))
    } else {
        format!("The tightest p99, {p99}, misses its SLO of {slo}{whose}")
    }
}
