//! `downbeat transition`

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use clap::{Args, ValueEnum};
use downbeat_mig::Catalogue;
use downbeat_transition::{
    Comparison, Driver, Layout, Options, StepTimes, Transition, page, plan, state_after,
};

use crate::output::{self, Format, PageFile};

/// Order the steps from one plan to another, without a service ever losing throughput
///
/// Each step (create, delete, migrate, repartition) says which steps it waits for; all others may run beside it.
/// Whatever runs side by side, each service has at least the lower of what the two plans give it, every GPU's slices
/// are legal, and nothing that runs is overlapped: a replayer that shares no code with the planner has checked every
/// interleaving. Plans are the JSON of `downbeat plan --format json`.
#[derive(Args)]
#[command(after_long_help = AFTER_HELP)]
pub(crate) struct Arguments {
    /// The plan there is, or a state as written by --state
    #[arg(long, value_name = "PLAN")]
    from: PathBuf,
    /// The plan there is to be
    #[arg(long, value_name = "PLAN")]
    to: PathBuf,
    /// What changes the GPUs' slices
    #[arg(long, value_enum, default_value_t = DriverName::Nvml)]
    driver: DriverName,
    /// The most GPUs to use on the way beyond those of the plans; as few as can be are used, and without this as many
    /// as it takes
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    spare: Option<usize>,
    /// Let GPUs of the second plan trade places with others of their type, where that leaves more as it is
    #[arg(long)]
    renumber: bool,
    /// Accept services that are in one plan only: they are started or retired
    #[arg(long)]
    services_may_differ: bool,
    /// How long steps are expected to take
    #[arg(long, value_enum, default_value_t = TimesName::Paper2021)]
    times: TimesName,
    /// A table of GPU models besides those that Downbeat knows, in the columns of its own
    #[arg(long, value_name = "FILE")]
    gpu_models: Option<PathBuf>,
    /// Steps of this very transition that have ended, such as 1-7,9: plan what remains
    #[arg(long, value_name = "STEPS", value_delimiter = ',', value_parser = range)]
    ended: Vec<Range>,
    /// Steps that were begun and failed
    #[arg(long, value_name = "STEPS", value_delimiter = ',', value_parser = range)]
    failed: Vec<Range>,
    /// With --ended or --failed, also write the layout that they leave to this file
    #[arg(long, value_name = "FILE")]
    state: Option<PathBuf>,
    /// How to print the result
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
    /// Also write a page with pictures to this file
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

const AFTER_HELP: &str = "\
Examples:
  downbeat plan day.toml --format json > day.json
  downbeat plan night.toml --from day.json --format json > night.json
  downbeat transition --from day.json --to night.json
  downbeat transition --from day.json --to night.json --driver mig-parted --spare 1 --html steps.html
  downbeat transition --from day.json --to night.json --ended 1-12,14 --failed 13    # plan what remains

Exit codes: 0 a transition was planned; 2 there is none under these conditions, or the input is bad.";

#[derive(Clone, Copy, ValueEnum)]
enum DriverName {
    /// Replaces one slice beside others that run on
    Nvml,
    /// Replaces the slices of a whole GPU, on which nothing may run
    MigParted,
}

#[derive(Clone, Copy, ValueEnum)]
enum TimesName {
    /// Measured on Kubernetes in 2021: create 47 s, delete 38, migrate 48 (30 within a node), repartition 50
    #[value(name = "2021")]
    Paper2021,
    /// Published in 2024: slice 0.04 s, plugin restart 4.3 s, pod 0.12 s
    #[value(name = "2024")]
    Paper2024,
}

type Range = (u32, u32);

fn range(text: &str) -> Result<Range, String> {
    let number =
        |text: &str| text.trim().parse::<u32>().map_err(|_| format!("{text:?} is not the number of a step"));
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let (first, last) = (number(first)?, number(last)?);
    if first > last { Err(format!("{first} comes after {last}")) } else { Ok((first, last)) }
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let page_file = arguments.html.as_deref().map(PageFile::check).transpose()?;
    let mut catalogue = Catalogue::builtin();
    if let Some(path) = &arguments.gpu_models {
        catalogue.add_file(path)?;
    }
    let from = read(&arguments.from, "--from")?;
    let to = read(&arguments.to, "--to")?;
    let options = Options {
        driver: match arguments.driver {
            DriverName::Nvml => Driver::Nvml,
            DriverName::MigParted => Driver::MigParted,
        },
        spare_max: arguments.spare,
        comparison: Comparison {
            renumber: arguments.renumber,
            services_may_differ: arguments.services_may_differ,
        },
        times: match arguments.times {
            TimesName::Paper2021 => StepTimes::PAPER_2021,
            TimesName::Paper2024 => StepTimes::PAPER_2024,
        },
    };
    let mut transition = plan(&from, &to, &catalogue, &options)?;
    let mut name = format!("{} to {}", arguments.from.display(), arguments.to.display());
    if !(arguments.ended.is_empty() && arguments.failed.is_empty()) {
        let state = state_after(&from, &transition, &ids(&arguments.ended), &ids(&arguments.failed))?;
        if let Some(path) = &arguments.state {
            let text = serde_json::to_string_pretty(&state)?;
            fs::write(path, text)
                .with_context(|| format!("--state {}: cannot be written", path.display()))?;
        }
        // The GPUs have traded places already.
        let to = downbeat_transition::renumbered(&to, &transition.renumbered);
        let comparison = Comparison { renumber: false, services_may_differ: true };
        transition = plan(&state, &to, &catalogue, &Options { comparison, ..options })?;
        name += ", the rest";
    } else if arguments.state.is_some() {
        bail!("--state writes what --ended and --failed leave; give one of them");
    }
    let result = match arguments.format {
        Format::Json => serde_json::to_string_pretty(&transition)?,
        Format::Text => text(&name, &transition),
    };
    output::deliver(&result, arguments.format, page_file.map(|file| (file, || page(&name, &transition))))
}

fn ids(ranges: &[Range]) -> Vec<u32> {
    ranges.iter().flat_map(|&(first, last)| first..=last.min(first.saturating_add(1_000_000))).collect()
}

fn read(path: &Path, flag: &str) -> anyhow::Result<Layout> {
    let text =
        fs::read_to_string(path).with_context(|| format!("{flag} {}: cannot be read", path.display()))?;
    Layout::parse(&text).with_context(|| {
        format!("{flag} {}: this is not a plan; write one with `downbeat plan --format json`", path.display())
    })
}

fn text(name: &str, transition: &Transition) -> String {
    let steps = &transition.steps;
    let mut text = String::new();
    if steps.is_empty() {
        return format!("{name}: nothing to do\n");
    }
    let counted = |count: usize, what: &str| format!("{count} {what}{}", if count == 1 { "" } else { "s" });
    let _ = writeln!(
        text,
        "{name}: {} (no transition has fewer than {}), {:.0} s expected, {} on the way{}, {} of making room",
        counted(steps.len(), "step"),
        transition.lower_bound,
        transition.expected_s,
        counted(transition.spares.len(), "spare GPU"),
        if !transition.spares.is_empty() && transition.spares_are_fewest {
            " (proved to be the fewest)"
        } else {
            ""
        },
        counted(transition.rounds, "round"),
    );
    text += "Checked: under every interleaving no service falls below the lower of what it has and what it is to have.\n";
    text += &output::notes(&transition.notes);
    for spare in &transition.spares {
        let _ = writeln!(text, "Spare: GPU {}, {}", spare.gpu, spare.gpu_type);
    }
    for (before, after) in &transition.renumbered {
        let _ = writeln!(text, "Renumbered: GPU {before} of the second plan is GPU {after}");
    }
    text += "\n";
    let listed = |ids: &[u32]| ids.iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
    let row = |step: &downbeat_transition::Step| {
        let mark = if transition.critical_path.contains(&step.id) { "*" } else { "" };
        vec![
            format!("{}{mark}", step.id),
            format!("{:.1}", step.start_s),
            format!("{:.1}", step.end_s),
            listed(&step.after),
            step.describe(),
        ]
    };
    let width = steps.iter().map(|step| step.describe().chars().count()).max().unwrap_or(0);
    let pad = |mut row: Vec<String>| {
        if let Some(last) = row.last_mut() {
            *last = format!("{last:<width$}");
        }
        row
    };
    text +=
        &output::table(&["step", "from s", "to s", "after", "what"], steps.iter().map(|step| pad(row(step))));
    let _ = writeln!(text, "\n\n* on the critical path: {}", listed(&transition.critical_path));
    text
}
