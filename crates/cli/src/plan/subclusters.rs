//! `downbeat plan subclusters`

#![allow(clippy::disallowed_types, reason = "a time limit is a matter of real time")]

mod compare;
mod text;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use clap::{Args, Subcommand};
use downbeat_day::subclusters::{Planned, SubclusterReplay, page, plan, replay};
use downbeat_milp::Backend;
use downbeat_subclusters::{Epoch, Method, Plan, Previous, Problem, Run};
use indicatif::ProgressBar;

use super::{SearchArguments, Stop, spinner};
use crate::output::{self, Format, PageFile};

/// Divide models that do not all fit into one GPU's memory: which of them share which GPUs
///
/// Every GPU of a sub-cluster holds all of its models, and one scheduler serves them on all of its GPUs. Finds the
/// division that takes the fewest GPUs such that memory fits, every model meets its SLO, and no more models move than
/// may since the last epoch. How many GPUs a sub-cluster needs is estimated while searching, and then confirmed in the
/// simulator. Sub-clusters can be made of MIG slices as well: services too small to fill a slice share some.
#[derive(Args)]
#[command(after_long_help = AFTER_HELP, args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(super) struct Arguments {
    #[command(subcommand)]
    command: Option<SubclustersCommand>,
    /// The problem, a TOML file: models, their demand and memory, and the GPUs
    #[arg(value_name = "FILE", required = true)]
    problem: Option<PathBuf>,
    /// The sub-clusters that there are, a plan as JSON: names stay, and of equally good divisions the one that moves
    /// fewer models is taken
    #[arg(long, value_name = "PLAN")]
    from: Option<PathBuf>,
    /// How many models may be in another sub-cluster than in --from
    #[arg(long, value_name = "N", requires = "from")]
    max_moves: Option<usize>,
    /// How to search: auto (heuristic, and a proof for up to 60 models), heuristic, or exact
    #[arg(long, value_name = "NAME", default_value = "auto", value_parser = method)]
    solver: Method,
    /// Replay the plan in the simulator with other arrivals and say how many requests of each model are in time
    #[arg(long)]
    verify: bool,
    /// Believe the estimate of sizes, without simulation
    #[arg(long)]
    unconfirmed: bool,
    /// How to print the result
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
    /// Also write a page with pictures to this file
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

#[derive(Subcommand)]
enum SubclustersCommand {
    /// Compare with one cluster per model, a random division and one that balances rates
    Compare(compare::Arguments),
}

const AFTER_HELP: &str = "A problem file:
  gpu = \"H200-141GB\"             # its memory is known; or gpu_memory_mib = 143771
  gpus = 400                     # how many there are; as many as are needed where it is not said
  profiles = \"profiles/h200.csv\"
  slices = [\"1g\", \"2g\"]          # only where sub-clusters are to be made of MIG slices
  [[model]]
  name = \"thumbnails\"
  measured = \"resnet50\"          # in `profiles`; or profile = { alpha_ms = 1, beta_ms = 5, max_batch = 32 }
  rate_rps = 1200
  slo_ms = 50
  weights_mib = 2400             # unless they were measured
  activation_mib = 900

Examples:
  downbeat plan subclusters scenarios/plan/subclusters.toml
  downbeat plan subclusters scenarios/plan/subclusters.toml --format json > monday.json
  downbeat plan subclusters tuesday.toml --from monday.json --max-moves 5 --verify --html tuesday.html
  downbeat plan subclusters compare scenarios/plan/subclusters.toml

docs/subclusters.md says how it is done.";

fn method(name: &str) -> Result<Method, String> {
    Method::ALL.into_iter().find(|method| method.name() == name).ok_or_else(|| {
        let known = Method::ALL.map(Method::name).join(", ");
        format!("known are {known}")
    })
}

pub(super) fn run(arguments: &Arguments, search: &SearchArguments) -> anyhow::Result<()> {
    if let Some(SubclustersCommand::Compare(compare)) = &arguments.command {
        return compare::run(compare, search);
    }
    let Some(path) = &arguments.problem else { bail!("name the problem, a TOML file") };
    let page_file = arguments.html.as_deref().map(PageFile::check).transpose()?;
    let previous = arguments.from.as_deref().map(read_previous).transpose()?;
    let problem = Problem::load(path)?;
    let session = Session::begin(search)?;
    let epoch = Epoch { previous: previous.as_ref(), max_moves: arguments.max_moves };
    let planned = session.plan(&problem, epoch, arguments.solver, !arguments.unconfirmed)?;
    let replays = if arguments.verify { Some(session.replay(&problem, &planned.plan)?) } else { None };
    let result = match arguments.format {
        Format::Json => json(&planned.plan, replays.as_deref())?,
        Format::Text => text::text(&planned.plan, replays.as_deref()),
    };
    let drawn = || page(&planned.plan, replays.as_deref());
    output::deliver(&result, arguments.format, page_file.map(|file| (file, drawn)))
}

fn json(plan: &Plan, replays: Option<&[SubclusterReplay]>) -> anyhow::Result<String> {
    let mut value = serde_json::to_value(plan)?;
    if let (Some(replays), Some(object)) = (replays, value.as_object_mut()) {
        object.insert("verified".to_owned(), serde_json::to_value(replays)?);
    }
    Ok(serde_json::to_string_pretty(&value)?)
}

fn read_previous(path: &Path) -> anyhow::Result<Previous> {
    let text =
        fs::read_to_string(path).with_context(|| format!("--from {}: cannot be read", path.display()))?;
    Previous::parse(&text).with_context(|| format!("--from {}", path.display()))
}

/// What planning takes on this machine: a clock, a backend, a way to stop.
struct Session {
    backend: Backend,
    limit: Duration,
    seed: u64,
    stop: Stop,
}

impl Session {
    fn begin(arguments: &SearchArguments) -> anyhow::Result<Session> {
        let limit = arguments.limit()?;
        let backend = Backend::best(arguments.highs.as_deref())?;
        Ok(Session { backend, limit, seed: arguments.seed, stop: Stop::on_interrupt() })
    }

    fn plan(
        &self,
        problem: &Problem,
        epoch: Epoch<'_>,
        method: Method,
        confirmed: bool,
    ) -> anyhow::Result<Planned> {
        let begin = Instant::now();
        let spinner = spinner("dividing");
        let planned = self.search(problem, &spinner, |run| {
            let done = std::sync::atomic::AtomicUsize::new(0);
            let on_confirmed = || {
                let done = done.fetch_add(1, std::sync::atomic::Ordering::Relaxed) + 1;
                spinner.set_message(format!("confirming sizes in the simulator: {done} sub-clusters done"));
            };
            plan(problem, epoch, method, run, confirmed, &on_confirmed)
        });
        spinner.finish_and_clear();
        let mut planned = planned?;
        planned.plan.seconds = begin.elapsed().as_secs_f64();
        Ok(planned)
    }

    /// Lets `work` search within the time there is.
    fn search<T>(&self, problem: &Problem, spinner: &ProgressBar, work: impl FnOnce(&Run<'_>) -> T) -> T {
        let begin = Instant::now();
        let stop = || self.stop.is_asked() || begin.elapsed() >= self.limit;
        let per_gpu = u64::from(problem.units_per_gpu);
        let on_progress = |phase: &str, units: u64, bound: u64| {
            let (gpus, bound) = (units.div_ceil(per_gpu), bound.div_ceil(per_gpu));
            spinner.set_message(format!("{phase}: {gpus} GPUs, at least {bound}"));
        };
        work(&Run { stop: &stop, backend: &self.backend, seed: self.seed, on_progress: &on_progress })
    }

    fn replay(&self, problem: &Problem, plan: &Plan) -> anyhow::Result<Vec<SubclusterReplay>> {
        let spinner = spinner("replaying in the simulator");
        let replays = replay(problem, plan, self.seed);
        spinner.finish_and_clear();
        replays.map_err(anyhow::Error::msg).context("the plan cannot be replayed")
    }
}
