//! `make bench-day`: the committed day, by seed, driver and what the forecast knows.

#![allow(
    missing_docs,
    clippy::print_stdout,
    clippy::disallowed_types,
    clippy::unwrap_used,
    reason = "a benchmark prints, tells real time, and ends where something is wrong"
)]

use std::path::Path;
use std::time::Instant;

use downbeat_day::{DayReport, DayScenario, Goodput, day_page, simulate_day};
use downbeat_milp::Backend;
use downbeat_plan::Run;
use downbeat_sim::Span;
use downbeat_transition::{Driver, StepTimes};

/// A variant of the day.
type Variant = (&'static str, fn(&mut DayScenario));

const VARIANTS: [Variant; 4] = [
    ("nvml, 2021", |_| {}),
    ("nvml, 2021, no history", |day| day.settings.history = Span::ZERO),
    ("mig-parted, 2021", |day| day.settings.driver = Driver::MigParted),
    ("mig-parted, 2024", |day| {
        day.settings.driver = Driver::MigParted;
        day.settings.times = StepTimes::PAPER_2024;
    }),
];

fn main() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/day/office.toml");
    // Cargo adds flags of its own; a word is part of a variant's name, a number a seed, and FILE.html a page to write.
    let asked: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    let page = asked.iter().find(|asked| asked.ends_with(".html"));
    let seeds: Vec<u64> = asked.iter().filter_map(|asked| asked.parse().ok()).collect();
    let seeds = if seeds.is_empty() { vec![1, 2, 3] } else { seeds };
    let words: Vec<&String> =
        asked.iter().filter(|asked| asked.parse::<u64>().is_err() && !asked.ends_with(".html")).collect();
    let goodput = Goodput::forgetful();
    let begin = Instant::now();
    let day = DayScenario::load(&file, &goodput).unwrap_or_else(|error| panic!("{error}"));
    println!("{}: goodput of slices simulated in {:.1} s\n", day.name, begin.elapsed().as_secs_f64());
    println!(
        "{:<24} {:>4} {:>9} {:>9} {:>7} {:>7} {:>8} {:>8} {:>9} {:>9} {:>7} {:>6} {:>9} {:>5} {:>7} {:>6}",
        "variant",
        "seed",
        "GPU-hours",
        "one peak",
        "saved %",
        "GPUs",
        "requests",
        "in SLO %",
        "minutes",
        "below 99 %",
        "excused",
        "lost",
        "changes",
        "steps",
        "broken",
        "s"
    );
    for (name, change) in VARIANTS {
        if !words.is_empty() && !words.iter().any(|word| name.contains(word.as_str())) {
            continue;
        }
        let mut day = day.clone();
        change(&mut day);
        for &seed in &seeds {
            let report = one(name, &day, seed);
            if let Some(page) = page {
                std::fs::write(page, day_page(&report)).unwrap();
            }
        }
    }
}

fn one(name: &str, day: &DayScenario, seed: u64) -> DayReport {
    let backend = Backend::best(None).unwrap();
    let run = Run { stop: &|| false, on_progress: &|_| {}, backend: &backend, seed: 1 };
    let begin = Instant::now();
    let report = simulate_day(day, seed, &run, &|| {}).unwrap_or_else(|error| panic!("{error}"));
    println!(
        "{name:<24} {seed:>4} {:>9.1} {:>9.1} {:>7.1} {:>7} {:>8.1}M {:>8.3} {:>9} {:>9} {:>7} {:>6} {:>9} {:>5} {:>7} {:>6.0}",
        report.gpu_hours,
        report.fixed_gpu_hours,
        100.0 * report.saved,
        format!("{}-{}", report.gpus_least, report.gpus_most),
        report.requests as f64 / 1e6,
        100.0 * report.in_slo,
        report.service_minutes,
        report.missed,
        report.missed - report.missed_unexcused,
        report.lost,
        report.changes.len(),
        report.changes.iter().map(|change| change.steps.len()).sum::<usize>(),
        report.violations.len(),
        begin.elapsed().as_secs_f64()
    );
    if std::env::var_os("DAY_STORY").is_some() {
        story(&report);
    }
    report
}

/// Every decision, and every minute below 99 %.
fn story(report: &DayReport) {
    for change in &report.changes {
        println!(
            "  {:>6.0} s to {:>6.0} s, {}: {} ({} steps, {:.0} s expected)",
            change.at_s,
            change.ended_s.unwrap_or(f64::NAN),
            change.cause,
            change.why,
            change.planned_steps,
            change.expected_s
        );
    }
    for line in &report.log {
        println!("  {:>6.0} s: {}", line.at_s, line.what);
    }
    for (index, minute) in report.minutes.iter().enumerate() {
        for (service, share) in minute.in_slo.iter().enumerate().filter(|(_, share)| **share < 0.99) {
            println!(
                "  {:>6} s: {} {:.2} % in SLO at {:.0} rps, {:.0} counted, {} instances",
                60 * index,
                report.services[service].name,
                100.0 * share,
                minute.rate_rps[service],
                minute.capacity_rps[service],
                minute.instances[service]
            );
        }
    }
}
