//! A plan for people.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use downbeat_mig::{Labelled, Placed, picture};
use downbeat_plan::{GpuLayout, Objective, Plan, Problem};

use super::Made;
use crate::output;

/// Services shown in the table: those with most instances.
const SERVICES_SHOWN: usize = 60;
/// Characters per memory unit of a picture of eight units; others are scaled to the same width.
const PICTURE_WIDTH: usize = 96;

pub(super) fn text(problem: &Problem, made: &Made, from: Option<&Plan>, pictures: usize) -> String {
    let plan = &made.plan;
    let mut text = headline(plan);
    text += &output::notes(&plan.notes);
    if let Some(from) = from {
        let untouched = plan.layout.iter().filter(|gpu| is_in(gpu, from)).count();
        let _ = writeln!(
            text,
            "{untouched} of {} GPUs stay as they are in the layout there is.",
            plan.layout.len()
        );
    }
    text += "\n";
    text += &services(made);
    text += "\n\n";
    text += &layout(problem, plan, pictures);
    text
}

fn headline(plan: &Plan) -> String {
    let counted = |amount: f64| match plan.objective {
        Objective::Gpus => format!("{amount:.0} GPUs"),
        Objective::Cost => format!("a cost of {}", (amount * 1e3).round() / 1e3),
    };
    let taken = match plan.objective {
        Objective::Gpus => format!("{} GPUs", plan.gpus),
        Objective::Cost => format!("{} GPUs at {}", plan.gpus, counted(plan.cost)),
    };
    let proof = if plan.proved_optimal {
        format!("proved optimal by {}", plan.bound_name)
    } else {
        format!(
            "at most {:.1} % above the optimum: at least {} by {}",
            plan.gap * 100.0,
            counted(plan.lower_bound),
            plan.bound_name
        )
    };
    format!(
        "{}: {taken}, {proof} ({}, {:.2} s, rule {})\n",
        plan.problem, plan.algorithm, plan.seconds, plan.rule
    )
}

fn is_in(gpu: &GpuLayout, from: &Plan) -> bool {
    let places = |gpu: &GpuLayout| -> Vec<(String, u8, String)> {
        gpu.instances.iter().map(|i| (i.profile.clone(), i.start, i.service.clone())).collect()
    };
    from.layout
        .iter()
        .any(|old| old.gpu == gpu.gpu && old.gpu_type == gpu.gpu_type && places(old) == places(gpu))
}

fn services(made: &Made) -> String {
    let plan = &made.plan;
    let mut slices: BTreeMap<&str, BTreeMap<&str, u32>> = BTreeMap::new();
    for instance in plan.layout.iter().flat_map(|gpu| &gpu.instances) {
        *slices.entry(&instance.service).or_default().entry(&instance.profile).or_default() += 1;
    }
    let names: BTreeSet<&str> = slices.values().flat_map(BTreeMap::keys).copied().collect();
    let prefix = |name: &str| name.split('.').next().unwrap_or(name).to_owned();
    // In full where that would be the name of another slice, too.
    let short = |name: &str| {
        let shared = names.iter().filter(|other| prefix(other) == prefix(name)).count() > 1;
        if shared { name.to_owned() } else { prefix(name) }
    };
    let mut order: Vec<usize> = (0..plan.services.len()).collect();
    if order.len() > SERVICES_SHOWN {
        order.sort_by_key(|&index| std::cmp::Reverse(plan.services[index].instances));
        order.truncate(SERVICES_SHOWN);
    }
    let row = |index: usize| {
        let service = &plan.services[index];
        let used: Vec<String> = slices
            .get(service.name.as_str())
            .into_iter()
            .flatten()
            .map(|(profile, count)| format!("{count}x{}", short(profile)))
            .collect();
        let mut row = vec![
            service.name.clone(),
            rate(service.demand_rps),
            rate(service.provided_rps),
            format!("{}", service.slo_ms),
            used.join(" "),
        ];
        if let Some(replay) = &made.replay {
            let found = replay.services.iter().find(|replayed| replayed.service == service.name);
            row.push(found.map_or_else(String::new, |replayed| {
                format!("{:.2} %{}", replayed.in_slo * 100.0, if replayed.passed { "" } else { " !" })
            }));
        }
        row
    };
    let mut header = vec!["service", "demand rps", "provided", "SLO ms", "slices"];
    if made.replay.is_some() {
        header.push("in SLO");
    }
    let mut text = output::table(&header, order.iter().map(|&index| row(index)));
    let more = plan.services.len() - order.len();
    if more > 0 {
        let _ = write!(text, "\nand {more} more services; --format json has all");
    }
    text
}

/// Whole requests per second, and of less than ten three digits.
fn rate(rps: f64) -> String {
    match rps {
        0.0 | 10.0.. => format!("{rps:.0}"),
        0.01..10.0 => format!("{rps:.2}"),
        _ => format!("{rps:.0e}"),
    }
}

/// A picture of each kind of GPU; those that are alike once, with how many there are.
fn layout(problem: &Problem, plan: &Plan, pictures: usize) -> String {
    let mut groups: Vec<(String, &GpuLayout, u32)> = Vec::new();
    let mut holes = 0;
    for gpu in &plan.layout {
        let Some(pool) = problem.pools.iter().find(|pool| pool.gpu.name == gpu.gpu_type) else { continue };
        let slices: Vec<Labelled> = gpu
            .instances
            .iter()
            .filter_map(|instance| {
                let profile =
                    pool.gpu.profiles.iter().position(|profile| profile.name == instance.profile)?;
                Some(Labelled {
                    placed: Placed { start: instance.start, profile },
                    label: instance.service.clone(),
                })
            })
            .collect();
        let placed: Vec<Placed> = slices.iter().map(|slice| slice.placed).collect();
        holes += pool.gpu.holes(&placed).len();
        let drawn = picture(&pool.gpu, &slices, PICTURE_WIDTH / usize::from(pool.gpu.units));
        match groups.iter_mut().find(|(known, first, _)| *known == drawn && first.gpu_type == gpu.gpu_type) {
            Some((_, _, count)) => *count += 1,
            None => groups.push((drawn, gpu, 1)),
        }
    }
    let mut text = String::new();
    for (drawn, first, count) in groups.iter().take(pictures) {
        let times = if *count > 1 { format!(" and {} like it", count - 1) } else { String::new() };
        let _ =
            writeln!(text, "GPU {} (node {}, {}){times}\n  {drawn}", first.gpu, first.node, first.gpu_type);
    }
    if groups.len() > pictures {
        let _ = writeln!(
            text,
            "and {} other GPUs; --pictures shows more",
            groups.iter().skip(pictures).map(|group| group.2).sum::<u32>()
        );
    }
    let _ = writeln!(text, "Holes: {holes} memory units of {} GPUs are in no slice.", plan.layout.len());
    text
}
