//! The page of `downbeat autoscale replay`: GPUs against load over the day, what was bad, what it cost.

use maud::{Markup, html};

use super::lines::{LineChart, Mark, Point, Series};
use super::page::{Mood, Tile, colour, figure, notes, nothing, page, tiles};
use super::scale::Axis;
use super::{BAD_RATE_LIMIT, format};
use crate::{Change, MinuteReport, ReplayReport, ScaledRun};

/// Bad rates below this are drawn on the floor of the chart: one request in 10,000.
const BAD_RATE_FLOOR: f64 = 1e-4;

/// A line of so many points is drawn whole; of more, some minutes are left out.
const POINTS_MAX: usize = 1_500;

const FOOT: &str = "Simulated by Downbeat. Every rule sees the same arrivals, and the same scheduler runs its GPUs. A GPU is paid for \
                    from when it is asked for to when it is given back. A model-minute counts with 1,000 requests or more, and is \
                    missed when over 1 % of them were late, dropped or unanswered; it is excused for the time that new GPUs take to \
                    come, and 30 s, after a surge or a failure.";

/// The page of a replay: a complete HTML document without references to other files.
pub fn replay_page(report: &ReplayReport) -> String {
    let body = html! {
        (notes(&report.notes))
        @match report.runs.first() {
            None => { (nothing("There is no run to show.")) },
            Some(first) => {
                (headline(first))
                (gpus(report))
                (load(report, first))
                (bad_rate(report))
                (comparison(report))
                (changes(first))
            },
        }
    };
    page(&report.scenario, "Autoscaling replay", &lead(report), &body, FOOT)
}

fn lead(report: &ReplayReport) -> Markup {
    let Some(run) = report.runs.first() else { return html! {} };
    html! {
        "Over " (hours(report.duration_s)) ", " strong { (run.name) } " pays for "
        (format::number(run.gpu_hours)) " GPU-hours, " (format::percent(run.saved)) " less than fixed peak capacity."
    }
}

fn headline(run: &ScaledRun) -> Markup {
    tiles(&[
        Tile {
            what: "GPU-hours",
            value: format::number(run.gpu_hours),
            note: format!("{} to {} GPUs", run.gpus_least, run.gpus_most),
            mood: Mood::Neutral,
        },
        Tile {
            what: "saved against fixed peak",
            value: format::percent(run.saved),
            note: format!("{} of what the clairvoyant saves", format::percent(run.saved_of_clairvoyant)),
            mood: Mood::Neutral,
        },
        Tile {
            what: "model-minutes missed",
            value: format::count(run.missed_unexcused),
            note: format!(
                "of {}; {} more are excused",
                format::count(run.model_minutes),
                format::count(run.missed - run.missed_unexcused)
            ),
            mood: Mood::of_limit(run.missed_unexcused as f64, 0.0),
        },
        Tile {
            what: "changes",
            value: format::count(run.changes),
            note: format!("{} after the first ten minutes", format::count(run.changes_after_start)),
            mood: Mood::Neutral,
        },
    ])
}

/// GPUs over time, of every rule.
fn gpus(report: &ReplayReport) -> Markup {
    let paid = |minute: &MinuteReport| f64::from(minute.gpus + minute.coming);
    let most = report.runs.iter().flat_map(|run| &run.minutes).map(paid);
    let mut series: Vec<Series> =
        report.runs.iter().enumerate().map(|(index, run)| line(run, colour(index), paid)).collect();
    if let Some(first) = report.runs.first() {
        let mut needed = line(first, "reference".to_owned(), |minute| minute.needed);
        needed.label = "what the traffic keeps busy".to_owned();
        series.push(needed);
    }
    let chart = LineChart {
        x: time_axis(report),
        y: Axis::from_zero(most, "GPUs").whole(),
        series,
        marks: marks(report),
        summary: "GPUs over time, per rule".to_owned(),
    };
    let note = "Those that were asked for and are still coming included. Nearer the dotted line is cheaper.";
    figure("wide", "GPUs that each rule pays for", note, &chart.draw())
}

fn load(report: &ReplayReport, first: &ScaledRun) -> Markup {
    let mut series = line(first, colour(0), |minute| minute.rate_rps);
    series.label = "all models".to_owned();
    let chart = LineChart {
        x: time_axis(report),
        y: Axis::from_zero(first.minutes.iter().map(|minute| minute.rate_rps), "requests per second"),
        series: vec![series],
        marks: marks(report),
        summary: "Requests per second over time".to_owned(),
    };
    figure("wide", "The load", "The same for every rule.", &chart.draw())
}

fn bad_rate(report: &ReplayReport) -> Markup {
    let bad = |minute: &MinuteReport| minute.bad_rate.max(BAD_RATE_FLOOR);
    let mut across = marks(report);
    across.push(Mark::Across(BAD_RATE_LIMIT, "1 % limit".to_owned()));
    let chart = LineChart {
        x: time_axis(report),
        y: Axis::log_share(BAD_RATE_FLOOR, "bad rate of all models"),
        series: report.runs.iter().enumerate().map(|(index, run)| line(run, colour(index), bad)).collect(),
        marks: across,
        summary: "Bad rate over time, per rule".to_owned(),
    };
    let note = "What is below 0.01 % lies on the floor. The clairvoyant takes all that the limit allows.";
    figure("wide", "What users see", note, &chart.draw())
}

fn comparison(report: &ReplayReport) -> Markup {
    let body = html! {
        div.scroll tabindex="0" role="region" aria-label="Rules" {
            table {
                thead { tr {
                    @for heading in ["Rule", "GPU-hours", "Saved", "Of clairvoyant", "Bad", "Missed", "Unexcused", "Changes", "What it does"] {
                        th scope="col" { (heading) }
                    }
                } }
                tbody {
                    @for (index, run) in report.runs.iter().enumerate() {
                        tr {
                            th scope="row" { span class={ "swatch area " (colour(index)) } {} (run.name) }
                            td { (format::number(run.gpu_hours)) }
                            td { (format::percent(run.saved)) }
                            td { (format::percent(run.saved_of_clairvoyant)) }
                            td { (format::percent(run.bad_rate)) }
                            td { (format::count(run.missed)) }
                            td.miss[run.missed_unexcused > 0] { (format::count(run.missed_unexcused)) }
                            td { (format::count(run.changes)) }
                            td { (run.about) }
                        }
                    }
                }
            }
        }
    };
    figure("wide", "Rule by rule", "", &body)
}

/// Every change that has a reason in words.
fn changes(run: &ScaledRun) -> Markup {
    let told: Vec<&Change> = run.log.iter().filter(|change| !change.explanation.is_empty()).collect();
    let body = html! {
        @if told.is_empty() { (nothing("Nothing was changed.")) }
        div.scroll.tall[told.len() > 20] tabindex="0" role="region" aria-label="Changes" {
            table {
                thead { tr { @for heading in ["Time", "From", "To", "Reason", "In words"] { th scope="col" { (heading) } } } }
                tbody {
                    @for change in told {
                        tr {
                            th scope="row" { (clock(change.at_s)) }
                            td { (change.from) }
                            td { (change.to) }
                            td { (change.reason) }
                            td { (change.explanation) }
                        }
                    }
                }
            }
        }
    };
    figure("wide", "Every change, and why", &run.about, &body)
}

fn line(run: &ScaledRun, class: String, value: impl Fn(&MinuteReport) -> f64) -> Series {
    let step = run.minutes.len().div_ceil(POINTS_MAX).max(1);
    let minutes = run.minutes.iter().enumerate().step_by(step);
    let points =
        minutes.map(|(minute, report)| Point { x: (minute + 1) as f64 / 60.0, y: value(report), hint: None });
    Series { label: run.name.clone(), class, points: points.collect() }
}

fn time_axis(report: &ReplayReport) -> Axis {
    Axis::from_zero([report.duration_s / 3600.0], "hours").between(0.0, report.duration_s / 3600.0)
}

fn marks(report: &ReplayReport) -> Vec<Mark> {
    let mark = |excuse: &crate::Excuse| Mark::Up(excuse.from_s / 3600.0, excuse.why.clone());
    report.excuses.iter().map(mark).collect()
}

fn hours(seconds: f64) -> String {
    format!("{} hours", format::number(seconds / 3600.0))
}

/// Hours, minutes and seconds since the beginning.
fn clock(seconds: f64) -> String {
    let seconds = seconds as u64;
    format!("{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60)
}
