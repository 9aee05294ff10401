//! `downbeat plan`

#![allow(clippy::disallowed_types, reason = "a time limit is a matter of real time")]

mod cms;
mod compare;
mod stop;
mod subclusters;
mod text;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use clap::{Args, Subcommand, ValueEnum};
use downbeat_day::{Goodput, Replay, VerifiedPlan, plan_verified};
use downbeat_milp::Backend;
use downbeat_plan::{Plan, Problem, Progress, Run, Solver, emit, page, solvers};
use indicatif::{ProgressBar, ProgressStyle};

use crate::output::{self, Format, PageFile};
use stop::Stop;

/// Partition GPUs and place models, with a proof of how good the plan is
///
/// Finds the fewest GPUs (or the least cost, where types differ) that serve every demand within its SLO: how each GPU
/// is cut into MIG slices, and what runs in each. Every plan comes with a lower bound, and has been checked against the
/// placement rules, memory, latency and demand. Ctrl-C ends the search with the best plan so far.
#[derive(Args)]
#[command(after_long_help = after_help(), args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Option<PlanCommand>,
    /// The problem, a TOML file: services, GPUs and measured profiles
    #[arg(value_name = "FILE", required_unless_present = "cms")]
    problem: Option<PathBuf>,
    /// Instead, an instance of configurable machine scheduling, a JSON file: blocks, configurations, jobs with demand
    /// tables
    #[arg(long, value_name = "FILE", conflicts_with_all = ["problem", "from", "verify", "emit", "html"])]
    cms: Option<PathBuf>,
    #[command(flatten)]
    search: SearchArguments,
    /// How to plan; see below
    #[arg(long, value_name = "NAME", default_value = "auto", value_parser = solver)]
    solver: SolverName,
    /// The layout there is, a plan as JSON: of equally good plans one that leaves most of its GPUs as they are
    #[arg(long, value_name = "PLAN")]
    from: Option<PathBuf>,
    /// Replay the plan in the simulator and say how many requests of each service are in time
    #[arg(long)]
    verify: bool,
    /// How to print the result
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
    /// Print the plan for another tool instead
    #[arg(long, value_enum, value_name = "TOOL", conflicts_with = "format")]
    emit: Option<Emit>,
    /// Also write a page with pictures to this file
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// How many GPUs to draw in the terminal, at most; GPUs that are alike are drawn once
    #[arg(long, value_name = "N", default_value_t = 24)]
    pictures: usize,
}

/// How long is searched unless the user says.
const SEARCH_SECONDS: f64 = 60.0;

/// What all searches take.
#[derive(Args, Clone)]
struct SearchArguments {
    /// Seconds after which the best plan so far is taken [default: 60]
    ///
    /// Where it is given, it also ends the simulation of what is not yet remembered under rule `measured`, which
    /// otherwise takes the time that it needs. What was simulated is remembered: another run goes on from there.
    #[arg(long, value_name = "SECONDS", global = true, allow_negative_numbers = true)]
    time_limit: Option<f64>,
    /// Seed of what is random in the search, and of the replay
    #[arg(long, value_name = "N", default_value_t = 1, global = true, allow_negative_numbers = true)]
    seed: u64,
    /// The library of HiGHS, instead of HIGHS_DYLIB_PATH or the one that set-up fetched
    #[arg(long, value_name = "FILE", global = true)]
    highs: Option<PathBuf>,
    /// Where simulated goodput is remembered, for rule `measured`
    #[arg(long, value_name = "FILE", global = true)]
    goodput_cache: Option<PathBuf>,
}

impl SearchArguments {
    fn limit(&self) -> anyhow::Result<Duration> {
        let seconds = self.time_limit.unwrap_or(SEARCH_SECONDS);
        let limit = Duration::try_from_secs_f64(seconds).ok().filter(|limit| !limit.is_zero());
        limit.with_context(|| format!("--time-limit must be a number of seconds above 0 (is {seconds})"))
    }
}

#[derive(Subcommand)]
enum PlanCommand {
    /// Run all solvers and baselines on one problem: GPUs, bound, gap, seconds
    Compare(compare::Arguments),
    Subclusters(subclusters::Arguments),
}

/// Other tools' formats.
#[derive(Clone, Copy, ValueEnum)]
enum Emit {
    /// mig-parted's YAML: a layout per node
    MigParted,
    /// Kubernetes pods with nvidia.com/mig-* resources
    K8s,
    /// Kubernetes ResourceClaimTemplates and Deployments
    Dra,
}

fn solver(name: &str) -> Result<SolverName, String> {
    solvers::by_name(name).map(|solver| SolverName(solver.name())).ok_or_else(|| {
        let known: Vec<&str> = solvers::ALL.iter().map(|solver| solver.name()).collect();
        format!("known are {}", known.join(", "))
    })
}

/// The name of a solver that there is.
#[derive(Clone, Copy, Debug)]
struct SolverName(&'static str);

impl SolverName {
    fn solver(self) -> &'static dyn Solver {
        solvers::by_name(self.0).unwrap_or(&solvers::Auto)
    }
}

fn after_help() -> String {
    let width = solvers::ALL.iter().map(|solver| solver.name().len()).max().unwrap_or(0);
    let listed: String = solvers::ALL
        .iter()
        .map(|solver| format!("  {:width$}  {}\n", solver.name(), solver.about()))
        .collect();
    format!(
        "Solvers:\n{listed}\n\
         A problem file:\n  \
         gpu = \"H200-141GB\"             # or [[pool]] gpu = ..., count = ..., cost = ..., gpus_per_node = 8\n  \
         profiles = \"profiles/h200.csv\"\n  \
         rule = \"measured\"              # or paper, half, staggered: how throughput is counted\n  \
         [[service]]\n  \
         name = \"thumbnails\"            # optional; several services may use one model\n  \
         model = \"resnet50\"\n  \
         rate_rps = 12000\n  \
         slo_ms = 20\n\n\
         Examples:\n  \
         downbeat plan scenarios/plan/mixed-24.toml\n  \
         downbeat plan scenarios/plan/mixed-24.toml --format json > plan.json\n  \
         downbeat plan tomorrow.toml --from plan.json --verify\n  \
         downbeat plan scenarios/plan/mixed-24.toml --emit mig-parted\n  \
         downbeat plan compare scenarios/plan/mixed-24.toml\n  \
         downbeat plan subclusters scenarios/plan/subclusters.toml\n  \
         downbeat plan --cms scenarios/plan/blocks.json --solver cms-lp-round"
    )
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    match &arguments.command {
        Some(PlanCommand::Compare(compare)) => return compare::run(compare, &arguments.search),
        Some(PlanCommand::Subclusters(subclusters)) => {
            return subclusters::run(subclusters, &arguments.search);
        }
        None => {}
    }
    if let Some(cms) = &arguments.cms {
        return cms::run(cms, arguments);
    }
    let Some(path) = &arguments.problem else { bail!("name the problem, a TOML file") };
    let page_file = arguments.html.as_deref().map(PageFile::check).transpose()?;
    let from = arguments.from.as_deref().map(read_plan).transpose()?;
    let session = Session::begin(&arguments.search)?;
    let problem = session.load(path)?;
    let made = session.plan(&problem, arguments.solver.solver(), from.as_ref(), arguments.verify)?;
    if !session.backend.is_strong() && !made.plan.proved_optimal {
        output::warn("HiGHS was not found: the plan may be larger than need be. Run `make setup-solver`.");
    }
    let drawn = || page(&problem, &made.plan);
    if let Some(tool) = arguments.emit {
        return output::deliver(
            &emitted(tool, &made.plan),
            Format::Json,
            page_file.map(|file| (file, drawn)),
        );
    }
    let result = match arguments.format {
        Format::Json => json(&made)?,
        Format::Text => text::text(&problem, &made, from.as_ref(), arguments.pictures),
    };
    output::deliver(&result, arguments.format, page_file.map(|file| (file, drawn)))
}

/// A plan and, where it was asked for, its replay.
pub(crate) struct Made {
    pub(crate) plan: Plan,
    pub(crate) replay: Option<Replay>,
}

fn json(made: &Made) -> anyhow::Result<String> {
    let mut value = serde_json::to_value(&made.plan)?;
    if let (Some(replay), Some(object)) = (&made.replay, value.as_object_mut()) {
        object.insert("verified".to_owned(), serde_json::to_value(replay)?);
    }
    Ok(serde_json::to_string_pretty(&value)?)
}

fn emitted(tool: Emit, plan: &Plan) -> String {
    match tool {
        Emit::MigParted => emit::mig_parted(plan),
        Emit::K8s => emit::kubernetes(plan),
        Emit::Dra => emit::dra(plan),
    }
}

fn read_plan(path: &Path) -> anyhow::Result<Plan> {
    let text =
        fs::read_to_string(path).with_context(|| format!("--from {}: cannot be read", path.display()))?;
    let mut plan: Plan = serde_json::from_str(&text).with_context(|| {
        format!("--from {}: this is not a plan; write one with --format json", path.display())
    })?;
    downbeat_plan::number_devices(&mut plan.layout);
    Ok(plan)
}

/// What planning takes on this machine: a clock, a backend, remembered goodput.
pub(crate) struct Session {
    backend: Backend,
    goodput: Goodput,
    limit: Duration,
    seed: u64,
    stop: Stop,
}

impl Session {
    fn begin(arguments: &SearchArguments) -> anyhow::Result<Session> {
        let limit = arguments.limit()?;
        let goodput = match arguments.goodput_cache.clone().or_else(default_cache) {
            Some(path) => Goodput::remembering(&path)?,
            None => Goodput::forgetful(),
        };
        let backend = Backend::best(arguments.highs.as_deref())?;
        let stop = Stop::on_interrupt();
        // The default limit is for searches: a cold cache may take longer, once.
        let (asked, begin, limited) = (stop.clone(), Instant::now(), arguments.time_limit.is_some());
        let goodput = goodput.until(move || asked.is_asked() || limited && begin.elapsed() >= limit);
        Ok(Session { backend, goodput, limit, seed: arguments.seed, stop })
    }

    /// Reads a problem. Under the rule `measured` this is where the simulator works, and remembers.
    fn load(&self, path: &Path) -> anyhow::Result<Problem> {
        let spinner = spinner("reading, and simulating what is not remembered");
        let problem = Problem::load(path, &self.goodput);
        spinner.finish_and_clear();
        // Also where it was stopped: the next run goes on from there.
        if let Err(error) = self.goodput.save() {
            output::warn(&format!("simulated goodput is not remembered: {error}"));
        }
        Ok(problem?)
    }

    fn plan(
        &self,
        problem: &Problem,
        solver: &dyn Solver,
        from: Option<&Plan>,
        verify: bool,
    ) -> anyhow::Result<Made> {
        let (made, seconds) = self.run(problem, solver.name(), |run| -> anyhow::Result<Made> {
            let from = from.map(|from| &from.layout[..]);
            if !verify {
                return Ok(Made { plan: downbeat_plan::plan(problem, solver, run, from)?, replay: None });
            }
            let VerifiedPlan { plan, replay } =
                plan_verified(problem, solver, run, from, &|| self.stop.is_asked())?;
            Ok(Made { plan, replay: Some(replay) })
        });
        let mut made = made?;
        made.plan.seconds = seconds;
        Ok(made)
    }

    /// Lets `work` search, within the time there is, and says how long it took.
    fn run<T>(&self, problem: &Problem, what: &str, work: impl FnOnce(&Run<'_>) -> T) -> (T, f64) {
        let spinner = spinner(what);
        let begin = Instant::now();
        let stop = || self.stop.is_asked() || begin.elapsed() >= self.limit;
        let on_progress = |progress: &Progress| spinner.set_message(described(problem, progress));
        let run = Run { stop: &stop, on_progress: &on_progress, backend: &self.backend, seed: self.seed };
        let result = work(&run);
        let seconds = begin.elapsed().as_secs_f64();
        spinner.finish_and_clear();
        (result, seconds)
    }
}

fn described(problem: &Problem, progress: &Progress) -> String {
    let unit = if problem.minimises_cost() { "" } else { " GPUs" };
    let scale = if problem.minimises_cost() { 1.0 } else { problem.pools[0].cost };
    let cost = progress.cost / scale;
    let best = if cost.is_finite() { format!("{cost:.0}{unit}") } else { "no plan yet".to_owned() };
    format!("{}: {best}, at least {:.0}{unit}", progress.phase, progress.bound / scale)
}

pub(crate) fn spinner(message: &str) -> ProgressBar {
    let spinner = ProgressBar::new_spinner();
    if let Ok(style) = ProgressStyle::with_template("{spinner} {elapsed} {msg}") {
        spinner.set_style(style);
    }
    spinner.set_message(message.to_owned());
    spinner.enable_steady_tick(Duration::from_millis(200));
    spinner
}

/// Where goodput is remembered unless the user says: with other programs' caches.
pub(crate) fn default_cache() -> Option<PathBuf> {
    let variable = |name| std::env::var_os(name).filter(|path| !path.is_empty()).map(PathBuf::from);
    let folder = variable("XDG_CACHE_HOME").or_else(|| variable("HOME").map(|home| home.join(".cache")))?;
    Some(folder.join("downbeat").join("goodput.json"))
}
