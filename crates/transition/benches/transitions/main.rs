//! How good transitions are: spares, steps, seconds, on random layouts and beside exhaustive search and MIG-serving's
//! figures.
//!
//! `make bench-transition`; `BENCH=100` for fewer pairs, `BENCH="day small"` for some of its parts.

#![allow(clippy::disallowed_types, reason = "a benchmark measures real time")]
#![allow(clippy::print_stdout, reason = "a benchmark prints")]

mod exhaustive;
mod random;

use std::time::Instant;

use downbeat_mig::{Catalogue, GpuModel};
use downbeat_transition::{Comparison, Driver, Layout, Options, PlanError, Transition, plan};
use exhaustive::{Answer, Exhaustive};
use rand::RngExt;
use random::Random;

const GPUS_MAX: u32 = 50;
const SERVICES_MAX: usize = 30;
/// States that exhaustive search may visit.
const STATES_MAX: usize = 20_000;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let pairs = std::env::args().filter_map(|argument| argument.parse().ok()).next().unwrap_or(1000);
    let catalogue = Catalogue::builtin();
    let gpu = catalogue.find("H200-141GB")?;
    // Without a name, all of them.
    let parts = ["layouts", "day", "small", "renumber"];
    let named: Vec<String> = std::env::args().filter(|argument| parts.contains(&argument.as_str())).collect();
    let is_asked = |part: &str| named.is_empty() || named.iter().any(|name| name == part);
    if is_asked("layouts") {
        large(&catalogue, gpu, pairs, false)?;
    }
    if is_asked("day") {
        day_and_night(&catalogue, gpu, pairs.min(100))?;
    }
    if is_asked("small") {
        small(&catalogue, gpu, pairs)?;
    }
    if is_asked("renumber") {
        large(&catalogue, gpu, pairs, true)?;
    }
    Ok(())
}

/// How the second layout comes about.
#[derive(Clone, Copy)]
enum Pair {
    /// Another number of GPUs, all full.
    Free,
    /// As many GPUs, all full.
    Equal,
    /// As many GPUs, a tenth of the slices empty.
    Holes,
    /// The same instances, elsewhere, all GPUs full.
    Rearranged,
}

impl Pair {
    const ALL: [(Pair, &'static str); 4] = [
        (Pair::Free, "any size, full"),
        (Pair::Equal, "equal size, full"),
        (Pair::Holes, "equal size, 10 % holes"),
        (Pair::Rearranged, "rearranged, full"),
    ];

    fn draw(self, gpu: &GpuModel, seed: u64, gpus_max: u32, services_max: usize) -> (Layout, Layout) {
        let mut sizes = Random::new(gpu, 1, seed ^ 0xd0b);
        let from = sizes.rng.random_range(1..=gpus_max);
        let to = match self {
            Pair::Free => sizes.rng.random_range(1..=gpus_max),
            _ => from,
        };
        // As many services as surely have an instance on both sides.
        let services = sizes.rng.random_range(1..=services_max.min(from.min(to) as usize));
        let mut random = Random::new(gpu, services, seed);
        let empty = if matches!(self, Pair::Holes) { 0.1 } else { 0.0 };
        let first = random.layout(from, empty);
        let second = match self {
            Pair::Rearranged => random.rearranged(&first),
            _ => random.layout(to, empty),
        };
        (first, second)
    }
}

fn large(catalogue: &Catalogue, gpu: &GpuModel, pairs: u64, renumber: bool) -> Result<(), PlanError> {
    let numbers = if renumber { "; GPUs of the second layout may trade places (--renumber)" } else { "" };
    println!(
        "{pairs} random pairs of layouts each, up to {GPUS_MAX} GPUs and {SERVICES_MAX} services{numbers}"
    );
    println!(
        "{:<11} {:<24} {:>8} {:>8} {:>6} {:>8} {:>12} {:>11} {:>8} {:>8} {:>8}",
        "driver",
        "pairs",
        "0 spares",
        "<= 1",
        "most",
        "steps",
        "/ must change",
        "/ at least",
        "worst",
        "mean s",
        "most s"
    );
    for (driver, driver_name) in [(Driver::Nvml, "nvml"), (Driver::MigParted, "mig-parted")] {
        for (pair, name) in Pair::ALL {
            let comparison = Comparison { renumber, ..Comparison::default() };
            let options = Options { driver, comparison, ..Options::default() };
            let mut tally = Tally::default();
            for seed in 0..pairs {
                let (from, to) = pair.draw(gpu, seed, GPUS_MAX, SERVICES_MAX);
                let begin = Instant::now();
                let found = plan(&from, &to, catalogue, &options)?;
                tally.add(&found, begin.elapsed().as_secs_f64());
            }
            tally.print(driver_name, name);
        }
    }
    println!("Every transition passed the replayer.");
    println!(
        "Must change: instances that must change and GPUs that must be recut. At least: those, and a step for each"
    );
    println!(
        "circle of instances that wait for one another to leave; no transition has fewer. Means of steps over each.\n"
    );
    Ok(())
}

/// Sums over pairs.
#[derive(Default)]
struct Tally {
    spares: Vec<usize>,
    steps: usize,
    over_changes: Vec<f64>,
    over_bound: Vec<f64>,
    seconds: Vec<f64>,
}

impl Tally {
    fn add(&mut self, found: &Transition, seconds: f64) {
        self.spares.push(found.spares.len());
        self.steps += found.steps.len();
        if found.lower_bound > 0 {
            self.over_changes.push(found.steps.len() as f64 / found.must_change as f64);
            self.over_bound.push(found.steps.len() as f64 / found.lower_bound as f64);
        }
        self.seconds.push(seconds);
    }

    fn print(&self, driver: &str, pairs: &str) {
        let share = |most: usize| {
            let within = self.spares.iter().filter(|&&spares| spares <= most).count();
            format!("{:.1} %", within as f64 * 100.0 / self.spares.len().max(1) as f64)
        };
        println!(
            "{driver:<11} {pairs:<24} {:>8} {:>8} {:>6} {:>8.1} {:>12.3} {:>11.3} {:>8.3} {:>8.3} {:>8.3}",
            share(0),
            share(1),
            self.spares.iter().max().unwrap_or(&0),
            self.steps as f64 / self.spares.len().max(1) as f64,
            mean(&self.over_changes),
            mean(&self.over_bound),
            most(&self.over_bound),
            mean(&self.seconds),
            most(&self.seconds),
        );
    }
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

fn most(values: &[f64]) -> f64 {
    values.iter().copied().fold(0.0, f64::max)
}

/// Is there a transition with one spare less than was planned with? The planner's own search may have proved that there
/// is none; with NVML another program searches as well.
fn small(catalogue: &Catalogue, gpu: &GpuModel, pairs: u64) -> Result<(), PlanError> {
    println!(
        "{pairs} pairs each of up to 4 GPUs and 4 services: spares beside exhaustive search (another program's: nvml, up to {STATES_MAX} states)"
    );
    println!(
        "{:<11} {:<24} {:>9} {:>14} {:>12} {:>18} {:>17} {:>8} {:>8}",
        "driver",
        "pairs",
        "no spare",
        "proved fewest",
        "not settled",
        "other finds fewer",
        "other gives up",
        "mean s",
        "most s"
    );
    for (driver, driver_name) in [(Driver::Nvml, "nvml"), (Driver::MigParted, "mig-parted")] {
        for (pair, name) in Pair::ALL {
            let (mut none, mut fewest, mut open, mut beaten, mut unknown) = (0, 0, 0, 0, 0);
            let mut seconds = Vec::new();
            for seed in 0..pairs {
                let (from, to) = pair.draw(gpu, seed, 4, 4);
                let begin = Instant::now();
                let found = plan(&from, &to, catalogue, &Options { driver, ..Options::default() })?;
                seconds.push(begin.elapsed().as_secs_f64());
                let Some(fewer) = found.spares.len().checked_sub(1) else {
                    none += 1;
                    continue;
                };
                *(if found.spares_are_fewest { &mut fewest } else { &mut open }) += 1;
                if driver == Driver::Nvml {
                    match Exhaustive::new(gpu, &from, &to, fewer).answer(STATES_MAX) {
                        Answer::Reachable => beaten += 1,
                        Answer::Unreachable => {}
                        Answer::Unknown => unknown += 1,
                    }
                }
            }
            println!(
                "{driver_name:<11} {name:<24} {none:>9} {fewest:>14} {open:>12} {beaten:>18} {unknown:>17} {:>8.3} {:>8.3}",
                mean(&seconds),
                most(&seconds)
            );
        }
    }
    println!();
    Ok(())
}

/// MIG-serving's day and night: 16 and 5 GPUs, 5 services; it took 1,021 s from day to night and 1,595 s back.
fn day_and_night(catalogue: &Catalogue, gpu: &GpuModel, pairs: u64) -> Result<(), PlanError> {
    println!(
        "Day (16 GPUs) and night (5 GPUs), 5 services, {pairs} random pairs, step times of 2021; expected seconds"
    );
    println!(
        "{:<14} {:<11} {:>8} {:>8} {:>10} {:>7} {:>10} {:>16}",
        "transition", "driver", "median", "most", "published", "spares", "steps", "planned in, most"
    );
    for (driver, driver_name) in [(Driver::Nvml, "nvml"), (Driver::MigParted, "mig-parted")] {
        for (name, published, falls) in [("day to night", 1021, true), ("night to day", 1595, false)] {
            let (mut expected, mut seconds, mut steps, mut spares) = (Vec::new(), Vec::new(), Vec::new(), 0);
            for seed in 0..pairs {
                let mut random = Random::new(gpu, 5, seed);
                let (day, night) = (random.layout(16, 0.0), random.layout(5, 0.0));
                let (from, to) = if falls { (day, night) } else { (night, day) };
                let begin = Instant::now();
                let found = plan(&from, &to, catalogue, &Options { driver, ..Options::default() })?;
                seconds.push(begin.elapsed().as_secs_f64());
                expected.push(found.expected_s);
                steps.push(found.steps.len() as f64);
                spares = spares.max(found.spares.len());
            }
            expected.sort_by(f64::total_cmp);
            println!(
                "{name:<14} {driver_name:<11} {:>8.0} {:>8.0} {published:>10} {spares:>7} {:>10.1} {:>16.3}",
                expected[expected.len() / 2],
                most(&expected),
                mean(&steps),
                most(&seconds),
            );
        }
    }
    Ok(())
}
