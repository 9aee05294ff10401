//! `downbeat bench`

use std::str::FromStr;

use anyhow::bail;
use clap::{Args, Subcommand};
use downbeat_shards::{Load, LoadReport};
use downbeat_sim::Span;
use indicatif::{ProgressBar, ProgressStyle};

use crate::output::{self, Format};

/// Measure parts of Downbeat on this machine
#[derive(Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    Scheduler(SchedulerArguments),
}

/// Load the scheduler alone, on threads, with emulated devices
///
/// Every shard makes up the requests of its models by itself, with exponential gaps; devices take l(b) = alpha * b +
/// beta and nothing else. A run passes if no event of the load runs more than 2 ms late and less than 1 % of the
/// requests are dropped, late or unfinished. Each shard and each matchmaker is a thread: there should be a processor
/// for each.
#[derive(Args)]
#[command(after_long_help = concat!(
    "Examples:\n",
    "  downbeat bench scheduler --rate 200000\n",
    "  downbeat bench scheduler --models 13 --shards 13 --rate 20000000 --pin --spin\n",
    "  downbeat bench scheduler --models 10000 --gpus 50000 --shards 13 --zipf 0.9 --rate 10000000 --pin --spin\n",
    "  downbeat bench scheduler --models 10000 --gpus 5000 --zipf 0.9 --rate 500000 --compare\n",
    "  downbeat bench scheduler --rate 200000 --churn 1000\n",
    "  downbeat bench scheduler --models 4 --shards 4 --rate max --pin --spin --format json | jq .requests_per_s\n",
    "\n",
    "100 us pass from scheduler to device and 50 us for each request's data; 2 ms of the SLO are kept for the response."
))]
struct SchedulerArguments {
    /// Models, all alike
    #[arg(long, value_name = "M", default_value_t = 1)]
    models: u32,
    /// Emulated devices [default: a quarter more than the load needs]
    #[arg(long, value_name = "G")]
    gpus: Option<u32>,
    /// Threads with models
    #[arg(long, value_name = "S", default_value_t = 1)]
    shards: u16,
    /// Matchmakers, each with its part of models and devices
    #[arg(long, value_name = "D", default_value_t = 1)]
    domains: u16,
    /// Requests per second of all models together, or `max`: the highest that passes
    #[arg(long, value_name = "R|max", default_value = "200000")]
    rate: Rate,
    /// Exponent of the models' popularity: 0 for equally popular models, 1 for Zipf's law
    #[arg(long, value_name = "S", default_value_t = 0.0)]
    zipf: f64,
    /// From arrival to response
    #[arg(long, value_name = "MS", default_value_t = 100.0)]
    slo_ms: f64,
    /// Latency of a batch, per request
    #[arg(long, value_name = "MS", default_value_t = 1.082)]
    alpha_ms: f64,
    /// Latency of a batch, besides
    #[arg(long, value_name = "MS", default_value_t = 5.204)]
    beta_ms: f64,
    /// The largest batch
    #[arg(long, value_name = "N", default_value_t = 128)]
    max_batch: u32,
    /// How long to measure, in seconds
    #[arg(long, value_name = "S", default_value_t = 15.0)]
    duration: f64,
    /// How long to run before that, in seconds
    #[arg(long, value_name = "S", default_value_t = 1.0)]
    warmup: f64,
    /// Threads never sleep, but look for work all the time
    #[arg(long)]
    spin: bool,
    /// Bind each thread to a processor of its own
    #[arg(long)]
    pin: bool,
    /// So many times a second a device leaves or fails and comes back, or a model is removed and added
    #[arg(long, value_name = "N", default_value_t = 0.0)]
    churn: f64,
    /// Run the same requests through the single-threaded scheduler in virtual time, too
    #[arg(long)]
    compare: bool,
    /// Seed of the arrivals
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// How to print the result
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Rate {
    PerSecond(f64),
    Max,
}

impl FromStr for Rate {
    type Err = String;

    fn from_str(text: &str) -> Result<Rate, String> {
        if text == "max" {
            return Ok(Rate::Max);
        }
        match text.parse() {
            Ok(rate) if rate > 0.0 && rate <= 1e9 => Ok(Rate::PerSecond(rate)),
            _ => Err("a number above 0 and at most 1e9, or `max`".to_owned()),
        }
    }
}

/// While searching, a run is no longer than this.
const PROBE_S: f64 = 5.0;

/// The search begins with this rate for each shard, and ends when the highest rate is known to this part of it.
const FIRST_RPS: f64 = 100_000.0;
const PRECISION: f64 = 0.05;

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let What::Scheduler(arguments) = &arguments.what;
    let report = match arguments.rate {
        Rate::PerSecond(rate) => measure(arguments, rate, arguments.duration)?,
        Rate::Max => search(arguments)?,
    };
    let one_thread = arguments.compare.then(|| on_one_thread(&report.load)).transpose()?;
    match arguments.format {
        Format::Json => {
            let mut results = serde_json::to_value(&report)?;
            if let Some(one_thread) = one_thread {
                results["one_thread"] = serde_json::to_value(one_thread)?;
            }
            output::print(&serde_json::to_string_pretty(&results)?)
        }
        Format::Text => output::print(&text(&report, one_thread.as_ref())),
    }
}

fn on_one_thread(load: &Load) -> anyhow::Result<LoadReport> {
    let progress = spinner(format!("{} requests/s in virtual time", thousands(load.rate)));
    let report = load.run_on_one_thread();
    progress.finish_and_clear();
    Ok(report?)
}

fn measure(arguments: &SchedulerArguments, rate: f64, duration_s: f64) -> anyhow::Result<LoadReport> {
    for (name, value) in [("--slo-ms", arguments.slo_ms), ("--duration", duration_s)] {
        if !(value > 0.0 && value <= 1e6) {
            bail!("{name} must be above 0 and at most 1e6 (is {value})");
        }
    }
    if !(0.0..=1e6).contains(&arguments.warmup) {
        bail!("--warmup must be from 0 to 1e6 (is {})", arguments.warmup);
    }
    let mut load = Load {
        models: arguments.models,
        gpus: arguments.gpus.unwrap_or(1),
        shards: arguments.shards,
        domains: arguments.domains,
        rate,
        zipf: arguments.zipf,
        slo: Span::from_millis_f64(arguments.slo_ms),
        alpha_ms: arguments.alpha_ms,
        beta_ms: arguments.beta_ms,
        max_batch: arguments.max_batch,
        duration: Span::from_secs_f64(duration_s),
        warmup: Span::from_secs_f64(arguments.warmup),
        spin: arguments.spin,
        pin: arguments.pin,
        churn: arguments.churn,
        seed: arguments.seed,
    };
    if arguments.gpus.is_none() {
        load.gpus = (1.25 * load.needed_gpus()?) as u32 + 16 * u32::from(arguments.domains);
    }
    let progress = progress(&load);
    let report = load.run();
    progress.finish_and_clear();
    Ok(report?)
}

fn progress(load: &Load) -> ProgressBar {
    let seconds = (load.warmup + load.duration).as_secs_f64();
    spinner(format!("{} requests/s for {seconds:.0} s", thousands(load.rate)))
}

fn spinner(message: String) -> ProgressBar {
    let bar = ProgressBar::new_spinner();
    if let Ok(style) = ProgressStyle::with_template("{spinner} {msg}, {elapsed}") {
        bar.set_style(style);
    }
    bar.set_message(message);
    // Seldom: what is measured should have the machine to itself.
    bar.enable_steady_tick(std::time::Duration::from_secs(1));
    bar
}

/// Doubles the rate until a run fails, then halves the gap between the last that passed and the first that did not; the
/// result is measured for the full duration, less if that fails after all.
fn search(arguments: &SchedulerArguments) -> anyhow::Result<LoadReport> {
    let probe_s = arguments.duration.min(PROBE_S);
    let mut passed = 0.0;
    let mut rate = FIRST_RPS * f64::from(arguments.shards);
    let mut failed = f64::INFINITY;
    while failed > passed * (1.0 + PRECISION) {
        let report = measure(arguments, rate, probe_s)?;
        if report.pass {
            passed = rate;
        } else {
            failed = rate;
        }
        rate = match (passed > 0.0, failed.is_finite()) {
            (_, false) => 2.0 * passed,
            (true, true) => (passed + failed) / 2.0,
            (false, true) => failed / 2.0,
        };
        if passed == 0.0 && failed < FIRST_RPS / 64.0 {
            output::warn(
                "no rate passes: this machine delays threads by more than 2 ms even when they have little to do",
            );
            return Ok(report);
        }
    }
    loop {
        let report = measure(arguments, passed, arguments.duration)?;
        if report.pass || passed < FIRST_RPS / 64.0 {
            return Ok(report);
        }
        passed *= 1.0 - PRECISION;
    }
}

fn text(report: &LoadReport, one_thread: Option<&LoadReport>) -> String {
    let LoadReport { load, lag_us, .. } = report;
    let us = |us: f64| format!("{us:.1} us");
    let mut rows: Vec<Vec<String>> =
        decisions(report).into_iter().map(|(name, value)| vec![name.to_owned(), value]).collect();
    for (row, (_, value)) in rows.iter_mut().zip(one_thread.map(decisions).into_iter().flatten()) {
        row.push(value);
    }
    let measured = [
        ("lag p50", us(lag_us.p50)),
        ("lag p99", us(lag_us.p99)),
        ("lag p99.9", us(lag_us.p999)),
        ("lag p99.99", us(lag_us.p9999)),
        ("lag p99.999", us(lag_us.p99999)),
        ("lag max", us(lag_us.max)),
        ("CPU/request", format!("{:.3} us", report.cpu_us_per_request)),
    ];
    let without = one_thread.map(|_| String::new());
    rows.extend(
        measured.map(|(name, value)| [name.to_owned(), value].into_iter().chain(without.clone()).collect()),
    );
    let columns = ["", "measured", "on one thread"];
    format!(
        "{} models on {} devices, {} shards, {} domains, SLO {} ms\n{}\n\n{}\n",
        load.models,
        load.gpus,
        load.shards,
        load.domains,
        load.slo.as_millis_f64(),
        output::table(&columns[..if one_thread.is_some() { 3 } else { 2 }], rows),
        verdict(report)
    )
}

/// What does not depend on how late threads are.
fn decisions(report: &LoadReport) -> [(&'static str, String); 7] {
    let percent = |part: f64| format!("{:.3} %", 100.0 * part);
    [
        ("requests/s", thousands(report.requests_per_s)),
        ("grants/s", thousands(report.grants_per_s)),
        ("mean batch", format!("{:.1}", report.mean_batch)),
        ("in SLO", percent(report.in_slo)),
        ("dropped", percent(report.dropped)),
        ("late", percent(report.late)),
        ("unfinished", percent(report.unfinished)),
    ]
}

fn verdict(report: &LoadReport) -> String {
    if report.pass {
        return "pass: no event more than 2 ms late, less than 1 % of requests bad".to_owned();
    }
    let mut verdict = format!(
        "FAIL: {} events were more than 2 ms late, {:.2} % of requests were bad",
        report.late_events,
        100.0 * (1.0 - report.in_slo)
    );
    if let (Some(by_stalls), Some(stalled_ms)) = (report.late_events_by_stalls, report.stalled_ms) {
        verdict += &format!(
            "\n{by_stalls} of the events because threads did not have their processors (for {stalled_ms:.1} ms in all): \
             the machine's host or somebody else had them"
        );
    }
    verdict
}

/// A number with its thousands apart.
fn thousands(number: f64) -> String {
    indicatif::HumanCount(number.round() as u64).to_string()
}
