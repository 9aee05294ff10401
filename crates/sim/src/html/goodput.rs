//! The page that compares policies by goodput.

use maud::{Markup, html};

use super::bars::{Bar, rows};
use super::page::{Mood, Tile, colour, figure, notes, nothing, page, tabs, tiles};
use super::scale::{Axis, extent};
use super::{FOOT, cast, format, load, run};
use crate::{GoodputReport, PolicyGoodput};

/// The page of `downbeat goodput --html`: the policies against the bound and over load, and a run of each at its
/// goodput.
///
/// The result is a complete HTML document without references to other files. It accepts any report, also an empty
/// one.
pub fn goodput_page(report: &GoodputReport) -> String {
    let ranking = Ranking::of(report);
    let body = html! {
        @if ranking.0.is_empty() {
            (nothing("No policy was measured."))
        } @else {
            (notes(&report.notes))
            (tiles(&headline(report, &ranking)))
            (bars(report, &ranking))
            (comparison(&ranking))
            div.triple {
                (load::bad_rate(report, &ranking))
                (load::in_slo(report, &ranking))
                (load::gpus_used(report, &ranking))
            }
            h2 { "Each policy at its goodput" }
            (tabs("policy", &at_goodput(&ranking)))
        }
    };
    page(&report.scenario, "Goodput by policy", &lead(&ranking), &body, FOOT)
}

/// One policy in the ranking.
pub(super) struct Ranked<'a> {
    pub(super) name: &'a str,
    /// Its colour everywhere on the page.
    pub(super) class: String,
    pub(super) policy: &'a PolicyGoodput,
}

/// The policies by falling goodput.
pub(super) struct Ranking<'a>(pub(super) Vec<Ranked<'a>>);

impl<'a> Ranking<'a> {
    fn of(report: &'a GoodputReport) -> Self {
        let mut all: Vec<(&String, &PolicyGoodput)> = report.policies.iter().collect();
        all.sort_by(|a, b| cast::falling(a.1.goodput_rps, b.1.goodput_rps));
        let ranked = |(rank, (name, policy)): (usize, (&'a String, &'a PolicyGoodput))| Ranked {
            name,
            class: colour(rank),
            policy,
        };
        Self(all.into_iter().enumerate().map(ranked).collect())
    }

    fn best(&self) -> Option<&Ranked<'a>> {
        self.0.first()
    }
}

fn lead(ranking: &Ranking<'_>) -> Markup {
    let Some(best) = ranking.best() else { return html! {} };
    html! {
        strong { (best.name) } " keeps every model at 99 % in SLO up to "
        strong { (goodput_rps(best.policy)) }
        ", " (format::percent_whole(best.policy.ratio_to_bound)) " of the fluid bound"
        @if let Some(second) = ranking.0.get(1) {
            "; next is " (second.name) " with " (goodput_rps(second.policy))
        }
        "."
    }
}

/// `≥ ` where the search ended before a rate failed.
fn at_least(policy: &PolicyGoodput) -> &'static str {
    if policy.capped { "≥\u{a0}" } else { "" }
}

fn goodput_rps(policy: &PolicyGoodput) -> String {
    format!("{}{}", at_least(policy), format::rps(policy.goodput_rps))
}

fn headline(report: &GoodputReport, ranking: &Ranking<'_>) -> Vec<Tile> {
    let neutral = |what, value, note| Tile { what, value, note, mood: Mood::Neutral };
    let mut all = Vec::new();
    if let Some(Ranked { name, policy, .. }) = ranking.best() {
        let note = format!(
            "{name}, spread {} over {}",
            format::rps(policy.spread_rps),
            format::counted(policy.by_seed_rps.len(), "seed")
        );
        all.push(neutral("Best goodput", goodput_rps(policy), note));
        all.push(neutral(
            "Of the fluid bound",
            format::percent_whole(policy.ratio_to_bound),
            format!("bound {}", format::rps(report.fluid_bound_rps)),
        ));
        if let Some(at) = &policy.at_goodput {
            let per_gpu = policy.goodput_rps / at.gpus.count as f64;
            all.push(neutral(
                "GPUs used at goodput",
                format!("{} of {}", at.gpus.used, at.gpus.count),
                format!("{} per GPU", format::rps(per_gpu)),
            ));
        }
    }
    if let [first, .., last] = ranking.0.as_slice() {
        let factor = first.policy.goodput_rps / last.policy.goodput_rps;
        let value = if factor.is_finite() {
            format!("{} ×", format::number(factor))
        } else {
            format::number(f64::NAN)
        };
        all.push(neutral("Best over worst", value, format!("{} over {}", first.name, last.name)));
    }
    all
}

/// Goodput against the bound, with the seeds.
fn bars(report: &GoodputReport, ranking: &Ranking<'_>) -> Markup {
    let values =
        ranking.0.iter().flat_map(|r| r.policy.by_seed_rps.iter().copied().chain([r.policy.goodput_rps]));
    let axis = Axis::from_zero(values.chain([report.fluid_bound_rps]), "goodput, rps");
    let bar = |ranked: &Ranked<'_>| Bar {
        label: ranked.name.to_owned(),
        class: ranked.class.clone(),
        value: ranked.policy.goodput_rps,
        samples: ranked.policy.by_seed_rps.clone(),
        reading: html! {
            strong { (goodput_rps(ranked.policy)) } " · "
            (format::percent_whole(ranked.policy.ratio_to_bound))
        },
        hint: seeds_hint(ranked),
    };
    let bars: Vec<Bar> = ranking.0.iter().map(bar).collect();
    let bound = report.fluid_bound_rps;
    let mark = (bound > 0.0).then(|| (bound, format!("fluid bound {}", format::rps(bound))));
    let note = "The highest rate at which every model has 99 % of its requests in SLO: mean over the seeds, each seed \
                as a dot, their range as an error bar, and the mean as a share of the fluid bound. The bound is a \
                yardstick, not a law: the rate at which GPU time runs out when every model fills the largest batch \
                its deadline allows. A ≥ stands where no rate failed up to the end of the search.";
    figure("wide", &bars_title(ranking), note, &rows(&axis, &bars, mark))
}

fn bars_title(ranking: &Ranking<'_>) -> String {
    let reading = |r: &Ranked<'_>| format!("{} {}", r.name, format::percent_whole(r.policy.ratio_to_bound));
    let [first, others @ ..] = ranking.0.as_slice() else { return String::new() };
    let best = format!(
        "{} reaches {} of the fluid bound",
        first.name,
        format::percent_whole(first.policy.ratio_to_bound)
    );
    match others {
        [] => best,
        [second] => format!("{best}, {}", reading(second)),
        [second, third] => format!("{best}, {}, {}", reading(second), reading(third)),
        [second, .., last] => format!("{best}, {}, … {}", reading(second), reading(last)),
    }
}

fn seeds_hint(ranked: &Ranked<'_>) -> String {
    let seeds: Vec<String> = ranked.policy.by_seed_rps.iter().map(|rps| format::number(*rps)).collect();
    format!("{}, rps by seed: {}", ranked.name, seeds.join(", "))
}

/// Each policy against the best, seed by seed, because the seeds give both the same arrivals.
fn comparison(ranking: &Ranking<'_>) -> Markup {
    let Some(best) = ranking.best() else { return html! {} };
    let body = html! {
        div.scroll tabindex="0" role="region" aria-label="Policies" {
            table {
                thead { tr {
                    th scope="col" { "Policy" }
                    th scope="col" { "Goodput rps" }
                    th scope="col" { "Spread rps" }
                    th scope="col" { "Against the best" }
                    th.text scope="col" { "Settings" }
                } }
                tbody {
                    @for ranked in &ranking.0 {
                        tr {
                            th scope="row" { span class={ "swatch area " (ranked.class) } {} (ranked.name) }
                            td { (at_least(ranked.policy)) (format::number(ranked.policy.goodput_rps)) }
                            td { (format::number(ranked.policy.spread_rps)) }
                            td { (against(ranked.policy, best.policy)) }
                            td.text { @if ranked.policy.settings.is_empty() { "–" } @else { (ranked.policy.settings) } }
                        }
                    }
                }
            }
        }
    };
    let note = "Differences are paired: both policies saw the same arrivals, so the range over the seeds says \
                whether a difference is real. A range that contains 0 is no difference.";
    match ranking.0.len() {
        1 => figure("wide", "The policy and its settings", "", &body),
        _ => figure("wide", &format!("{} against the others, seed by seed", best.name), note, &body),
    }
}

/// The mean difference in percent, and its range over the seeds.
fn against(policy: &PolicyGoodput, best: &PolicyGoodput) -> String {
    if std::ptr::eq(policy, best) {
        return "best".to_owned();
    }
    let pairs = policy.by_seed_rps.iter().zip(&best.by_seed_rps);
    let differences = pairs.map(|(a, b)| (a / b - 1.0) * 100.0);
    let mean = (policy.goodput_rps / best.goodput_rps - 1.0) * 100.0;
    match extent(differences) {
        Some((lo, hi)) => format!("{} % ({} to {})", signed(mean), signed(lo), signed(hi)),
        None => format!("{} %", signed(mean)),
    }
}

/// A difference with its sign, a minus being as wide as a plus.
fn signed(x: f64) -> String {
    if x.is_finite() { format!("{x:+.1}").replace('-', "−") } else { format::number(x) }
}

fn at_goodput(ranking: &Ranking<'_>) -> Vec<(String, Markup)> {
    let panel = |ranked: &Ranked<'_>| match &ranked.policy.at_goodput {
        Some(report) => run::section(report),
        None => nothing("No rate passed, so there is no run to show."),
    };
    ranking.0.iter().map(|ranked| (ranked.name.to_owned(), panel(ranked))).collect()
}
