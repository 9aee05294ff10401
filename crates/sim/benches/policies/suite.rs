//! Every policy on every scenario of `scenarios/`.

use std::collections::BTreeMap;

use downbeat_sim::{GoodputReport, PolicySpec, Scenario};

use crate::{goodput, load, policy, scenario_folder};

/// Downbeat's own policies.
const OURS: [&str; 4] = ["guarded:k=1", "guarded:k=2", "guarded:k=4", "deferred"];
/// What others run. `eager` is nobody's system, and everybody's default.
const RIVALS: [&str; 7] =
    ["eager", "eager:drop=window", "delayed", "clockwork", "clockwork-published", "nexus", "shepherd"];
/// The factor in the title of Symphony's evaluation.
const HEADLINE: f64 = 4.7;

pub(crate) fn print(seeds: u32, filters: &[&str]) {
    println!("## Goodput as a share of the fluid bound\n");
    println!(
        "{seeds} paired seeds; in brackets the spread over the seeds. `delayed` and `clockwork` have the best of several\n\
         settings, by scenario; `-` where a policy cannot run the scenario.\n"
    );
    let policies: Vec<&str> = OURS.into_iter().chain(RIVALS).collect();
    println!("| scenario | bound rps | {} |", policies.join(" | "));
    println!("|---|---|{}", "---|".repeat(policies.len()));
    let mut reports = Vec::new();
    for name in names(filters) {
        let scenario = load(&name);
        let specs: Vec<PolicySpec> =
            policies.iter().map(|text| policy(text)).filter(|spec| can_run(spec, &scenario)).collect();
        let report = goodput(&scenario, &specs, seeds);
        let cells = policies.iter().map(|policy| match report.policies.get(*policy) {
            Some(found) => {
                format!("{:.3} ({:.3})", found.ratio_to_bound, found.spread_rps / report.fluid_bound_rps)
            }
            None => "-".to_owned(),
        });
        println!("| {name} | {:.0} | {} |", report.fluid_bound_rps, cells.collect::<Vec<_>>().join(" | "));
        reports.push(report);
    }
    println!();
    print_factors(&reports);
}

fn names(filters: &[&str]) -> Vec<String> {
    let files = std::fs::read_dir(scenario_folder()).into_iter().flatten().flatten();
    let mut names: Vec<String> = files
        .filter_map(|file| file.file_name().to_str()?.strip_suffix(".toml").map(str::to_owned))
        .filter(|name| filters.is_empty() || filters.iter().any(|filter| name.contains(filter)))
        .collect();
    names.sort();
    names
}

fn can_run(policy: &PolicySpec, scenario: &Scenario) -> bool {
    policy.name() != "nexus" || scenario.classes.len() == 1
}

/// By how much the best of ours beats each prior system, and where by the headline's factor.
fn print_factors(reports: &[GoodputReport]) {
    println!("## The best of Downbeat's policies over each prior system\n");
    let systems = &RIVALS[2..];
    println!("| scenario | ours | {} |", systems.join(" | "));
    println!("|---|---|{}", "---|".repeat(systems.len()));
    let mut beaten: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for report in reports {
        let rps = |name: &str| report.policies.get(name).map(|found| found.goodput_rps);
        let (best, ours) = OURS
            .iter()
            .filter_map(|name| Some((*name, rps(name)?)))
            .max_by(|a, b| a.1.total_cmp(&b.1))
            .unwrap_or_default();
        let cells = systems.iter().map(|system| match rps(system) {
            None => "-".to_owned(),
            Some(0.0) => "inf".to_owned(),
            Some(theirs) => format!("{:.2}", ours / theirs),
        });
        println!("| {} | {best} | {} |", report.scenario, cells.collect::<Vec<_>>().join(" | "));
        for system in systems {
            if let Some(theirs) = rps(system)
                && ours >= HEADLINE * theirs
            {
                let factor = if theirs > 0.0 {
                    format!("{:.1} times", ours / theirs)
                } else {
                    "it serves none".into()
                };
                beaten.entry(system).or_default().push(format!("{} ({factor})", report.scenario));
            }
        }
    }
    println!("\nBeaten {HEADLINE} times or more:\n");
    for (system, scenarios) in &beaten {
        println!("- {system}: {}", scenarios.join(", "));
    }
    if beaten.is_empty() {
        println!("- none");
    }
    println!();
}
