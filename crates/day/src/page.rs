//! The page of a simulated day: load, GPUs, layouts, requests in SLO, steps. Drawn with the parts of the simulator's
//! pages.

mod layouts;
mod steps;
#[cfg(test)]
mod tests;

use downbeat_sim::html::format;
use downbeat_sim::html::lines::{LineChart, Mark, Point, Series};
use downbeat_sim::html::page::{Mood, Tile, colour, figure, notes, page, tiles};
use downbeat_sim::html::scale::Axis;
use maud::{Markup, html};

use crate::report::{DayMinute, DayReport};

/// Shares of bad requests below this are drawn on the floor of the chart: one request in 10,000.
const BAD_FLOOR: f64 = 1e-4;

/// A line of so many points is drawn whole; of more, some minutes are left out.
const POINTS_MAX: usize = 1_500;

const FOOT: &str = "Simulated by Downbeat: every request was scheduled by the code that serves, on the slices that there were at that moment. A \
                    GPU is paid for from when it is asked for to when it is given back. A service-minute counts with 1,000 \
                    requests or more, and is missed when over 1 % of them were late or refused; windows after surges and failures are those in which new \
                    instances cannot be there yet.";

/// A complete HTML document without references to other files. Every string passes through `maud`, which escapes it.
pub fn day_page(report: &DayReport) -> String {
    let body = html! {
        (notes(&report.notes))
        @for violation in &report.violations { p.caution { strong { "Promise broken: " } (violation) } }
        (headline(report))
        (load(report))
        (gpus(report))
        (layouts::draw(report))
        (in_slo(report))
        (steps::draw(report))
        (services(report))
        (changes(report))
    };
    page(&report.day, "A day", &lead(report), &body, FOOT)
}

fn lead(report: &DayReport) -> Markup {
    html! {
        (format::number(report.duration_s / 3600.0)) " hours, " (format::count(report.requests)) " requests, "
        strong { (share(report.in_slo)) " in SLO" } ", on " (report.gpus_least) " to " (report.gpus_most) " GPUs whose layout was changed "
        (format::counted(report.changes.len(), "time")) "."
    }
}

fn headline(report: &DayReport) -> Markup {
    tiles(&[
        Tile {
            what: "GPU-hours",
            value: format::number(report.gpu_hours),
            note: format!("{} to {} GPUs", report.gpus_least, report.gpus_most),
            mood: Mood::Neutral,
        },
        Tile {
            what: "saved against one layout for the peak",
            value: format::percent(report.saved),
            note: format!("{} GPUs all day", report.fixed_gpus),
            mood: Mood::Neutral,
        },
        Tile {
            what: "service-minutes missed",
            value: format::count(report.missed_unexcused),
            note: format!(
                "of {}; {} more are in allowed windows",
                format::count(report.service_minutes),
                format::count(report.missed - report.missed_unexcused)
            ),
            mood: Mood::of_limit(report.missed_unexcused as f64, 0.0),
        },
        Tile {
            what: "requests lost",
            value: format::count(report.lost),
            note: "every other was answered".to_owned(),
            mood: Mood::of_limit(report.lost as f64, 0.0),
        },
        Tile {
            what: "promises broken",
            value: format::count(report.violations.len() as u64),
            note: "throughput and legal slices, at every step's begin and end".to_owned(),
            mood: Mood::of_limit(report.violations.len() as f64, 0.0),
        },
    ])
}

fn load(report: &DayReport) -> Markup {
    let most = report.minutes.iter().flat_map(|minute| &minute.rate_rps).copied();
    let rate = |index: usize| line(report, index, move |minute| minute.rate_rps[index]);
    let chart = LineChart {
        x: time_axis(report),
        y: Axis::from_zero(most, "requests per second"),
        series: (0..report.services.len()).map(rate).collect(),
        marks: marks(report),
        summary: "Requests per second over time, per service".to_owned(),
    };
    figure("wide", "The load", "", &chart.draw())
}

fn gpus(report: &DayReport) -> Markup {
    let paid = |minute: &DayMinute| f64::from(minute.gpus + minute.coming);
    let fixed = f64::from(report.fixed_gpus);
    let series = vec![
        Series { label: "paid for".to_owned(), class: colour(0), points: points(report, paid) },
        Series {
            label: "there".to_owned(),
            class: colour(2),
            points: points(report, |minute| f64::from(minute.gpus)),
        },
    ];
    let mut marks = marks(report);
    marks.push(Mark::Across(fixed, "one layout for the peak".to_owned()));
    let chart = LineChart {
        x: time_axis(report),
        y: Axis::from_zero(report.minutes.iter().map(paid).chain([fixed]), "GPUs").whole(),
        series,
        marks,
        summary: "GPUs over time".to_owned(),
    };
    figure("wide", "GPUs", "Those that were asked for and are still coming are paid for too.", &chart.draw())
}

fn in_slo(report: &DayReport) -> Markup {
    let bad = |index: usize| line(report, index, move |minute| (1.0 - minute.in_slo[index]).max(BAD_FLOOR));
    let mut marks = marks(report);
    marks.push(Mark::Across(0.01, "1 % limit".to_owned()));
    let chart = LineChart {
        x: time_axis(report),
        y: Axis::log_share(BAD_FLOOR, "requests outside their SLO"),
        series: (0..report.services.len()).map(bad).collect(),
        marks,
        summary: "Share of requests outside their SLO over time, per service".to_owned(),
    };
    figure("wide", "What users see", "What is below 0.01 % lies on the floor.", &chart.draw())
}

fn services(report: &DayReport) -> Markup {
    let headings = ["Service", "Model", "SLO ms", "Requests", "In SLO", "Worst minute", "Instances"];
    let body = html! {
        div.scroll tabindex="0" role="region" aria-label="Services" {
            table {
                thead { tr { @for heading in headings { th scope="col" { (heading) } } } }
                tbody {
                    @for (index, service) in report.services.iter().enumerate() {
                        tr {
                            th scope="row" { span class={ "swatch area " (colour(index)) } {} (service.name) }
                            td { (service.model) }
                            td { (format::number(service.slo_ms)) }
                            td { (format::count(service.requests)) }
                            td { (share(service.in_slo)) }
                            td { (share(service.in_slo_worst_minute)) }
                            td { (service.instances_least) " to " (service.instances_most) }
                        }
                    }
                }
            }
        }
    };
    figure("wide", "Service by service", "", &body)
}

/// Every decision, in order.
fn changes(report: &DayReport) -> Markup {
    let changes =
        report.changes.iter().map(|change| (change.at_s, change.cause.as_str(), change.why.as_str()));
    let log = report.log.iter().map(|line| (line.at_s, "", line.what.as_str()));
    let mut told: Vec<(f64, &str, &str)> = changes.chain(log).collect();
    told.sort_by(|a, b| a.0.total_cmp(&b.0));
    let body = html! {
        div.scroll.tall[told.len() > 20] tabindex="0" role="region" aria-label="Decisions" {
            table {
                thead { tr { @for heading in ["Time", "Cause", "In words"] { th scope="col" { (heading) } } } }
                tbody {
                    @for (at_s, cause, why) in told {
                        tr { th scope="row" { (clock(at_s)) } td { (cause) } td.text { (why) } }
                    }
                }
            }
        }
    };
    figure("wide", "Every decision, and why", "", &body)
}

fn line(report: &DayReport, service: usize, value: impl Fn(&DayMinute) -> f64) -> Series {
    Series {
        label: report.services[service].name.clone(),
        class: colour(service),
        points: points(report, value),
    }
}

fn points(report: &DayReport, value: impl Fn(&DayMinute) -> f64) -> Vec<Point> {
    let step = report.minutes.len().div_ceil(POINTS_MAX).max(1);
    let minutes = report.minutes.iter().enumerate().step_by(step);
    minutes
        .map(|(minute, seen)| Point { x: (minute + 1) as f64 / 60.0, y: value(seen), hint: None })
        .collect()
}

fn time_axis(report: &DayReport) -> Axis {
    let hours = report.duration_s / 3600.0;
    Axis::from_zero([hours], "hours").between(0.0, hours)
}

fn marks(report: &DayReport) -> Vec<Mark> {
    report.windows.iter().map(|window| Mark::Up(window.from_s / 3600.0, window.why.clone())).collect()
}

/// A share of requests in SLO, never rounded up: 100 % is all of them.
fn share(share: f64) -> String {
    format!("{} %", (share * 1e4).floor() / 100.0)
}

/// Hours, minutes and seconds since the beginning.
fn clock(seconds: f64) -> String {
    let seconds = seconds as u64;
    format!("{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60)
}
