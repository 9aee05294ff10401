//! `adaptive` and others on many random scenarios: a short look at each, and a long one where it seems to be behind.

use downbeat_sim::{GoodputReport, PolicySpec, Scenario};

use crate::against::{AgainstBest, NEAR, print_verdict};
use crate::random::{Drawn, numbers};
use crate::suite::{OURS, RULES, all_policies, can_run};
use crate::unseen::gpus;
use crate::{FULL, Search, policy};

/// Of scenarios in which no policy comes to this share of the bound little can be said: the search ends at a tenth of it.
pub(crate) const REACHED_MIN: f64 = 0.05;

/// Other scenarios take too long: the rarest model is to have some thousand requests.
const GPUS_MOST: u32 = 32;
const RAREST_SHARE_MIN: f64 = 1.0 / 130.0;

/// The first look.
pub(crate) const SHORT: Search = Search { seeds: 3, rarest_requests: 1_200 };

/// The share of the best of the others that `adaptive` is to have on profiles with steps.
const STEPPED_MIN: f64 = 0.96;

/// The others in a quick look at profiles with steps.
const QUICK: [&str; 7] =
    ["nexus", "clockwork", "delayed", "eager", "eager:drop=window", "guarded:k=1", "deferred"];

/// From words like `survey 1200-1299`: the rules that `adaptive` follows, on lines.
pub(crate) fn print(words: &[String]) {
    let [_, range] = words else { usage("survey 1200-1299") };
    let Some(range) = numbers(range) else { usage("survey 1200-1299") };
    println!("## Random scenarios {} to {}\n", range.start(), range.end());
    let policies: Vec<&str> = [OURS].into_iter().chain(RULES).collect();
    let ratios = compare(range.map(Drawn::Mixed), &policies);
    if !ratios.is_empty() {
        print_verdict(&ratios);
        print_mean(&ratios);
    }
}

/// From words like `stepped 0-99` or `stepped 0-99 quick`: all policies, on profiles with steps.
pub(crate) fn print_stepped(words: &[String]) {
    let policies = match words {
        [_, _] => all_policies(),
        [_, _, quick] if quick == "quick" => [OURS].into_iter().chain(QUICK).collect(),
        _ => usage("stepped 0-99 quick"),
    };
    let Some(range) = numbers(&words[1]) else { usage("stepped 0-99 quick") };
    println!("## Random scenarios with steps in their profiles, {} to {}\n", range.start(), range.end());
    let ratios = compare(range.map(Drawn::Stepped), &policies);
    if !ratios.is_empty() {
        print_mean(&ratios);
        let below: Vec<&AgainstBest> = ratios.iter().filter(|ratio| ratio.mean() < STEPPED_MIN).collect();
        let clearly = below.iter().filter(|ratio| ratio.mean() + ratio.spread() < STEPPED_MIN).count();
        println!(
            "{} of {} are below {STEPPED_MIN} of the best of the others, {clearly} of them by more than the spread over the seeds.\n",
            below.len(),
            ratios.len()
        );
    }
}

fn usage(example: &str) -> ! {
    panic!("this part takes the numbers of random scenarios and nothing else, as in `{example}`");
}

/// Prints a line or two for each scenario. Ratios are those of the last line.
fn compare(drawn: impl Iterator<Item = Drawn>, policies: &[&str]) -> Vec<AgainstBest> {
    println!(
        "Goodput as a share of the fluid bound, {} seeds of {} requests of the rarest model; where `{OURS}` is below {NEAR} of the best\n\
         of the others, the next line is {} seeds of {}, which decide. Left out: more than {GPUS_MOST} devices, or a model with less\n\
         than 1/130 of the requests; where no policy reaches {REACHED_MIN} of the bound, nothing is compared.\n\
         The others: {}.\n",
        SHORT.seeds,
        SHORT.rarest_requests,
        FULL.seeds,
        FULL.rarest_requests,
        policies[1..].join(", ")
    );
    println!(
        "| scenario | GPUs | models | profiles | bound rps | seeds | {OURS} | over best of the others |"
    );
    println!("|---|---|---|---|---|---|---|---|");
    let mut ratios = Vec::new();
    for drawn in drawn {
        let scenario = drawn.scenario();
        if !is_small(&scenario) {
            continue;
        }
        let specs: Vec<PolicySpec> =
            policies.iter().map(|text| policy(text)).filter(|spec| can_run(spec, &scenario)).collect();
        let look = |search: &Search| {
            let report = search.run(&scenario, &specs);
            reaches_enough(&report).then(|| print_line(drawn, &scenario, &report, search.seeds))
        };
        let Some(first) = look(&SHORT) else { continue };
        let second = (first.mean() < NEAR).then(|| look(&FULL)).flatten();
        ratios.push(second.unwrap_or(first));
    }
    ratios
}

fn reaches_enough(report: &GoodputReport) -> bool {
    report.policies.values().any(|found| found.ratio_to_bound >= REACHED_MIN)
}

pub(crate) fn is_small(scenario: &Scenario) -> bool {
    let rarest_share = scenario.models.iter().map(|model| model.share).fold(1.0, f64::min);
    gpus(scenario) <= GPUS_MOST && rarest_share >= RAREST_SHARE_MIN
}

fn print_line(drawn: Drawn, scenario: &Scenario, report: &GoodputReport, seeds: u32) -> AgainstBest {
    let ratio = AgainstBest::of(report);
    println!(
        "| {} | {} | {} | {} | {:.0} | {seeds} | {:.3} | {ratio} |",
        scenario.name,
        gpus(scenario),
        scenario.models.len(),
        drawn.profiles(),
        report.fluid_bound_rps,
        report.policies[OURS].ratio_to_bound
    );
    ratio
}

fn print_mean(ratios: &[AgainstBest]) {
    let mean = ratios.iter().map(AgainstBest::mean).sum::<f64>() / ratios.len() as f64;
    println!(
        "On average it has {mean:.3} of the best of the others; a little less, since lucky short runs are not looked at again.\n"
    );
}
