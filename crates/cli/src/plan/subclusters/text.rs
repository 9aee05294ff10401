//! Sub-clusters for people.

use std::collections::BTreeMap;
use std::fmt::Write;

use downbeat_day::subclusters::{ModelReplay, SubclusterReplay};
use downbeat_subclusters::{ModelPlan, Plan, SubclusterPlan};

use crate::output;

/// Sub-clusters and models shown in tables; --format json and --html have all.
const ROWS_SHOWN: usize = 40;

pub(super) fn text(plan: &Plan, replays: Option<&[SubclusterReplay]>) -> String {
    let mut text = headline(plan);
    text += &output::notes(&plan.notes);
    if let Some(replays) = replays {
        let models = || replays.iter().flat_map(|replay| &replay.models);
        let passed = models().filter(|model| model.passed).count();
        let _ = writeln!(
            text,
            "Replayed: {passed} of {} models have 99 % of their requests in time.",
            models().count()
        );
    }
    text += "\n";
    text += &subclusters(plan, replays);
    text += "\n\n";
    text += &models(plan, replays);
    if !plan.moved.is_empty() {
        let _ = write!(text, "\n\n{} models move:\n", plan.moved.len());
        for moved in plan.moved.iter().take(ROWS_SHOWN) {
            let _ = writeln!(text, "  {}: {} -> {}", moved.model, moved.from, moved.to);
        }
        text += &more(plan.moved.len(), "moves");
    }
    text
}

fn headline(plan: &Plan) -> String {
    let proof = if plan.proved_optimal {
        format!("the estimate of {} is proved to be the fewest, by {}", plan.estimated_gpus, plan.bound_name)
    } else {
        format!(
            "{} by the estimate, which is at most {:.1} % above the fewest: at least {} by {}",
            plan.estimated_gpus,
            plan.gap * 100.0,
            plan.lower_bound,
            plan.bound_name
        )
    };
    let of = plan.gpus_available.map_or_else(String::new, |gpus| format!(" of {gpus}"));
    let confirmed = if plan.confirmed { "confirmed in simulation" } else { "not confirmed in simulation" };
    format!(
        "{}: {} models in {} sub-clusters on {}{of} GPUs, {confirmed}; {proof} ({}, {:.2} s)\n",
        plan.problem,
        plan.models.len(),
        plan.subclusters.len(),
        plan.gpus,
        plan.algorithm,
        plan.seconds
    )
}

fn subclusters(plan: &Plan, replays: Option<&[SubclusterReplay]>) -> String {
    let row = |subcluster: &SubclusterPlan| {
        let mut row = vec![
            subcluster.name.clone(),
            format!("{} x {}", subcluster.count, subcluster.device),
            subcluster.models.len().to_string(),
            format!("{:.0}", subcluster.rate_rps),
            format!("{:.0} %", subcluster.memory_mib / subcluster.device_memory_mib * 100.0),
            format!("{:.0} %", subcluster.load * 100.0),
            format!("{:.1}", subcluster.rhythm_ms),
        ];
        if let Some(replays) = replays {
            let found = replays.iter().find(|replay| replay.subcluster == subcluster.name);
            row.push(found.map_or_else(String::new, |replay| format!("{:.0} %", replay.busy * 100.0)));
        }
        row
    };
    let mut header = vec!["sub-cluster", "devices", "models", "rps", "memory", "load", "longest batch ms"];
    if replays.is_some() {
        header.push("busy");
    }
    output::table(&header, plan.subclusters.iter().take(ROWS_SHOWN).map(row))
        + &more(plan.subclusters.len(), "sub-clusters")
}

/// The models with the least headroom, or those that failed the replay, come first.
fn models(plan: &Plan, replays: Option<&[SubclusterReplay]>) -> String {
    let replayed: BTreeMap<&str, &ModelReplay> = (replays.unwrap_or_default().iter())
        .flat_map(|replay| &replay.models)
        .map(|model| (model.model.as_str(), model))
        .collect();
    let in_slo =
        |model: &ModelPlan| replayed.get(model.name.as_str()).map_or(1.0, |replayed| replayed.in_slo);
    let mut order: Vec<&ModelPlan> = plan.models.iter().collect();
    order.sort_by(|a, b| in_slo(a).total_cmp(&in_slo(b)).then(a.headroom.total_cmp(&b.headroom)));
    let row = |model: &&ModelPlan| {
        let mut row = vec![
            model.name.clone(),
            model.subcluster.clone(),
            format!("{:.1}", model.rate_rps),
            format!("{}", model.slo_ms),
            model.batch.to_string(),
            format!("{:.3}", model.load),
            format!("{:.2}x", model.headroom),
        ];
        if let Some(replayed) = replayed.get(model.name.as_str()) {
            let mark = if replayed.passed { "" } else { " !" };
            row.push(format!("{:.2} %{mark}", replayed.in_slo * 100.0));
            row.push(replayed.requests.to_string());
        }
        row
    };
    let mut header = vec!["model", "sub-cluster", "rps", "SLO ms", "batch", "load", "headroom"];
    if replays.is_some() {
        header.extend(["in SLO", "requests"]);
    }
    output::table(&header, order.iter().take(ROWS_SHOWN).map(row)) + &more(plan.models.len(), "models")
}

fn more(count: usize, what: &str) -> String {
    match count.checked_sub(ROWS_SHOWN) {
        Some(more) if more > 0 => format!("\nand {more} more {what}; --format json has all"),
        _ => String::new(),
    }
}
