//! `adaptive` and the rules that it follows on many random scenarios: a short look at each, and a long one where it
//! seems to be behind.

use std::ops::RangeInclusive;

use downbeat_sim::{GoodputReport, GoodputSearch, PolicySpec, Scenario};

use crate::against::{AgainstBest, NEAR, print_verdict};
use crate::random::Drawn;
use crate::suite::{OURS, RULES};
use crate::unseen::gpus;
use crate::{goodput, policy};

/// Of scenarios in which no rule comes to this share of the bound little can be said: the search ends at a tenth of it.
const REACHED_MIN: f64 = 0.05;

/// Other scenarios take too long: the rarest model is to have some thousand requests.
const GPUS_MOST: u32 = 32;
const RAREST_SHARE_MIN: f64 = 1.0 / 130.0;

/// Seeds and requests of the rarest model, at first.
const SHORT: (u32, u32) = (3, 1_200);

/// From words like `survey 1200-1299`.
pub(crate) fn print(words: &[String]) {
    let Some(numbers) = numbers(words) else {
        panic!("`survey` takes the numbers of random scenarios and nothing else, as in `survey 1200-1299`");
    };
    println!("## Random scenarios {} to {}\n", numbers.start(), numbers.end());
    println!(
        "Goodput as a share of the fluid bound, {} seeds of {} requests of the rarest model; where `{OURS}` is below {NEAR} of the best\n\
         of the rules, the next line is five seeds of {}, which decide. Left out: more than {GPUS_MOST} devices, or a model with less\n\
         than 1/130 of the requests; where no rule reaches {REACHED_MIN} of the bound, nothing is compared.\n",
        SHORT.0,
        SHORT.1,
        GoodputSearch::RAREST_REQUESTS
    );
    println!("| scenario | GPUs | models | seeds | {OURS} | over best of the rules |");
    println!("|---|---|---|---|---|---|");
    let policies: Vec<PolicySpec> = [OURS].into_iter().chain(RULES).map(policy).collect();
    let mut ratios = Vec::new();
    for scenario in numbers.map(Drawn::Mixed).map(Drawn::scenario).filter(is_small) {
        let (seeds, rarest_requests) = SHORT;
        let search = GoodputSearch { scenario: &scenario, policies: &policies, seeds, rarest_requests };
        let report = search.run(&|| {}).unwrap_or_else(|error| panic!("{error}"));
        if report.policies.values().all(|found| found.ratio_to_bound < REACHED_MIN) {
            continue;
        }
        let ratio = print_line(&scenario, &report, seeds);
        ratios.push(if ratio.mean() < NEAR {
            let seeds = 5;
            print_line(&scenario, &goodput(&scenario, &policies, seeds), seeds)
        } else {
            ratio
        });
    }
    if ratios.is_empty() {
        return;
    }
    print_verdict(&ratios);
    let mean = ratios.iter().map(AgainstBest::mean).sum::<f64>() / ratios.len() as f64;
    println!(
        "On average it has {mean:.3} of the best of the rules; a little less, since lucky short runs are not looked at again.\n"
    );
}

fn numbers(words: &[String]) -> Option<RangeInclusive<u64>> {
    let [_, numbers] = words else { return None };
    let (from, to) = numbers.split_once('-')?;
    Some(from.parse().ok()?..=to.parse().ok()?).filter(|numbers| !numbers.is_empty())
}

fn is_small(scenario: &Scenario) -> bool {
    let rarest_share = scenario.models.iter().map(|model| model.share).fold(1.0, f64::min);
    gpus(scenario) <= GPUS_MOST && rarest_share >= RAREST_SHARE_MIN
}

fn print_line(scenario: &Scenario, report: &GoodputReport, seeds: u32) -> AgainstBest {
    let ratio = AgainstBest::of(report);
    println!(
        "| {} | {} | {} | {seeds} | {:.3} | {ratio} |",
        scenario.name,
        gpus(scenario),
        scenario.models.len(),
        report.policies[OURS].ratio_to_bound
    );
    ratio
}
