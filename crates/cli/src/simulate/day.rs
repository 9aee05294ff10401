//! `downbeat simulate` of a day: a scenario file with the table `day`.

#![allow(clippy::disallowed_types, reason = "a planner's time limit is a matter of real time")]

use std::fmt::Write;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use anyhow::bail;
use downbeat_day::report::{ChangeReport, DayReport};
use downbeat_day::{DayScenario, Goodput, day_page, simulate_day};
use downbeat_milp::Backend;
use downbeat_plan::Run;
use indicatif::{ProgressBar, ProgressStyle};

use super::Arguments;
use crate::output::{self, Format, PageFile};
use crate::plan::{default_cache, spinner};

/// Real time that planning may take within one simulated minute; then the best plan so far is taken.
const PLANNING_MAX: Duration = Duration::from_secs(20);

/// Changes shown in the text output.
const CHANGES_SHOWN: usize = 40;

pub(super) fn run(arguments: &Arguments, file: &str, page: Option<PageFile>) -> anyhow::Result<()> {
    if arguments.rate.is_some() {
        bail!("--rate does not apply to a day; change rate_rps in the problem file that it names");
    }
    if arguments.policy.to_string() != "adaptive" {
        bail!("--policy does not apply to a day: it is served by adaptive");
    }
    let day = read(arguments, file)?;
    let seed = arguments.seed.unwrap_or(day.seed);
    let backend = Backend::best(None)?;
    if !backend.is_strong() {
        output::warn(
            "HiGHS was not found: layouts may take more GPUs than need be. Run `make setup-solver`.",
        );
    }
    let progress = progress(&day);
    let begin = Instant::now();
    let minute_began = Mutex::new(begin);
    let is_too_long = || minute_began.lock().is_ok_and(|began| began.elapsed() >= PLANNING_MAX);
    let run = Run { stop: &is_too_long, on_progress: &|_| {}, backend: &backend, seed: 1 };
    let on_minute = || {
        progress.inc(1);
        if let Ok(mut began) = minute_began.lock() {
            *began = Instant::now();
        }
    };
    let mut report = simulate_day(&day, seed, &run, &on_minute)?;
    report.wall_s = begin.elapsed().as_secs_f64();
    progress.finish_and_clear();
    let result = match arguments.format {
        Format::Json => serde_json::to_string_pretty(&report)?,
        Format::Text => text(&report),
    };
    output::deliver(&result, arguments.format, page.map(|page| (page, || day_page(&report))))
}

/// Reads the day. Under the rule `measured` this is where goodput is simulated, and remembered.
fn read(arguments: &Arguments, file: &str) -> anyhow::Result<DayScenario> {
    let goodput = match default_cache() {
        Some(path) => Goodput::remembering(&path)?,
        None => Goodput::forgetful(),
    };
    let spinner = spinner("reading, and simulating what is not remembered");
    let day = DayScenario::parse(file, &arguments.scenario, &goodput)?;
    spinner.finish_and_clear();
    if let Err(error) = goodput.save() {
        output::warn(&format!("simulated goodput is not remembered: {error}"));
    }
    Ok(day)
}

fn progress(day: &DayScenario) -> ProgressBar {
    let progress = ProgressBar::new((day.duration.as_secs_f64() / 60.0) as u64);
    let template = "{bar:40} {pos} of {len} simulated minutes, {elapsed}, {eta} to go";
    if let Ok(style) = ProgressStyle::with_template(template) {
        progress.set_style(style);
    }
    progress.enable_steady_tick(Duration::from_millis(200));
    progress
}

fn text(report: &DayReport) -> String {
    let mut text = format!(
        "{}, seed {}: {:.1} hours, {} changes of layout by {}; {} requests simulated in {:.1} s\n\
         {:.1} GPU-hours, {} to {} GPUs; one layout for the peak takes {} GPUs and {:.1} GPU-hours: {:.1} % saved\n\
         in SLO {:.3} %; {} of {} service-minutes below 99 %, {} of them outside allowed windows; {} requests lost\n{}",
        report.day,
        report.seed,
        report.duration_s / 3600.0,
        report.changes.len(),
        report.driver,
        report.requests,
        report.wall_s,
        report.gpu_hours,
        report.gpus_least,
        report.gpus_most,
        report.fixed_gpus,
        report.fixed_gpu_hours,
        100.0 * report.saved,
        100.0 * report.in_slo,
        report.missed,
        report.service_minutes,
        report.missed_unexcused,
        report.lost,
        output::notes(&report.notes),
    );
    for violation in &report.violations {
        let _ = writeln!(text, "Promise broken (a mistake in Downbeat): {violation}");
    }
    let services = report.services.iter().map(|service| {
        vec![
            service.name.clone(),
            service.requests.to_string(),
            format!("{:.3}", 100.0 * service.in_slo),
            format!("{:.2}", 100.0 * service.in_slo_worst_minute),
            format!("{}-{}", service.instances_least, service.instances_most),
        ]
    });
    text += "\n";
    text += &output::table(&["service", "requests", "in SLO %", "worst minute %", "instances"], services);
    text += "\n\n";
    let rows = report.changes.iter().take(CHANGES_SHOWN).map(|change| {
        let took =
            change.ended_s.map_or_else(|| "-".to_owned(), |ended| format!("{:.0}", ended - change.at_s));
        vec![
            clock(change.at_s),
            change.cause.clone(),
            change.gpus.to_string(),
            steps(change),
            format!("{:.0}", change.expected_s),
            took,
        ]
    });
    text += &output::table(&["at", "cause", "GPUs", "steps", "expected s", "took s"], rows);
    text += "\n";
    if report.changes.len() > CHANGES_SHOWN {
        let _ =
            writeln!(text, "... and {} more (--format json has all)", report.changes.len() - CHANGES_SHOWN);
    }
    text += "\nworst minute: of 1,000 requests or more; took: with the time that GPUs take to come.\n";
    text
}

/// Steps begun, and planned where that is more.
fn steps(change: &ChangeReport) -> String {
    if change.steps.len() < change.planned_steps {
        format!("{} of {}", change.steps.len(), change.planned_steps)
    } else {
        change.planned_steps.to_string()
    }
}

/// Hours and minutes since the beginning.
fn clock(seconds: f64) -> String {
    let minutes = (seconds / 60.0) as u64;
    format!("{:02}:{:02}", minutes / 60, minutes % 60)
}
