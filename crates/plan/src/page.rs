//! A plan as one HTML page: opens from disk, needs no network, prints, and follows the reader's colours.

#[cfg(test)]
mod tests;

use downbeat_page::{Tile, notes, styled_page, tiles};
use maud::{Markup, html};

use crate::plan::{GpuLayout, Objective, Plan};
use crate::problem::Problem;

const STYLE: &str = include_str!("page.css");

/// How many colours there are; see `page.css`.
const COLOURS: usize = 12;
/// GPUs that are drawn; a page with more would be a wall.
const MOST_DRAWN: usize = 2_000;

const FOOT: &str =
    "Planned by Downbeat; every plan has been checked against placement rules, memory, latency and demand.";

/// Draws a plan: what it takes and what is proved, every service, every GPU. Every string passes through `maud`, which
/// escapes it.
pub fn page(problem: &Problem, plan: &Plan) -> String {
    let body = html! {
        (headline(plan))
        (notes(&plan.notes))
        h2 { "Services" }
        (services(plan))
        h2 { "GPUs" }
        p.hint { "One row per GPU, its memory units from left to right; hatched where nothing is. Hover for what a slice serves." }
        (gpus(problem, plan))
    };
    styled_page(STYLE, &plan.problem, "Plan", &html! { (lead(plan)) }, &body, FOOT)
}

fn lead(plan: &Plan) -> String {
    let proof = if plan.proved_optimal {
        "no plan takes fewer"
    } else {
        "as few as were found in the time there was"
    };
    format!(
        "{} services on {} GPUs: {proof}. Throughput by rule {}.",
        plan.services.len(),
        plan.gpus,
        plan.rule
    )
}

fn headline(plan: &Plan) -> Markup {
    let unit = match plan.objective {
        Objective::Gpus => "GPUs",
        Objective::Cost => "cost",
    };
    let proof = if plan.proved_optimal { "proved optimal" } else { "at most" };
    let mut found = vec![Tile::neutral("GPUs", plan.gpus.to_string(), "")];
    if plan.objective == Objective::Cost {
        found.push(Tile::neutral("Cost", format!("{:.2}", plan.cost), ""));
    }
    found.extend([
        Tile::neutral("Lower bound", plan.lower_bound.to_string(), format!("{unit}, by {}", plan.bound_name)),
        Tile::neutral("Gap", format!("{:.2} %", plan.gap * 100.0), proof),
        Tile::neutral("Planned in", format!("{:.2} s", plan.seconds), plan.algorithm.as_str()),
    ]);
    tiles(&found)
}

fn services(plan: &Plan) -> Markup {
    html! {
        table {
            thead { tr { th { "Service" } th.text { "Model" } th { "Demand rps" } th { "Provided rps" } th { "SLO ms" } th { "Instances" } } }
            tbody {
                @for (index, service) in plan.services.iter().enumerate() {
                    tr {
                        th { span class={ "swatch area p" (index % COLOURS) } {} (service.name) }
                        td.text { (service.model) }
                        td { (format!("{:.1}", service.demand_rps)) }
                        td { (format!("{:.1}", service.provided_rps)) }
                        td { (service.slo_ms) }
                        td { (service.instances) }
                    }
                }
            }
        }
    }
}

fn gpus(problem: &Problem, plan: &Plan) -> Markup {
    let mut node = None;
    html! {
        div.cluster {
            @for gpu in plan.layout.iter().take(MOST_DRAWN) {
                @if node.replace(gpu.node) != Some(gpu.node) { h3 { "Node " (gpu.node) " · " (gpu.gpu_type) } }
                (one_gpu(problem, plan, gpu))
            }
        }
        @if plan.layout.len() > MOST_DRAWN { p.hint { "and " (plan.layout.len() - MOST_DRAWN) " more" } }
    }
}

fn one_gpu(problem: &Problem, plan: &Plan, gpu: &GpuLayout) -> Markup {
    let pool = problem.pools.iter().find(|pool| pool.gpu.name == gpu.gpu_type);
    let units = pool.map_or(8, |pool| pool.gpu.units);
    let size = |profile: &str| {
        let found = pool.and_then(|pool| pool.gpu.profiles.iter().find(|known| known.name == profile));
        found.map_or(1, |profile| profile.size)
    };
    let colour =
        |service: &str| plan.services.iter().position(|known| known.name == service).unwrap_or(0) % COLOURS;
    html! {
        div.gpu {
            div.id { (gpu.gpu) }
            div.units style={ "grid-template-columns:repeat(" (units) ",1fr)" } {
                @for instance in &gpu.instances {
                    div class={ "slice p" (colour(&instance.service)) }
                        style={ "grid-column:" (instance.start + 1) "/span " (size(&instance.profile)) }
                        title={ (instance.profile) " at " (instance.start) ": " (instance.service) " (" (instance.model) "), batch "
                            (instance.batch) ", " (format!("{:.0}", instance.throughput_rps)) " rps" } {
                        b { (instance.profile.split('.').next().unwrap_or_default()) } " " (instance.service)
                    }
                }
            }
        }
    }
}
