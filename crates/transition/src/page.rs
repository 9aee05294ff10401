//! A transition as one HTML page: opens from disk, needs no network, prints, and follows the reader's colours.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use downbeat_page::{Tile, notes, styled_page, tiles};
use maud::{Markup, html};

use crate::step::{Driver, Step, StepKind, Transition};

const STYLE: &str = include_str!("page.css");
/// Ticks of the time axis.
const TICKS: u32 = 8;

const LEAD: &str = "No service ever falls below the lower of what it has and what it is to have, whichever steps run side by side.";
const FOOT: &str = "Planned by Downbeat, and replayed under every interleaving that the steps allow. Times are expected, not promised.";

/// Draws a transition: who does what when, and every step. Every string passes through `maud`, which escapes it.
pub fn page(title: &str, transition: &Transition) -> String {
    let body = html! {
        (headline(transition))
        (notes(&transition.notes))
        h2 { "Who does what when" }
        (gantt(transition))
        h2 { "Steps" }
        (steps(transition))
    };
    styled_page(STYLE, title, "Transition", &html! { (LEAD) }, &body, FOOT)
}

fn headline(transition: &Transition) -> Markup {
    let (driver, means) = match transition.driver {
        Driver::Nvml => ("nvml", "one slice at a time"),
        Driver::MigParted => ("mig-parted", "whole GPUs"),
    };
    let path = transition.critical_path.len();
    let proof =
        if transition.spares_are_fewest { "proved to be the fewest" } else { "no way with fewer was found" };
    let in_turn: f64 = transition.steps.iter().map(|step| step.expected_s).sum();
    tiles(&[
        Tile::neutral(
            "Steps",
            transition.steps.len().to_string(),
            format!("at least {}", transition.lower_bound),
        ),
        Tile::neutral(
            "Expected",
            format!("{:.0} s", transition.expected_s),
            format!("critical path of {path} steps"),
        ),
        Tile::neutral("One after the other", format!("{in_turn:.0} s"), ""),
        Tile::neutral(
            "Spare GPUs",
            transition.spares.len().to_string(),
            format!("{proof}; {} rounds of making room", transition.rounds),
        ),
        Tile::neutral("Driver", driver, means),
    ])
}

/// Steps of each GPU, in lanes so that none covers another.
fn lanes(transition: &Transition) -> BTreeMap<(u32, u32), Vec<Vec<&Step>>> {
    let mut gpus: BTreeMap<(u32, u32), Vec<Vec<&Step>>> = BTreeMap::new();
    let mut by_start: Vec<&Step> = transition.steps.iter().collect();
    by_start.sort_by(|a, b| a.start_s.total_cmp(&b.start_s));
    for step in by_start {
        let lanes = gpus.entry((step.node, step.gpu)).or_default();
        let free =
            lanes.iter_mut().find(|lane| lane.last().is_none_or(|last| last.end_s <= step.start_s + 1e-9));
        match free {
            Some(lane) => lane.push(step),
            None => lanes.push(vec![step]),
        }
    }
    gpus
}

fn gantt(transition: &Transition) -> Markup {
    let whole = transition.expected_s.max(1e-9);
    let percent = |seconds: f64| format!("{:.3}%", seconds / whole * 100.0);
    let mut node = None;
    html! {
        p.hint {
            span.key.create {} "create " span.key.migrate {} "migrate (to this GPU) " span.key.delete {} "delete "
            span.key.repartition {} "repartition " span.key.critical {} "on the critical path"
            ". One row per GPU; hover for what a step does and waits for."
        }
        @if transition.steps.is_empty() { p { "Nothing to do: the layouts are the same." } }
        div.schedule role="img" aria-label="One row per GPU, one block per step" {
            @for ((on, gpu), lanes) in lanes(transition) {
                @if node.replace(on) != Some(on) { h3 { "Node " (on) } }
                div.row {
                    div.id { (gpu) @if transition.spares.iter().any(|spare| spare.gpu == gpu) { " spare" } }
                    div.lanes {
                        @for lane in lanes {
                            div.lane {
                                @for step in lane {
                                    div class={ "step " (class(step.kind)) @if is_critical(transition, step) { " critical" } }
                                        style={ "left:" (percent(step.start_s)) ";width:" (percent(step.expected_s)) }
                                        title=(told(step)) { (label(step)) }
                                }
                            }
                        }
                    }
                }
            }
            div.row {
                div.id {}
                div.axis {
                    @for tick in 0..=TICKS {
                        span style={ "left:" (percent(whole * f64::from(tick) / f64::from(TICKS))) } {
                            (seconds(whole * f64::from(tick) / f64::from(TICKS)))
                        }
                    }
                }
            }
        }
    }
}

fn steps(transition: &Transition) -> Markup {
    html! {
        table {
            thead { tr { th { "Step" } th.text { "What" } th.text { "Why" } th.text { "After" } th { "Takes" } th { "From" } th { "To" } th { "Slack" } } }
            tbody {
                @for step in &transition.steps {
                    tr class=(if is_critical(transition, step) { "critical" } else { "" }) {
                        td { (step.id) }
                        td.text { span class={ "key " (class(step.kind)) } {} (step.describe()) }
                        td.text { (step.why) }
                        td.text { (step.after.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")) }
                        td { (seconds(step.expected_s)) }
                        td { (seconds(step.start_s)) }
                        td { (seconds(step.end_s)) }
                        td { (seconds(step.slack_s)) }
                    }
                }
            }
        }
    }
}

fn is_critical(transition: &Transition, step: &Step) -> bool {
    transition.critical_path.contains(&step.id)
}

fn class(kind: StepKind) -> &'static str {
    match kind {
        StepKind::Create => "create",
        StepKind::Delete => "delete",
        StepKind::Migrate => "migrate",
        StepKind::Repartition => "repartition",
    }
}

fn label(step: &Step) -> String {
    match &step.instance {
        Some(instance) => format!(
            "{} {} {}",
            step.id,
            instance.profile.split('.').next().unwrap_or_default(),
            instance.service
        ),
        None => format!("{} repartition", step.id),
    }
}

fn told(step: &Step) -> String {
    let after = match &step.after[..] {
        [] => "waits for nothing".to_owned(),
        steps => format!("after {}", steps.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")),
    };
    format!(
        "Step {}: {}; {} ({after}; {} to {})",
        step.id,
        step.describe(),
        step.why,
        seconds(step.start_s),
        seconds(step.end_s)
    )
}

fn seconds(seconds: f64) -> String {
    if seconds >= 10.0 || seconds == 0.0 { format!("{seconds:.0} s") } else { format!("{seconds:.2} s") }
}
