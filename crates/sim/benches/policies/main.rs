//! `make bench-policies`: every policy on every scenario, beside the figures that others reached.
//!
//! Parts can be asked for by name (`reference`, `authors`, `adaptive`, `suite`, `unseen`, `speed`); `quick` uses one
//! seed instead of five. A word that is neither limits the suite and the unseen scenarios to those whose name contains
//! it. As the first word, these stand for something else alone:
//!
//! - `survey 1200-1299`: `adaptive` and the rules it follows on the random scenarios of these numbers.
//! - `stepped 0-99`: every policy on random scenarios whose latency grows in steps; with `quick`, a few policies.
//! - `latency`: latency, losses and busy devices at shares of a committed goodput. `latency 5000-5049` names the random
//!   scenarios, `requests=200000` the length of a run, other words limit the scenarios by name.
//! - `latency goodput`: makes the rows that the committed file lacks.

#![allow(clippy::print_stdout, reason = "its output is what a benchmark is for")]

mod adaptive;
mod against;
mod clairvoyant;
mod latency;
mod random;
mod reference;
mod robustness;
mod speed;
mod suite;
mod survey;
mod symphony;
mod unseen;

use std::path::{Path, PathBuf};

use downbeat_sim::{GoodputReport, GoodputSearch, PolicySpec, Scenario};

const PARTS: [&str; 6] = ["reference", "authors", "adaptive", "suite", "unseen", "speed"];

fn main() {
    // Cargo passes `--bench` on.
    let words: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with("--")).collect();
    match words.first().map(String::as_str) {
        Some("survey") => return survey::print(&words),
        Some("stepped") => return survey::print_stepped(&words),
        Some("latency") => return latency::print(&words[1..]),
        _ => {}
    }
    let seeds = if words.iter().any(|word| word == "quick") { 1 } else { FULL.seeds };
    let asked = |part: &str| {
        !words.iter().any(|word| PARTS.contains(&word.as_str())) || words.iter().any(|w| w == part)
    };
    let filters: Vec<&str> =
        words.iter().map(String::as_str).filter(|word| *word != "quick" && !PARTS.contains(word)).collect();
    if asked("reference") && filters.is_empty() {
        reference::print(seeds);
    }
    if asked("authors") && filters.is_empty() {
        symphony::print(seeds);
    }
    if asked("adaptive") && filters.is_empty() {
        adaptive::print(seeds);
        robustness::print(seeds);
        clairvoyant::print();
    }
    if asked("suite") {
        suite::print(seeds, &filters);
    }
    if asked("unseen") {
        unseen::print(seeds, &filters);
    }
    if asked("speed") && filters.is_empty() {
        speed::print();
    }
}

/// "1 seed", "5 seeds".
fn counted(seeds: u32) -> String {
    format!("{seeds} seed{}", if seeds == 1 { "" } else { "s" })
}

fn scenario_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios")
}

/// The scenarios in a folder, by name.
fn scenario_names(folder: &Path) -> Vec<String> {
    let files = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names: Vec<String> = files
        .filter_map(|file| file.file_name().to_str()?.strip_suffix(".toml").map(str::to_owned))
        .collect();
    names.sort();
    names
}

fn load(name: &str) -> Scenario {
    let path = scenario_folder().join(format!("{name}.toml"));
    Scenario::load(&path).unwrap_or_else(|error| panic!("{error}"))
}

fn policy(text: &str) -> PolicySpec {
    text.parse().unwrap_or_else(|error| panic!("{error}"))
}

/// The effort of a goodput search.
struct Search {
    seeds: u32,
    rarest_requests: u32,
}

const FULL: Search = Search { seeds: 5, rarest_requests: GoodputSearch::RAREST_REQUESTS };

impl Search {
    fn run(&self, scenario: &Scenario, policies: &[PolicySpec]) -> GoodputReport {
        let Search { seeds, rarest_requests } = *self;
        let search = GoodputSearch { scenario, policies, seeds, rarest_requests };
        search.run(&|| {}).unwrap_or_else(|error| panic!("{error}"))
    }
}

fn goodput(scenario: &Scenario, policies: &[PolicySpec], seeds: u32) -> GoodputReport {
    Search { seeds, ..FULL }.run(scenario, policies)
}
