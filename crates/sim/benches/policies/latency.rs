//! Latency, losses and busy devices at shares of the goodput, beside the best rival that loses no more.

mod baseline;
mod cell;
mod limits;
mod outcome;
mod summary;

use std::ops::RangeInclusive;

use downbeat_sim::{Scenario, fluid_bound_rps};
use rayon::prelude::*;

use self::baseline::Baseline;
use self::cell::Cell;
use crate::random::{Drawn, numbers};
use crate::suite::{self, OURS};
use crate::survey::{REACHED_MIN, is_small};
use crate::{load, policy};

/// Shares of the goodput, in percent.
const LOADS: [u32; 5] = [10, 25, 50, 75, 90];

/// Requests of a run, all models together, where the command line names no other number. The committed file has the
/// outcome of runs of this length.
const REQUESTS: u64 = 20_000;

/// The random scenarios, by number.
const DRAWN: RangeInclusive<u64> = 5000..=5049;

/// `eight-models-8gpu` at another rate, which is set here anyway.
const DUPLICATE: &str = "overload-2x";

/// The request on the command line.
struct Asked<'a> {
    /// Rows of the committed file, instead of a table.
    goodput: bool,
    requests: u64,
    drawn: RangeInclusive<u64>,
    /// Parts of scenario names; empty for all.
    filters: Vec<&'a str>,
}

impl Asked<'_> {
    fn of(words: &[String]) -> Asked<'_> {
        let mut asked = Asked { goodput: false, requests: REQUESTS, drawn: DRAWN, filters: Vec::new() };
        for word in words {
            if word == "goodput" {
                asked.goodput = true;
            } else if let Some(requests) = word.strip_prefix("requests=") {
                let refuse = || panic!("`{word}` is not a number of requests, as in `requests=200000`");
                asked.requests = requests.parse().ok().filter(|&number| number > 0).unwrap_or_else(refuse);
            } else if let Some(range) = numbers(word) {
                asked.drawn = range;
            } else {
                asked.filters.push(word);
            }
        }
        asked
    }

    fn scenarios(&self) -> Vec<Scenario> {
        let suite = suite::names(&[]).into_iter().filter(|name| name != DUPLICATE).map(|name| load(&name));
        let drawn = self.drawn.clone().map(Drawn::Mixed).map(Drawn::scenario).filter(is_small);
        let named = |scenario: &Scenario| {
            self.filters.is_empty() || self.filters.iter().any(|filter| scenario.name.contains(filter))
        };
        suite.chain(drawn).filter(named).collect()
    }
}

pub(crate) fn print(words: &[String]) {
    let asked = Asked::of(words);
    let mut baseline = Baseline::read();
    let scenarios = asked.scenarios();
    if asked.goodput {
        return baseline.add_missing(&scenarios);
    }
    println!("## Latency at shares of the goodput\n");
    println!(
        "{} requests a run, one seed, the same for all policies; at least a second is run before. A ratio is the geometric mean over\n\
         the models of {OURS} over the best rival: the one with the lowest p50 among those that lose no more requests.\n\
         Lost requests are late or given up, in % of all. `delayed` has the best of two settings.\n",
        asked.requests
    );
    let cells = cells(&scenarios, &baseline, asked.requests);
    Cell::print_header();
    cells.iter().for_each(Cell::print);
    summary::print(&cells, asked.requests == REQUESTS);
}

/// One for each scenario and load. Scenarios in which hardly anything is served are left out.
fn cells<'a>(scenarios: &'a [Scenario], baseline: &'a Baseline, requests: u64) -> Vec<Cell<'a>> {
    let mut loads = Vec::new();
    for scenario in scenarios {
        let row = baseline.row(scenario);
        if row.goodput_rps >= REACHED_MIN * fluid_bound_rps(scenario) {
            loads.extend(
                LOADS.into_iter().zip(&row.before).map(|(load, before)| (scenario, row, load, before)),
            );
        }
    }
    let policies: Vec<_> = [OURS].into_iter().chain(cell::RIVALS).map(policy).collect();
    loads
        .into_par_iter()
        .map(|(scenario, row, load, before)| {
            let outcomes = outcome::run(scenario, row.rate_rps(load), requests, &policies);
            Cell::new(scenario, load, before, outcomes)
        })
        .collect()
}
