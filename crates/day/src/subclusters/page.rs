//! Sub-clusters as one HTML page, with the parts of the simulator's pages.

use downbeat_sim::html::format;
use downbeat_sim::html::page::{self, Mood, Tile, figure, tiles};
use downbeat_subclusters::{Plan, SubclusterPlan};
use maud::{Markup, html};

use super::replay::{ModelReplay, SubclusterReplay};

/// How the numbers are meant.
const FOOT: &str = "Planned by Downbeat. Every GPU of a sub-cluster holds all of its models, and one scheduler serves them on all of \
                    its GPUs. Sizes are confirmed by simulation; the bound and headrooms are those of the estimate.";

/// How many colours a row of models goes through.
const COLOURS: usize = 8;

/// Draws a plan and, where there is one, its replay. Every string passes through `maud`, which escapes it.
pub fn page(plan: &Plan, replays: Option<&[SubclusterReplay]>) -> String {
    let lead = html! {
        (format::counted(plan.models.len(), "model")) " in "
        (format::counted(plan.subclusters.len(), "sub-cluster")) " on "
        (format::counted(plan.gpus as usize, "GPU")) "."
    };
    let body = html! {
        (tiles(&headline(plan, replays)))
        (page::notes(&plan.notes))
        (figure("wide", "Who shares what", "One row per sub-cluster: what its models take of a device's memory, and of what its devices carry. Hover for the models.", &rows(plan)))
        @if !plan.moved.is_empty() { (figure("wide", "Models that move", "Since the last epoch.", &moves(plan))) }
        (figure("wide", "Models", "Headroom: by which factor a model's rate may grow, all others staying as they are.", &models(plan, replays)))
    };
    page::page(&plan.problem, "Sub-clusters", &lead, &body, FOOT)
}

fn headline(plan: &Plan, replays: Option<&[SubclusterReplay]>) -> Vec<Tile> {
    let tile = |what, value: String, note: String, mood| Tile { what, value, note, mood };
    let available = plan.gpus_available.map_or_else(String::new, |gpus| format!("of {gpus}"));
    let mut shown = vec![
        tile("GPUs", plan.gpus.to_string(), available, Mood::Neutral),
        tile(
            "By the estimate",
            plan.estimated_gpus.to_string(),
            format!("at least {} by {}", plan.lower_bound, plan.bound_name),
            Mood::Neutral,
        ),
        tile("Sub-clusters", plan.subclusters.len().to_string(), String::new(), Mood::Neutral),
        tile("Models that move", plan.moved.len().to_string(), String::new(), Mood::Neutral),
    ];
    if let Some(replays) = replays {
        let models = || replays.iter().flat_map(|replay| &replay.models);
        let missed = models().filter(|model| !model.passed).count();
        let note = format!("of {} in the replay", models().count());
        shown.push(tile(
            "Models in SLO",
            (models().count() - missed).to_string(),
            note,
            Mood::of_limit(missed as f64, 0.0),
        ));
    }
    shown
}

fn rows(plan: &Plan) -> Markup {
    html! {
        div.scroll tabindex="0" role="region" aria-label="Sub-clusters" {
            table {
                thead { tr {
                    th scope="col" { "Sub-cluster" } th scope="col" { "Devices" } th scope="col" { "Models" }
                    th scope="col" style="width:35%" { "Memory" } th scope="col" style="width:30%" { "Load" }
                } }
                tbody {
                    @for subcluster in &plan.subclusters {
                        tr {
                            th scope="row" { (subcluster.name) }
                            td { (subcluster.count) " × " (subcluster.device) }
                            td { (subcluster.models.len()) }
                            td { (bar(&[(subcluster.memory_mib / subcluster.device_memory_mib, memory_hint(subcluster))])) }
                            td { (bar(&loads(plan, subcluster))) }
                        }
                    }
                }
            }
        }
    }
}

fn memory_hint(subcluster: &SubclusterPlan) -> String {
    format!("{:.0} of {:.0} MiB", subcluster.memory_mib, subcluster.device_memory_mib)
}

/// Each model's share of what the devices carry.
fn loads(plan: &Plan, subcluster: &SubclusterPlan) -> Vec<(f64, String)> {
    let own: Vec<_> = plan.models.iter().filter(|model| model.subcluster == subcluster.name).collect();
    let total: f64 = own.iter().map(|model| model.load).sum();
    let part = |load: f64| if total > 0.0 { load / total * subcluster.load } else { 0.0 };
    own.iter().map(|model| (part(model.load), format!("{}: {:.2} devices", model.name, model.load))).collect()
}

/// A bar of parts, each a share of the whole width with what it says when it is pointed at.
fn bar(parts: &[(f64, String)]) -> Markup {
    html! {
        div style="display:flex;height:1.1rem;background:var(--hair);border-radius:3px;overflow:hidden" {
            @for (index, (share, hint)) in parts.iter().enumerate() {
                span title=(hint) style={
                    "width:" (format!("{:.3}", share.clamp(0.0, 1.0) * 100.0)) "%;background:var(--s" (index % COLOURS) ")"
                } {}
            }
        }
    }
}

fn moves(plan: &Plan) -> Markup {
    html! {
        div.scroll.tall[plan.moved.len() > 20] tabindex="0" role="region" aria-label="Moves" {
            table {
                thead { tr { th scope="col" { "Model" } th scope="col" { "From" } th scope="col" { "To" } } }
                tbody {
                    @for moved in &plan.moved { tr { th scope="row" { (moved.model) } td { (moved.from) } td { (moved.to) } } }
                }
            }
        }
    }
}

fn models(plan: &Plan, replays: Option<&[SubclusterReplay]>) -> Markup {
    let replayed: std::collections::BTreeMap<&str, &ModelReplay> = (replays.unwrap_or_default().iter())
        .flat_map(|replay| &replay.models)
        .map(|model| (model.model.as_str(), model))
        .collect();
    html! {
        div.scroll.tall[plan.models.len() > 20] tabindex="0" role="region" aria-label="Models" {
            table.sortable {
                thead { tr {
                    @for heading in ["Model", "Sub-cluster", "Rate rps", "SLO ms", "Batch", "Load", "Headroom"] { th scope="col" { (heading) } }
                    @if replays.is_some() { th scope="col" { "In SLO" } th scope="col" { "p99 ms" } }
                } }
                tbody {
                    @for model in &plan.models {
                        tr {
                            th scope="row" { (model.name) }
                            td { (model.subcluster) }
                            td { (format::cell(model.rate_rps)) }
                            td { (format::cell(model.slo_ms)) }
                            td { (model.batch) }
                            td { (format!("{:.3}", model.load)) }
                            td { (format!("{:.2}", model.headroom)) }
                            @if let Some(replayed) = replayed.get(model.name.as_str()) {
                                td class=[(!replayed.passed).then_some("miss")] { (format::percent_cell(replayed.in_slo)) }
                                td { (format::cell(replayed.p99_ms)) }
                            }
                        }
                    }
                }
            }
        }
    }
}
