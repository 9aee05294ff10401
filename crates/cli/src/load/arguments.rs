//! The arguments of `downbeat load`.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context;
use clap::{Args, ValueEnum};
use downbeat_load::{ArrivalSpec, DataFile, ModelSpec, ShapeSpec, Shapes, Target, Tensors, millis};

use crate::output::Format;

/// Send load to a server of the Open Inference Protocol and tell what becomes of it
///
/// Requests are sent when they are due, however slow the server is (open loop), and latency counts from when a request
/// should have been sent; when the client itself cannot keep up, the report says so. Every request is counted once, by
/// what became of it. Any server of the protocol will do: Downbeat, Triton, KServe, MLServer.
#[derive(Args)]
#[command(after_long_help = concat!(
    "Examples:\n",
    "  downbeat load --url grpc://127.0.0.1:8001 --model resnet50 --rate 500 --slo-ms 50\n",
    "  downbeat load --url http://127.0.0.1:8000 --model a:weight=3:slo_ms=25 --model b:slo_ms=80 \\\n",
    "      --rate 800 --arrival gamma:0.2 --duration 60 --html load.html\n",
    "  downbeat load --url grpc://127.0.0.1:8001 --model bert --shape ids:1,128 --rate 100 --slo-ms 40\n",
    "  downbeat load --url grpc://127.0.0.1:8001 --model m --slo-ms 50 --rate 200 --find-goodput\n",
    "\n",
    "--find-goodput doubles the rate while it passes, or halves it while it fails, then halves the gap \
     between the highest rate that passed and the lowest that failed until it is --precision. A rate passes \
     when every model has 99 % of its requests in SLO; a request that is late, refused, failed or \
     unanswered is not. A rate that fails is tried --tries times, with other arrivals; a run that fails while the \
     machine stood still (the client itself was late once, by a quarter of the tightest SLO) does not count and is made again.\n",
    "\n",
    "Ctrl-C stops sending and reports what was measured so far; a second one does not wait for answers.",
))]
pub(crate) struct Arguments {
    /// The server: grpc://HOST:PORT or http://HOST:PORT[/PREFIX]
    #[arg(long, value_name = "URL")]
    pub(super) url: Target,
    /// A model; may be repeated. Keys: weight, slo_ms, timeout_ms, priority, rows, version
    #[arg(long = "model", value_name = "NAME[:KEY=VALUE...]", required = true)]
    pub(super) models: Vec<ModelSpec>,
    /// Requests per second of all models together, which share them by weight; with --find-goodput, where to begin
    #[arg(long, value_name = "RPS", value_parser = rate, allow_negative_numbers = true)]
    pub(super) rate: Option<f64>,
    /// When requests come: poisson, uniform, gamma:SHAPE (below 1: bursts), onoff:ON_S,OFF_S,FACTOR, trace:FILE
    ///
    /// Each model has a stream of its own. A trace is a CSV file with the columns time_s and rate, and repeats;
    /// --rate is its mean, without which its rates are requests per second.
    #[arg(long, value_name = "PROCESS", default_value = "poisson")]
    pub(super) arrival: ArrivalSpec,
    /// Seconds that are measured; with --find-goodput, of each run
    #[arg(long, value_name = "S", default_value = "10", value_parser = seconds_above_0, allow_negative_numbers = true)]
    pub(super) duration: Duration,
    /// Measure longer where the rarest model would have fewer requests than this
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(super) min_requests: u64,
    /// Seconds of the same load before that, which do not count
    #[arg(long, value_name = "S", default_value = "1", value_parser = seconds, allow_negative_numbers = true)]
    pub(super) warmup: Duration,
    /// The objective: from when a request should have been sent to its answer
    #[arg(long, value_name = "MS", allow_negative_numbers = true)]
    slo_ms: Option<f64>,
    /// The parameter `timeout` of requests (sent in microseconds, as the protocol has it)
    #[arg(long, value_name = "MS", allow_negative_numbers = true)]
    timeout_ms: Option<f64>,
    /// The parameter `priority` of requests; 1 is the highest
    #[arg(long, value_name = "N")]
    priority: Option<u64>,
    /// Rows of each request, for models with a batch dimension
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    rows: u32,
    /// The shape of an input with open dimensions; may be repeated
    #[arg(long = "shape", value_name = "INPUT:SIZE,SIZE...")]
    shapes: Vec<ShapeSpec>,
    /// The size of open dimensions of other inputs, but for the first one, which is the rows
    #[arg(long, value_name = "N", default_value_t = 1)]
    dim: u64,
    /// Requests from a JSON file instead of random ones: one request as REST has it, or an array of them, sent in turn
    #[arg(long, value_name = "[MODEL=]FILE", value_parser = data_file)]
    pub(super) data: Vec<DataFile>,
    /// How tensors travel over HTTP; auto is binary where the server says that it takes that
    #[arg(long, value_enum, default_value_t = TensorForm::Auto)]
    pub(super) tensors: TensorForm,
    /// Connections: at most so many over HTTP (512), exactly so many over gRPC (4)
    #[arg(long, value_name = "N", value_parser = count)]
    pub(super) connections: Option<usize>,
    /// Threads that send and receive [default: half of the cores]
    #[arg(long, value_name = "N", value_parser = count)]
    pub(super) threads: Option<usize>,
    /// Requests that may be waiting for their answers; more are counted as unsent
    #[arg(long, value_name = "N", default_value_t = 65_536)]
    pub(super) max_waiting: u64,
    /// Seconds to wait for answers after the last request
    #[arg(long, value_name = "S", default_value = "30", value_parser = seconds, allow_negative_numbers = true)]
    pub(super) patience: Duration,
    /// What arrivals and content grow from
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(super) seed: u64,
    /// Search the highest rate at which every model has 99 % of its requests in SLO
    #[arg(long)]
    pub(super) find_goodput: bool,
    /// How near the search comes: the lowest rate that failed is at most this share above the highest that passed
    #[arg(long, value_name = "SHARE", default_value_t = 0.03, value_parser = precision, requires = "find_goodput")]
    pub(super) precision: f64,
    /// How often a rate is tried before it has failed
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=100), requires = "find_goodput")]
    pub(super) tries: u32,
    /// The highest rate that the search tries
    #[arg(long, value_name = "RPS", default_value = "1000000", value_parser = rate, requires = "find_goodput")]
    pub(super) highest_rate: f64,
    /// How to print the result
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(super) format: Format,
    /// Also write a page with pictures to this file
    #[arg(long, value_name = "FILE")]
    pub(super) html: Option<PathBuf>,
}

/// How tensors travel over HTTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum TensorForm {
    /// Binary where the server says that it takes that, else JSON.
    Auto,
    /// Binary.
    Binary,
    /// JSON.
    Json,
}

impl From<TensorForm> for Tensors {
    fn from(form: TensorForm) -> Tensors {
        match form {
            TensorForm::Auto => Tensors::Auto,
            TensorForm::Binary => Tensors::Binary,
            TensorForm::Json => Tensors::Json,
        }
    }
}

impl Arguments {
    /// What holds for models that say nothing else.
    pub(super) fn rest(&self) -> anyhow::Result<ModelSpec> {
        let time = |name: &str, ms: Option<f64>| {
            let wrong = || format!("--{name} must be above 0 and at most a day");
            ms.map(|ms| millis(ms).with_context(wrong)).transpose()
        };
        Ok(ModelSpec {
            slo: time("slo-ms", self.slo_ms)?,
            timeout: time("timeout-ms", self.timeout_ms)?,
            priority: self.priority,
            rows: Some(self.rows),
            ..ModelSpec::default()
        })
    }

    pub(super) fn shapes(&self) -> Shapes {
        Shapes { given: self.shapes.clone(), open_size: self.dim }
    }
}

fn rate(text: &str) -> Result<f64, String> {
    number(text)
        .filter(|rate| *rate > 0.0 && *rate <= 1e7)
        .ok_or_else(|| "a number above 0, at most 10 million".into())
}

fn precision(text: &str) -> Result<f64, String> {
    number(text).filter(|share| (0.001..=1.0).contains(share)).ok_or_else(|| "a share from 0.001 to 1".into())
}

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds = number(text).filter(|s| (0.0..=1e6).contains(s));
    seconds.map(Duration::from_secs_f64).ok_or_else(|| "a number of seconds, 0 or more".into())
}

fn seconds_above_0(text: &str) -> Result<Duration, String> {
    seconds(text)
        .ok()
        .filter(|s| *s >= Duration::from_millis(1))
        .ok_or_else(|| "a number of seconds above 0".into())
}

fn number(text: &str) -> Option<f64> {
    text.parse().ok().filter(|number: &f64| number.is_finite())
}

fn count(text: &str) -> Result<usize, String> {
    text.parse().ok().filter(|n| (1..=65_536).contains(n)).ok_or_else(|| "a number from 1 to 65536".into())
}

/// A file may have an equals sign in its name, a model has none as a rule: the first one parts them.
fn data_file(text: &str) -> Result<DataFile, String> {
    match text.split_once('=') {
        Some((_, "")) | Some(("", _)) => Err("say FILE or MODEL=FILE".into()),
        Some((model, file)) => Ok(DataFile { model: Some(model.to_owned()), file: file.into() }),
        None => Ok(DataFile { model: None, file: text.into() }),
    }
}
