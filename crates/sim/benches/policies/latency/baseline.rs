//! The committed goodput of each scenario, and what `adaptive` did at shares of it when the row was made.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use downbeat_sim::{Scenario, Span, fluid_bound_rps};
use rayon::prelude::*;

use super::outcome::{self, Outcome};
use super::{LOADS, REQUESTS};
use crate::policy;
use crate::suite::OURS;
use crate::survey::SHORT;

/// Of the share of lost requests. Runs have fewer than ten million.
const LOST_DIGITS: usize = 7;

/// Runs of a search have no more requests than this at the fluid bound, but for the sake of the rarest model.
const SEARCH_REQUESTS: f64 = 200_000.0;

/// The committed file: one row for each scenario.
pub(super) struct Baseline {
    rows: BTreeMap<String, Row>,
}

pub(super) struct Row {
    pub(super) goodput_rps: f64,
    /// By load, in the order of [`LOADS`].
    pub(super) before: Vec<Before>,
}

/// One load under the rule of the committed row.
#[derive(Default)]
pub(super) struct Before {
    /// Share of all requests.
    pub(super) lost: f64,
    /// Mean over the models.
    pub(super) p50_ms: f64,
    /// Mean over the models.
    pub(super) p99_ms: f64,
}

impl Baseline {
    /// Reads the file; a file that is not there has no rows.
    pub(super) fn read() -> Baseline {
        let text = std::fs::read_to_string(path()).unwrap_or_default();
        let lines = text.lines().filter(|line| !line.starts_with('#') && *line != columns());
        let row = |line: &str| {
            Row::parse(line).unwrap_or_else(|| panic!("{}: this is not a row: {line}", path().display()))
        };
        Baseline { rows: lines.map(row).collect() }
    }

    pub(super) fn row(&self, scenario: &Scenario) -> &Row {
        let name = &scenario.name;
        self.rows.get(name).unwrap_or_else(|| {
            let file = path();
            // `random-5003` is asked for by its number, others by a part of their name.
            let word = name.strip_prefix("random-").map(|number| format!("{number}-{number}"));
            let word = word.unwrap_or_else(|| name.clone());
            panic!(
                "{} has no row for {name}: make it with `make bench-policies BENCH=\"latency goodput {word}\"`",
                file.file_name().unwrap_or_default().display()
            )
        })
    }

    /// Makes the rows that are missing, and writes the file after each: searches take long.
    pub(super) fn add_missing(&mut self, scenarios: &[Scenario]) {
        let missing: Vec<&Scenario> =
            scenarios.iter().filter(|scenario| !self.rows.contains_key(&scenario.name)).collect();
        let baseline = Mutex::new(self);
        missing.into_par_iter().for_each(|scenario| {
            let row = Row::measure(scenario);
            let mut baseline = baseline.lock().unwrap_or_else(|error| panic!("{error}"));
            println!("{}: {:.1} rps", scenario.name, row.goodput_rps);
            baseline.rows.insert(scenario.name.clone(), row);
            baseline.write();
        });
    }

    fn write(&self) {
        let mut text = format!(
            "# Goodput of `{OURS}` in requests/s, mean over {} seeds, and what it did at shares of that goodput, one seed of {REQUESTS} requests:\n\
             # the share of requests lost, p50 and p99 in ms (means over the models). Rows that are missing are made by\n\
             # `make bench-policies BENCH=\"latency goodput\"`; those that are there stay, for later rules to be compared with.\n",
            SHORT.seeds
        );
        text.push_str(&columns());
        text.push('\n');
        for (name, row) in &self.rows {
            text.push_str(&row.line(name));
            text.push('\n');
        }
        std::fs::write(path(), text).unwrap_or_else(|error| panic!("{}: {error}", path().display()));
    }
}

impl Row {
    /// Requests per second at a share of the goodput.
    pub(super) fn rate_rps(&self, load_percent: u32) -> f64 {
        self.goodput_rps * f64::from(load_percent) / 100.0
    }

    fn measure(scenario: &Scenario) -> Row {
        let ours = [policy(OURS)];
        let measured_s = SEARCH_REQUESTS / fluid_bound_rps(scenario);
        let own = scenario.duration - scenario.warmup;
        let short = scenario.with_measured(own.min(Span::from_secs_f64(measured_s)));
        let goodput_rps = SHORT.run(&short, &ours).policies[OURS].goodput_rps;
        // As it is written: who reads the file runs at the same rates.
        let goodput_rps = (goodput_rps * 1_000.0).round() / 1_000.0;
        let mut row = Row { goodput_rps, before: Vec::new() };
        row.before = LOADS
            .map(|load| match row.rate_rps(load) {
                0.0 => Before::default(),
                rate_rps => Before::of(&outcome::run(scenario, rate_rps, REQUESTS, &ours)[0]),
            })
            .into();
        row
    }

    fn parse(line: &str) -> Option<(String, Row)> {
        let (name, numbers) = line.split_once(',')?;
        let numbers: Vec<f64> = numbers.split(',').map(str::parse).collect::<Result<_, _>>().ok()?;
        let (&goodput_rps, loads) = numbers.split_first()?;
        let (before, []) = loads.as_chunks() else { return None };
        let before: Vec<Before> =
            before.iter().map(|&[lost, p50_ms, p99_ms]| Before { lost, p50_ms, p99_ms }).collect();
        (before.len() == LOADS.len()).then(|| (name.to_owned(), Row { goodput_rps, before }))
    }

    fn line(&self, name: &str) -> String {
        let loads = self
            .before
            .iter()
            .map(|Before { lost, p50_ms, p99_ms }| format!(",{lost:.LOST_DIGITS$},{p50_ms:.4},{p99_ms:.4}"));
        format!("{name},{}{}", self.goodput_rps, loads.collect::<String>())
    }
}

impl Before {
    fn of(outcome: &Outcome) -> Before {
        Before { lost: outcome.lost, p50_ms: outcome.mean_p50_ms(), p99_ms: outcome.mean_p99_ms() }
    }

    /// `lost` is more than that, beyond the rounding of the file.
    pub(super) fn loses_less_than(&self, lost: f64) -> bool {
        lost > self.lost + 0.1_f64.powi(LOST_DIGITS as i32)
    }
}

fn columns() -> String {
    let loads = LOADS.map(|load| format!(",lost_{load},p50_ms_{load},p99_ms_{load}"));
    format!("scenario,goodput_rps{}", loads.concat())
}

fn path() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/policies/goodput.csv")
}
