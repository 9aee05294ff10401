//! The report as one HTML page, in the style of the simulator's: opens from disk, needs no network.

mod over_time;
mod tail;
#[cfg(test)]
mod tests;

use downbeat_sim::html::format;
use downbeat_sim::html::page::{Mood, Tile, figure, notes, page, tiles};
use maud::{Markup, html};

use crate::goodput::IN_SLO_SHARE_MIN;
use crate::report::{LoadReport, ModelReport, SearchReport};

const FOOT: &str = "Measured by downbeat load, open loop: latency counts from when a request should have been sent, and the \
                    lateness of the client is part of it. Requests of the warm-up are not counted. Percentiles are of \
                    requests with a result.";

/// The page of `downbeat load --html`: a complete HTML document without references to other files. It accepts any
/// report, also an empty one.
pub fn load_page(report: &LoadReport) -> String {
    let body = html! {
        (notes(&report.notes))
        (tiles(&headline(report)))
        (over_time::latency(report))
        div.pair {
            (over_time::rates(report))
            (tail::tail(report))
        }
        @if let Some(search) = &report.search { (probes(search)) }
        (models(report))
        (outcomes(report))
    };
    page(&report.url, "Load", &lead(report), &body, FOOT)
}

fn lead(report: &LoadReport) -> Markup {
    let stopped = if report.interrupted { ", stopped before its end" } else { "" };
    html! {
        strong { (format::rps(report.in_slo as f64 / report.duration_s.max(1e-9))) }
        " of " (format::rps(report.offered_rps)) " were answered inside the SLO for "
        (format::number(report.duration_s)) " s; arrivals " (report.arrival) ", seed " (report.seed) (stopped) "."
    }
}

fn headline(report: &LoadReport) -> Vec<Tile> {
    let mut tiles = Vec::new();
    if let Some(search) = &report.search {
        tiles.push(Tile {
            what: "Goodput",
            value: format!("{}{}", if search.capped { "≥ " } else { "" }, format::rps(report.goodput_rps)),
            note: format!("{} runs; the numbers beside are of the run at that rate", search.probes.len()),
            mood: Mood::Neutral,
        });
    }
    if let Some(worst) = report.in_slo_share_worst {
        tiles.push(Tile {
            what: "In SLO, worst model",
            value: format::percent(worst),
            note: format!(
                "{} of {} requests of all models",
                format::count(report.in_slo),
                format::count(report.offered)
            ),
            mood: Mood::of_limit(1.0 - worst, 1.0 - IN_SLO_SHARE_MIN + 1e-12),
        });
    }
    tiles.extend([
        Tile {
            what: "p50",
            value: format::ms(report.latency_ms.p50),
            note: "of requests with a result".to_owned(),
            mood: Mood::Neutral,
        },
        Tile {
            what: "p99",
            value: format::ms(report.latency_ms.p99),
            note: format!("p99.9 {}", format::ms(report.latency_ms.p999)),
            mood: Mood::Neutral,
        },
        Tile {
            what: "Client lag, p99",
            value: format::ms(report.client_lag_ms_p99),
            note: "how late the client sent; counted in the latencies".to_owned(),
            mood: if report.client_kept_up { Mood::Good } else { Mood::Bad },
        },
    ]);
    if let Some(times) = &report.server_ms {
        tiles.push(Tile {
            what: "Overhead, p50",
            value: format::ms(times.overhead.p50),
            note: format!(
                "beside queue {} and compute {}",
                format::ms(times.queue.p50),
                format::ms(times.compute.p50)
            ),
            mood: Mood::Neutral,
        });
    }
    tiles
}

fn models(report: &LoadReport) -> Markup {
    let headings = [
        "Model",
        "SLO ms",
        "Offered",
        "In SLO",
        "% in SLO",
        "Late",
        "No result",
        "p50 ms",
        "p90 ms",
        "p99 ms",
        "p99.9 ms",
    ];
    let body = html! {
        div.scroll tabindex="0" role="region" aria-label="Models" {
            table.sortable {
                thead { tr { @for heading in headings { th scope="col" { button type="button" { (heading) } } } } }
                tbody { @for model in &report.models { (row(model)) } }
            }
        }
    };
    figure("wide", "Models", "Press a heading to sort by it.", &body)
}

fn row(model: &ModelReport) -> Markup {
    let late = model.outcomes.get("late").copied().unwrap_or(0);
    let lost = model.offered.saturating_sub(model.in_slo + late);
    let latency = model.latency_ms;
    let share = model.in_slo_share.unwrap_or(1.0);
    html! {
        tr {
            th scope="row" data-v=(model.name) { (model.name) }
            td data-v=(model.slo_ms.unwrap_or(f64::INFINITY)) { (model.slo_ms.map_or_else(|| "–".to_owned(), format::cell)) }
            td data-v=(model.offered) { (format::count(model.offered)) }
            td data-v=(model.in_slo) { (format::count(model.in_slo)) }
            td.miss[share < IN_SLO_SHARE_MIN] data-v=(share) {
                (model.in_slo_share.map_or_else(|| "–".to_owned(), format::percent_cell))
            }
            td data-v=(late) { (format::count(late)) }
            td data-v=(lost) { (format::count(lost)) }
            @for ms in [latency.p50, latency.p90, latency.p99, latency.p999] { td data-v=(ms) { (format::cell(ms)) } }
        }
    }
}

fn outcomes(report: &LoadReport) -> Markup {
    let seen: Vec<_> = report.outcomes.iter().filter(|(_, count)| **count > 0).collect();
    let example = |label: &str| {
        report.models.iter().find_map(|model| Some(format!("{}: {}", model.name, model.errors.get(label)?)))
    };
    let body = html! {
        div.scroll tabindex="0" role="region" aria-label="Outcomes" {
            table {
                thead { tr { th scope="col" { "Outcome" } th scope="col" { "Requests" } th.text scope="col" { "For example" } } }
                tbody {
                    @for (label, count) in seen {
                        tr {
                            th scope="row" { (label) }
                            td { (format::count(*count)) }
                            td.text { (example(label).unwrap_or_default()) }
                        }
                    }
                }
            }
        }
    };
    figure("wide", "What became of the requests", "Every request is counted once.", &body)
}

fn probes(search: &SearchReport) -> Markup {
    let body = html! {
        div.scroll tabindex="0" role="region" aria-label="Search" {
            table {
                thead {
                    tr { @for heading in ["Rate", "Result", "Worst % in SLO", "Client lag, p99"] { th scope="col" { (heading) } } }
                }
                tbody {
                    @for probe in &search.probes {
                        tr {
                            th scope="row" { (format::rps(probe.rate_rps)) }
                            td.miss[!probe.passed] {
                                (match (probe.passed, probe.stalled, probe.given_up) {
                                    (true, ..) => "passed",
                                    (false, true, _) => "failed in a stall",
                                    (false, false, true) => "failed early",
                                    (false, false, false) => "failed",
                                })
                            }
                            td { (format::percent_cell(probe.in_slo_share_worst)) }
                            td { (format::ms(probe.client_lag_ms_p99)) }
                        }
                    }
                }
            }
        }
    };
    let note = "A rate passes when every model has 99 % of its requests in SLO; one that fails is tried again, and as if \
         nothing had been where the machine stood still meanwhile.";
    figure("wide", "How the goodput was found", note, &body)
}
