//! Every policy on every scenario of `scenarios/`.

use std::collections::BTreeMap;

use downbeat_sim::{GoodputReport, PolicySpec, Scenario};

use crate::against::{AgainstBest, print_verdict};
use crate::{counted, goodput, load, policy, scenario_folder, scenario_names};

pub(crate) const OURS: &str = "adaptive";
/// The rules that `adaptive` grew out of, in all the settings that win somewhere.
pub(crate) const RULES: [&str; 7] = [
    "guarded:k=1",
    "guarded:k=2",
    "guarded:k=4",
    "deferred",
    "deferred:drop=timeout",
    "eager",
    "eager:drop=window",
];
/// Other people's systems.
const SYSTEMS: [&str; 5] = ["delayed", "clockwork", "clockwork-published", "nexus", "shepherd"];

/// Ours first.
pub(crate) fn all_policies() -> Vec<&'static str> {
    [OURS].into_iter().chain(RULES).chain(SYSTEMS).collect()
}

/// The factor in the title of Symphony's evaluation.
const HEADLINE: f64 = 4.7;

pub(crate) fn print(seeds: u32, filters: &[&str]) {
    println!("## Goodput as a share of the fluid bound\n");
    println!(
        "{}, the same for all policies; in brackets the spread over them. `delayed`, `clockwork` and `nexus` have the best\n\
         of several settings, by scenario; `-` where a policy cannot run the scenario.\n",
        counted(seeds)
    );
    let policies = all_policies();
    println!("| scenario | bound rps | {} | adaptive over best of the others |", policies.join(" | "));
    println!("|---|---|{}---|", "---|".repeat(policies.len()));
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
        let cells = cells.collect::<Vec<_>>().join(" | ");
        println!("| {name} | {:.0} | {cells} | {} |", report.fluid_bound_rps, AgainstBest::of(&report));
        reports.push(report);
    }
    print_verdict(&reports.iter().map(AgainstBest::of).collect::<Vec<_>>());
    print_factors(&reports);
}

pub(crate) fn names(filters: &[&str]) -> Vec<String> {
    scenario_names(&scenario_folder())
        .into_iter()
        // Days whose devices come and go: `make bench-autoscale`.
        .filter(|name| !name.starts_with("autoscale-"))
        .filter(|name| filters.is_empty() || filters.iter().any(|filter| name.contains(filter)))
        .collect()
}

pub(crate) fn can_run(policy: &PolicySpec, scenario: &Scenario) -> bool {
    policy.name() != "nexus" || scenario.classes.len() == 1
}

/// By how much ours beats each prior system, and where by the headline's factor.
fn print_factors(reports: &[GoodputReport]) {
    println!("## adaptive over each prior system\n");
    println!("| scenario | {} |", SYSTEMS.join(" | "));
    println!("|---|{}", "---|".repeat(SYSTEMS.len()));
    let mut beaten: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for report in reports {
        let rps = |name: &str| report.policies.get(name).map(|found| found.goodput_rps);
        let ours = rps(OURS).unwrap_or_default();
        let cells = SYSTEMS.iter().map(|system| match rps(system) {
            None => "-".to_owned(),
            Some(0.0) => "inf".to_owned(),
            Some(theirs) => format!("{:.2}", ours / theirs),
        });
        println!("| {} | {} |", report.scenario, cells.collect::<Vec<_>>().join(" | "));
        for system in SYSTEMS {
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
