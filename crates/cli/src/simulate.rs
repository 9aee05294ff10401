//! `downbeat simulate`

#![allow(clippy::disallowed_types, reason = "says how long the run took on this machine")]

mod day;

use std::fs;
use std::path::PathBuf;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::bail;
use clap::Args;
use downbeat_day::DayScenario;
use downbeat_sim::{ModelReport, PolicySpec, RunReport, Scenario, Until, run_page};
use indicatif::{HumanCount, ProgressBar, ProgressStyle};

use crate::output::{self, Format, PageFile};

/// Models shown in the text output: the worst ones.
const MODELS_SHOWN: usize = 20;

/// Work that takes no longer shows no progress.
const SHORT: Duration = Duration::from_secs(2);

/// Run a cluster scenario in virtual time with one policy
///
/// Tells how many requests of each model finished inside their SLO, how large the batches were and how busy each GPU
/// was. The same scenario, policy and seed always give the same result.
///
/// A scenario with the table day is a day of a cluster that is cut into MIG slices: rates follow traces, and every
/// epoch the demand to come is forecast, layouts are planned and changed step by step, surges and failures are
/// answered, while every request is scheduled. The page shows load, GPUs, layouts, requests in SLO and steps.
#[derive(Args)]
#[command(after_long_help = concat!(
    "Examples:\n",
    "  downbeat simulate scenarios/one-model-8gpu.toml\n",
    "  downbeat simulate scenarios/mixed-24-models-8gpu.toml --policy deferred --rate 2000\n",
    "  downbeat simulate scenarios/overload-2x.toml --policy guarded:k=1:drop=window --html run.html\n",
    "  downbeat simulate scenarios/zipf-100-models-32gpu.toml --format json | jq .bad_rate_worst\n",
    "  downbeat simulate scenarios/day/office.toml --html day.html\n",
    "\n",
    "`downbeat goodput --help` lists the policies and their settings. docs/day.md has the keys of a day."
))]
pub(crate) struct Arguments {
    /// The scenario, a TOML file
    #[arg(value_name = "FILE")]
    scenario: PathBuf,
    /// The policy, with its settings: NAME[:KEY=VALUE...]
    #[arg(long, value_name = "POLICY", default_value = "adaptive")]
    policy: PolicySpec,
    /// Total requests per second, instead of the scenario's
    #[arg(long, value_name = "RPS", allow_negative_numbers = true)]
    rate: Option<f64>,
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
    let page = arguments.html.as_deref().map(PageFile::check).transpose()?;
    // What cannot be read is said below.
    let file = fs::read_to_string(&arguments.scenario).unwrap_or_default();
    if DayScenario::is_one(&file) {
        return day::run(arguments, &file, page);
    }
    let mut scenario = Scenario::load(&arguments.scenario)?;
    if let Some(rate) = arguments.rate {
        if !(rate > 0.0 && rate <= Scenario::MOST_RPS) {
            bail!("--rate must be a number above 0 and at most {} (is {rate:?})", Scenario::MOST_RPS);
        }
        scenario = scenario.with_rate(rate);
    }
    let seed = arguments.seed.unwrap_or(scenario.seed);
    let begin = Instant::now();
    let mut report = with_progress(&scenario, || arguments.policy.run(&scenario, seed, Until::End))?;
    report.wall_s = begin.elapsed().as_secs_f64();
    let result = match arguments.format {
        Format::Json => serde_json::to_string_pretty(&report)?,
        Format::Text => text(&scenario, &report),
    };
    let draw = || run_page(&scenario.name, std::slice::from_ref(&report));
    output::deliver(&result, arguments.format, page.map(|page| (page, draw)))
}

/// Does some work, and shows that it goes on if it takes long.
fn with_progress<T>(scenario: &Scenario, work: impl FnOnce() -> T) -> T {
    let requests = HumanCount((scenario.total_rps * scenario.duration.as_secs_f64()) as u64);
    let (done, is_done) = mpsc::channel::<()>();
    thread::scope(|scope| {
        scope.spawn(move || {
            if is_done.recv_timeout(SHORT) == Err(RecvTimeoutError::Timeout) {
                let spinner = ProgressBar::new_spinner().with_elapsed(SHORT);
                if let Ok(style) = ProgressStyle::with_template("{spinner} about {msg} requests, {elapsed}") {
                    spinner.set_style(style);
                }
                spinner.set_message(requests.to_string());
                spinner.enable_steady_tick(Duration::from_millis(200));
                // It ends by `done` being dropped.
                let _ = is_done.recv();
                spinner.finish_and_clear();
            }
        });
        let result = work();
        drop(done);
        result
    })
}

fn text(scenario: &Scenario, report: &RunReport) -> String {
    let RunReport { policy, seed, offered_rps, in_slo_rps, bad_rate_worst, gpus, .. } = report;
    let busy = gpus.busy_fraction.iter().sum::<f64>() / gpus.count.max(1) as f64;
    let mut text = format!(
        "{}, {policy}, seed {seed}\n\
         offered {offered_rps:.0} rps, in SLO {in_slo_rps:.0} rps, worst model {:.2} % bad\n\
         {} of {} GPUs carry 99 % of the work, busy {:.0} % of the time on average\n\
         {} batches; {} requests simulated in {:.2} s\n{}\n",
        scenario.name,
        100.0 * bad_rate_worst,
        gpus.used,
        gpus.count,
        100.0 * busy,
        report.batches,
        report.requests_simulated,
        report.wall_s,
        output::notes(&report.detail.notes),
    );
    let mut models: Vec<&ModelReport> = report.models.iter().collect();
    models.sort_by(|a, b| b.bad_rate.total_cmp(&a.bad_rate));
    let rows = models.iter().take(MODELS_SHOWN).map(|model| {
        vec![
            model.name.clone(),
            model.offered.to_string(),
            model.in_slo.to_string(),
            model.late.to_string(),
            model.expired.to_string(),
            format!("{:.2}", 100.0 * model.bad_rate),
            format!("{:.2}", model.p50_ms),
            format!("{:.2}", model.p99_ms),
            format!("{:.1}", model.mean_batch),
        ]
    });
    let header = ["model", "offered", "in SLO", "late", "expired", "bad %", "p50 ms", "p99 ms", "batch"];
    text += &output::table(&header, rows);
    text += "\np50 and p99 are of those that ran.\n";
    if models.len() > MODELS_SHOWN {
        text += &format!("... and {} more (--format json has all)\n", models.len() - MODELS_SHOWN);
    }
    text
}
