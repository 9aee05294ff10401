//! The page of one or several runs, and the section about one run that both pages share.

use maud::{Markup, html};

use super::bars::{Bar, rows};
use super::cast::Cast;
use super::page::{Mood, Tile, colour, figure, notes, nothing, page, tabs, tiles};
use super::scale::{Axis, extent};
use super::{BAD_RATE_LIMIT, FOOT, cast, distributions, format, latency, table, timeline};
use crate::RunReport;

/// The page of `downbeat simulate --html`: one section per run, and a comparison when there are several.
///
/// The result is a complete HTML document without references to other files. It accepts any report, also an empty
/// one.
pub fn run_page(scenario_name: &str, runs: &[RunReport]) -> String {
    let sections: Vec<(String, Markup)> = runs.iter().map(|run| (label(run, runs), section(run))).collect();
    let body = html! {
        @if runs.is_empty() { (nothing("There is no run to show.")) }
        @if runs.len() > 1 {
            (comparison(runs))
            h2 { "Run by run" }
        }
        (tabs("run", &sections))
    };
    page(scenario_name, "Simulated run", &lead(runs), &body, FOOT)
}

fn lead(runs: &[RunReport]) -> Markup {
    match runs {
        [] => html! {},
        [run] => html! {
            strong { (run.policy) } " answers "
            (format::rps(run.in_slo_rps)) " of " (format::rps(run.offered_rps))
            " inside the SLO on " (format::counted(run.gpus.count, "GPU")) ", " (verdict(run)) "."
        },
        many => {
            let kept = many.iter().filter(|run| run.bad_rate_worst <= BAD_RATE_LIMIT).count();
            html! { (kept) " of " (format::counted(many.len(), "run")) " keep every model at 99 % in SLO." }
        }
    }
}

fn verdict(run: &RunReport) -> &'static str {
    match Mood::of_limit(run.bad_rate_worst, BAD_RATE_LIMIT) {
        Mood::Good => "with every model at 99 % in SLO or better",
        Mood::Bad => "but not every model has 99 % in SLO",
        Mood::Neutral => "with an unknown bad rate",
    }
}

/// The policy, with the seed where another run has the same policy.
fn label(run: &RunReport, runs: &[RunReport]) -> String {
    let same = runs.iter().filter(|other| other.policy == run.policy).count();
    if same > 1 {
        format!("{}, seed {}, {}", run.policy, run.seed, format::rps(run.offered_rps))
    } else {
        run.policy.clone()
    }
}

/// What each run answered in time of what it was offered.
fn comparison(runs: &[RunReport]) -> Markup {
    let axis = Axis::from_zero(
        runs.iter().flat_map(|run| [run.offered_rps, run.in_slo_rps]),
        "requests per second in SLO",
    );
    let bar = |(i, run): (usize, &RunReport)| Bar {
        label: label(run, runs),
        class: colour(i),
        value: run.in_slo_rps,
        samples: Vec::new(),
        reading: html! {
            strong { (format::rps(run.in_slo_rps)) } " · worst model "
            span.miss[run.bad_rate_worst > BAD_RATE_LIMIT] { (format::percent(run.bad_rate_worst)) } " bad · "
            (format::count(run.gpus.used as u64)) " of " (format::counted(run.gpus.count, "GPU")) " used"
        },
        hint: format!("{} of {} in SLO", format::rps(run.in_slo_rps), format::rps(run.offered_rps)),
    };
    let bars: Vec<Bar> = runs.iter().enumerate().map(bar).collect();
    let mark = common_load(runs).map(|load| (load, format!("offered {}", format::rps(load))));
    let best = runs.iter().min_by(|a, b| cast::falling(a.in_slo_rps, b.in_slo_rps));
    let title = best.map_or(String::new(), |run| {
        format!("{} answers most inside the SLO: {}", run.policy, format::rps(run.in_slo_rps))
    });
    figure(
        "wide",
        &title,
        "Requests answered inside their SLO per second, by run.",
        &rows(&axis, &bars, mark),
    )
}

/// The load all runs were offered, when it is about the same.
fn common_load(runs: &[RunReport]) -> Option<f64> {
    let (lo, hi) = extent(runs.iter().map(|run| run.offered_rps))?;
    (hi > 0.0 && lo >= 0.95 * hi).then_some(hi)
}

/// Everything about one run.
pub(super) fn section(run: &RunReport) -> Markup {
    let cast = Cast::of(run);
    html! {
        (notes(&run.detail.notes))
        (tiles(&headline(run)))
        div.pair {
            (latency::tail(run, &cast))
            (distributions::gpu_busy(run))
        }
        (distributions::batch_sizes(run, &cast))
        (timeline::draw(run, &cast))
        (table::models(run, &cast))
    }
}

fn headline(run: &RunReport) -> Vec<Tile> {
    let sum = |count: fn(&crate::ModelReport) -> u64| run.models.iter().map(count).sum::<u64>();
    vec![
        Tile {
            what: "In SLO",
            value: format::rps(run.in_slo_rps),
            note: format!("of {} offered, seed {}", format::rps(run.offered_rps), run.seed),
            mood: Mood::Neutral,
        },
        Tile {
            what: "Bad rate, worst model",
            value: format::percent(run.bad_rate_worst),
            note: worst_note(run),
            mood: Mood::of_limit(run.bad_rate_worst, BAD_RATE_LIMIT),
        },
        p99_tile(run),
        Tile {
            what: "GPUs used",
            value: format!("{} of {}", run.gpus.used, run.gpus.count),
            note: format!("{} of GPU time busy", format::percent_whole(distributions::mean_busy(run))),
            mood: Mood::Neutral,
        },
        Tile {
            what: "Dropped",
            value: format::count(sum(|m| m.expired)),
            note: format!(
                "and {} late, of {} requests",
                format::count(sum(|m| m.late)),
                format::count(sum(|m| m.offered))
            ),
            mood: Mood::Neutral,
        },
        Tile {
            what: "Batches",
            value: format::count(run.batches),
            note: wall_note(run),
            mood: Mood::Neutral,
        },
    ]
}

fn worst_note(run: &RunReport) -> String {
    match cast::worst_first(&run.models).first() {
        Some(worst) => format!("{}; the limit is 1 %", cast::name(run, *worst)),
        None => "no model".to_owned(),
    }
}

fn p99_tile(run: &RunReport) -> Tile {
    let (value, note, mood) = match latency::tightest_model(run) {
        Some((model, p99, slo)) => {
            let note = format!(
                "of an SLO of {}: {}; of the requests that ran",
                format::ms(slo),
                cast::name(run, model)
            );
            let mood = if latency::in_time(run, model) { Mood::of_limit(p99, slo) } else { Mood::Bad };
            (format::ms(p99), note, mood)
        }
        None => (format::ms(f64::NAN), "no request ran".to_owned(), Mood::Neutral),
    };
    Tile { what: "p99, tightest model", value, note, mood }
}

fn wall_note(run: &RunReport) -> String {
    let simulated = format!("{} requests simulated", format::count(run.requests_simulated));
    if run.wall_s > 0.0 { format!("{simulated} in {} s", format::number(run.wall_s)) } else { simulated }
}
