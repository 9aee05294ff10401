//! Scenarios that `adaptive` was not made for: those of `scenarios/unseen/`, and some that nobody chose.

use std::ops::RangeInclusive;

use downbeat_sim::{PolicySpec, Scenario};

use crate::against::{AgainstBest, print_verdict};
use crate::random::Drawn;
use crate::suite::{OURS, all_policies, can_run};
use crate::{counted, goodput, policy, scenario_folder, scenario_names};

/// The random ones, by number. Lower numbers were looked at while the rule was made; others can be asked for by name.
const RANDOM: RangeInclusive<u64> = 231..=254;

/// Those with one model alone.
const ALONE: RangeInclusive<u64> = 0..=19;

pub(crate) fn print(seeds: u32, filters: &[&str]) {
    println!("## Scenarios that adaptive was not made for\n");
    println!(
        "Goodput as a share of the fluid bound, {}, the same for all policies. In brackets the range of the ratio over the\n\
         seeds: one that contains 1 is no difference. `random-N` is drawn from its number, `alone-N` has one model.\n",
        counted(seeds)
    );
    println!("| scenario | GPUs | models | bound rps | adaptive | adaptive over best of the others |");
    println!("|---|---|---|---|---|---|");
    let folder = scenario_folder().join("unseen");
    let chosen = scenario_names(&folder).into_iter().map(|name| {
        Scenario::load(&folder.join(format!("{name}.toml"))).unwrap_or_else(|error| panic!("{error}"))
    });
    let asked = |scenario: &Scenario| {
        filters.is_empty() || filters.iter().any(|filter| scenario.name.contains(filter))
    };
    let usual: Vec<Drawn> = ALONE.map(Drawn::Alone).chain(RANDOM.map(Drawn::Mixed)).collect();
    let by_name = filters.iter().filter_map(|name| Drawn::named(name)).filter(|drawn| !usual.contains(drawn));
    let drawn = usual.iter().copied().chain(by_name).map(Drawn::scenario);
    let mut ratios = Vec::new();
    for scenario in chosen.chain(drawn).filter(asked) {
        let specs: Vec<PolicySpec> =
            all_policies().into_iter().map(policy).filter(|spec| can_run(spec, &scenario)).collect();
        let report = goodput(&scenario, &specs, seeds);
        let ratio = AgainstBest::of(&report);
        println!(
            "| {} | {} | {} | {:.0} | {:.3} | {ratio} |",
            scenario.name,
            gpus(&scenario),
            scenario.models.len(),
            report.fluid_bound_rps,
            report.policies[OURS].ratio_to_bound,
        );
        ratios.push(ratio);
    }
    print_verdict(&ratios);
}

/// How many devices there are, of all classes.
pub(crate) fn gpus(scenario: &Scenario) -> u32 {
    scenario.classes.iter().map(|class| class.count).sum()
}
