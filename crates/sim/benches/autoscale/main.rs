//! `make bench-autoscale`: a day under Downbeat's autoscaler and under others, and days of constant load.

#![allow(
    missing_docs,
    clippy::print_stdout,
    clippy::disallowed_types,
    reason = "a benchmark prints, and tells real time"
)]

mod generated;

use std::path::Path;
use std::time::Instant;

use downbeat_sim::{Replay, ReplayReport, ScaledRun, Scenario};

fn main() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    // Cargo adds flags of its own.
    let asked: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    let wanted = |name: &str| asked.is_empty() || asked.iter().any(|asked| asked == name);
    if wanted("day") {
        println!("A day, four-fold between night and peak, two surges, 20 models (autoscale-day.toml)\n");
        table(&replay(&folder.join("autoscale-day.toml")));
    }
    if wanted("seeds") {
        println!("\nOther arrivals of the same day, and days that nothing was chosen by\n");
        println!(
            "{:<18} {:>6} {:>6} {:>9} {:>11} {:>8} {:>15} {:>8} {:>14} {:>7} {:>10} {:>8} {:>7}",
            "day",
            "seed",
            "GPUs",
            "GPU-hours",
            "clairvoyant",
            "saved %",
            "of clairvoyant",
            "bad %",
            "model-minutes",
            "missed",
            "unexcused",
            "changes",
            "s"
        );
        let committed = load(&folder.join("autoscale-day.toml"));
        for seed in seeds(&asked, &[2, 3]) {
            one_line("autoscale-day", &committed, seed);
        }
        for seed in seeds(&asked, &[1, 2, 3, 4]) {
            let day = generated::day(seed);
            one_line(&day.name, &day, seed);
        }
    }
    if wanted("constant") {
        println!("\nA day of constant load (autoscale-constant.toml), by share of its rate\n");
        println!(
            "{:>8} {:>6} {:>6} {:>9} {:>9} {:>15} {:>9}",
            "rps", "seed", "GPUs", "GPU-hours", "changes", "after 10 min", "bad %"
        );
        let seeds = seeds(&asked, &[1, 2]);
        for share in [0.3, 0.5, 0.8, 1.0, 1.3, 1.7, 2.0] {
            seeds.iter().for_each(|&seed| constant(&folder.join("autoscale-constant.toml"), share, seed));
        }
    }
}

fn load(path: &Path) -> Scenario {
    Scenario::load(path).unwrap_or_else(|error| panic!("{error}"))
}

fn replay(path: &Path) -> ReplayReport {
    let begin = Instant::now();
    let scenario = load(path);
    let replay = Replay::new(&scenario, scenario.seed).unwrap_or_else(|error| panic!("{error}"));
    let report = replay.run(&|| {});
    println!("{} requests in {:.0} s\n", report.requests_simulated, begin.elapsed().as_secs_f64());
    report
}

/// The seeds that were asked for by number, or else the usual ones.
fn seeds(asked: &[String], usual: &[u64]) -> Vec<u64> {
    let given: Vec<u64> = asked.iter().filter_map(|asked| asked.parse().ok()).collect();
    if given.is_empty() { usual.to_vec() } else { given }
}

/// Downbeat's autoscaler beside the clairvoyant on one day.
fn one_line(name: &str, scenario: &Scenario, seed: u64) {
    let begin = Instant::now();
    let replay = Replay::new(scenario, seed).unwrap_or_else(|error| panic!("{error}"));
    let report = replay.run_beside_the_clairvoyant(&|| {});
    let [run, .., least] = &report.runs[..] else { panic!("there are two runs") };
    println!(
        "{name:<18} {seed:>6} {:>6} {:>9.1} {:>11.1} {:>8.1} {:>15.2} {:>8.3} {:>14} {:>7} {:>10} {:>8} {:>7.0}",
        format!("{}-{}", least.gpus_least, least.gpus_most),
        run.gpu_hours,
        least.gpu_hours,
        100.0 * run.saved,
        run.saved_of_clairvoyant,
        100.0 * run.bad_rate,
        run.model_minutes,
        run.missed,
        run.missed_unexcused,
        run.changes,
        begin.elapsed().as_secs_f64()
    );
    for (minute, missed) in run.minutes.iter().enumerate() {
        let at_s = 60.0 * minute as f64;
        let excused =
            report.excuses.iter().any(|excuse| excuse.from_s < at_s + 60.0 && at_s < excuse.until_s);
        if missed.bad_rate_worst > 0.01 && !excused {
            println!(
                "    missed at {:02}:{:02}: {:.1} % bad with {} GPUs and {} coming, {:.1} needed",
                minute / 60,
                minute % 60,
                100.0 * missed.bad_rate_worst,
                missed.gpus,
                missed.coming,
                missed.needed
            );
        }
    }
    for note in &report.notes {
        println!("note: {note}");
    }
}

fn table(report: &ReplayReport) {
    println!(
        "{:<18} {:>9} {:>8} {:>15} {:>8} {:>14} {:>8} {:>10} {:>8}",
        "rule",
        "GPU-hours",
        "saved %",
        "of clairvoyant",
        "bad %",
        "model-minutes",
        "missed",
        "unexcused",
        "changes"
    );
    for run in &report.runs {
        println!(
            "{:<18} {:>9.1} {:>8.1} {:>15.2} {:>8.3} {:>14} {:>8} {:>10} {:>8}",
            run.name,
            run.gpu_hours,
            100.0 * run.saved,
            run.saved_of_clairvoyant,
            100.0 * run.bad_rate,
            run.model_minutes,
            run.missed,
            run.missed_unexcused,
            run.changes
        );
    }
    println!(
        "\nunexcused: model-minutes of 1,000 requests or more with over 1 % bad, outside {:.0} s after a surge or failure",
        report.provision_s + 30.0
    );
    for note in &report.notes {
        println!("note: {note}");
    }
}

fn constant(path: &Path, share: f64, seed: u64) {
    let scenario = load(path);
    let mut scenario = scenario.with_rate(scenario.total_rps * share);
    // About as many as it takes: down from far too many is a matter of steps, not of scaling.
    scenario.classes[0].count = (f64::from(scenario.classes[0].count) * share).ceil() as u32 + 1;
    let replay = Replay::new(&scenario, seed).unwrap_or_else(|error| panic!("{error}"));
    let run: ScaledRun = replay.run_alone(&|| {});
    println!(
        "{:>8.0} {seed:>6} {:>6} {:>9.1} {:>9} {:>15} {:>9.3}",
        scenario.total_rps,
        run.minutes.last().map_or(0, |minute| minute.gpus),
        run.gpu_hours,
        run.changes,
        run.changes_after_start,
        100.0 * run.bad_rate
    );
    for change in run.log.iter().filter(|_| run.changes_after_start > 2) {
        println!("    {:>6.0} s: {}", change.at_s, change.explanation);
    }
}
