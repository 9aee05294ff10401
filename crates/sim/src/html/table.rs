//! The models of a run as a table, the worst first.

use maud::{Markup, html};

use super::BAD_RATE_LIMIT;
use super::cast::{Cast, slo_ms, worst_first};
use super::format;
use super::page::{figure, nothing};
use crate::{ModelReport, RunReport};

/// The headings, with what each means where the word alone does not say it.
const COLUMNS: [(&str, &str); 10] = [
    ("Model", ""),
    ("Offered", "requests that arrived after warm-up"),
    ("In SLO", "requests that finished inside the SLO"),
    ("Late", "requests that finished after the SLO"),
    ("Expired", "requests dropped, or unanswered when the run ended"),
    ("Bad rate", "(late + expired) / offered"),
    ("p50 ms", "median latency of the requests that ran"),
    ("p99 ms", "99th percentile latency of the requests that ran"),
    ("SLO ms", ""),
    ("Mean batch", "requests per batch"),
];

/// A longer table scrolls in its own box.
const ROWS_VISIBLE: usize = 20;

/// The table of models as a figure.
pub(super) fn models(run: &RunReport, cast: &Cast) -> Markup {
    if run.models.is_empty() {
        return figure("wide", "Models", "", &nothing("The scenario has no model."));
    }
    let is_long = run.models.len() > ROWS_VISIBLE;
    let body = html! {
        div.scroll.tall[is_long] tabindex="0" role="region" aria-label="Models" {
            table.sortable {
                thead {
                    tr {
                        @for (i, (heading, meaning)) in COLUMNS.into_iter().enumerate() {
                            th scope="col" aria-sort=[(i == 5).then_some("descending")] {
                                button type="button" title=[(!meaning.is_empty()).then_some(meaning)] { (heading) }
                            }
                        }
                    }
                }
                tbody { @for model in worst_first(&run.models) { (row(run, cast, model)) } }
            }
        }
    };
    let scrolls = if is_long { " The table scrolls." } else { "" };
    let note = format!("By bad rate, the worst first; press a heading to sort by it.{scrolls}");
    figure("wide", &title(run), &note, &body)
}

fn row(run: &RunReport, cast: &Cast, index: usize) -> Markup {
    let model: &ModelReport = &run.models[index];
    let slo = slo_ms(run, index).unwrap_or(f64::NAN);
    html! {
        tr {
            th scope="row" data-v=(model.name) {
                span class={ "swatch area " (cast.class(index)) } {} (model.name)
            }
            @for count in [model.offered, model.in_slo, model.late, model.expired] {
                td data-v=(count) { (format::count(count)) }
            }
            td.miss[model.bad_rate > BAD_RATE_LIMIT] data-v=(model.bad_rate) {
                (format::percent_cell(model.bad_rate))
            }
            td data-v=(model.p50_ms) { (format::cell(model.p50_ms)) }
            td.miss[model.p99_ms > slo] data-v=(model.p99_ms) { (format::cell(model.p99_ms)) }
            td data-v=(slo) { (format::cell(slo)) }
            td data-v=(model.mean_batch) { (format::cell(model.mean_batch)) }
        }
    }
}

fn title(run: &RunReport) -> String {
    let missing = run.models.iter().filter(|m| m.bad_rate > BAD_RATE_LIMIT).count();
    let unknown = run.models.iter().any(|m| m.bad_rate.is_nan());
    match (missing, run.models.len()) {
        (0, _) if unknown => "No model with traffic misses 99 % in SLO".to_owned(),
        (0, 1) => "The model keeps 99 % of its requests in SLO".to_owned(),
        (0, all) => format!("All {all} models keep 99 % of their requests in SLO"),
        (_, 1) => "The model misses 99 % in SLO".to_owned(),
        (missing, all) => format!("{missing} of {all} models miss 99 % in SLO"),
    }
}
