//! `downbeat autoscale`

#![allow(clippy::disallowed_types, reason = "says how long the replay took on this machine")]

use std::path::PathBuf;
use std::time::{Duration, Instant};

use clap::{Args, Subcommand};
use downbeat_sim::{Replay, ReplayReport, Scenario, replay_page};
use indicatif::{ProgressBar, ProgressStyle};

use crate::output::{self, Format, PageFile};

/// How many GPUs are needed, and what that saves
#[derive(Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Replay(ReplayArguments),
}

/// Run a scenario in virtual time while its GPUs come and go
///
/// Downbeat's autoscaler decides by the scheduler's own signals. On the same arrivals it is compared with fixed peak
/// capacity, a utilisation rule as for CPUs, a queue-length rule, and the clairvoyant minimum: the fewest GPUs that
/// keep each minute, asked for in time by one who knows the arrivals. The scenario says in its table autoscale how many
/// GPUs there may be and how long one takes to come.
#[derive(Args)]
#[command(after_long_help = concat!(
    "Examples:\n",
    "  downbeat autoscale replay scenarios/autoscale-day.toml --html day.html\n",
    "  downbeat autoscale replay scenarios/autoscale-day.toml --format json | jq '.runs[] | {name, gpu_hours}'\n",
    "\n",
    "In the scenario:\n",
    "  gpus = 10            # at the beginning\n",
    "  [autoscale]\n",
    "  min = 2              # default 1\n",
    "  max = 60\n",
    "  provision_s = 120    # from asking for a GPU to its taking work; default 120\n",
    "  forecast = true      # look ahead by trend and time of day; default false\n",
    "docs/autoscaling.md has all keys."
))]
struct ReplayArguments {
    /// The scenario, a TOML file
    #[arg(value_name = "FILE")]
    scenario: PathBuf,
    /// Seed of the arrivals, instead of the scenario's
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// How to print the result
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
    /// Also write a page with pictures to this file
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    match &arguments.command {
        Command::Replay(arguments) => replay(arguments),
    }
}

fn replay(arguments: &ReplayArguments) -> anyhow::Result<()> {
    let page = arguments.html.as_deref().map(PageFile::check).transpose()?;
    let scenario = Scenario::load(&arguments.scenario)?;
    let replay = Replay::new(&scenario, arguments.seed.unwrap_or(scenario.seed))?;
    let progress = progress(replay.steps());
    let begin = Instant::now();
    let mut report = replay.run(&|| progress.inc(1));
    report.wall_s = begin.elapsed().as_secs_f64();
    progress.finish_and_clear();
    let result = match arguments.format {
        Format::Json => serde_json::to_string_pretty(&report)?,
        Format::Text => text(&report),
    };
    output::deliver(&result, arguments.format, page.map(|page| (page, || replay_page(&report))))
}

fn progress(minutes: u64) -> ProgressBar {
    let progress = ProgressBar::new(minutes);
    if let Ok(style) = ProgressStyle::with_template("{bar:40} {percent} % of all runs, {elapsed}") {
        progress.set_style(style);
    }
    progress.enable_steady_tick(Duration::from_millis(200));
    progress
}

fn text(report: &ReplayReport) -> String {
    let mut text = format!(
        "{}, seed {}: {:.1} hours, a GPU takes {:.0} s to come; {} requests simulated in {:.1} s\n{}\n",
        report.scenario,
        report.seed,
        report.duration_s / 3600.0,
        report.provision_s,
        report.requests_simulated,
        report.wall_s,
        output::notes(&report.notes),
    );
    let rows = report.runs.iter().map(|run| {
        vec![
            run.name.clone(),
            format!("{:.1}", run.gpu_hours),
            format!("{}-{}", run.gpus_least, run.gpus_most),
            format!("{:.1}", 100.0 * run.saved),
            format!("{:.2}", run.saved_of_clairvoyant),
            format!("{:.3}", 100.0 * run.bad_rate),
            run.model_minutes.to_string(),
            run.missed.to_string(),
            run.missed_unexcused.to_string(),
            run.changes.to_string(),
        ]
    });
    let header = [
        "rule",
        "GPU-hours",
        "GPUs",
        "saved %",
        "of clairvoyant",
        "bad %",
        "model-minutes",
        "missed",
        "unexcused",
        "changes",
    ];
    text += &output::table(&header, rows);
    text += &format!(
        "\n\nmissed: model-minutes of 1,000 requests or more with over 1 % bad; unexcused: outside {:.0} s after a surge or \
         failure.\n",
        report.provision_s + 30.0
    );
    for run in &report.runs {
        text += &format!("{}: {}\n", run.name, run.about);
    }
    text
}
