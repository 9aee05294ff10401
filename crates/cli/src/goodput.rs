//! `downbeat goodput`

use std::path::PathBuf;

use clap::Args;
use downbeat_sim::{GoodputReport, GoodputSearch, PolicySpec, Scenario, goodput_page};
use indicatif::{ProgressBar, ProgressStyle};

use crate::output::{self, Format, PageFile};

/// Search the largest rate at which every model meets its SLO, for several policies
///
/// Goodput is the highest total rate, at fixed popularity, below which every tested rate keeps at least 99 % of each
/// model's requests inside the SLO. Every policy sees the same arrivals; the spread over the seeds is printed.
#[derive(Args)]
#[command(after_long_help = after_help())]
pub(crate) struct Arguments {
    /// The scenario, a TOML file
    #[arg(value_name = "FILE")]
    scenario: PathBuf,
    /// The policies, with their settings: NAME[:KEY=VALUE...], separated by commas
    #[arg(long, value_name = "POLICIES", value_delimiter = ',', default_value = "guarded,deferred,eager")]
    policies: Vec<PolicySpec>,
    /// How many seeds, from the scenario's own up
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    seeds: u32,
    /// How to print the result
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
    /// Also write a page with pictures to this file
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

fn after_help() -> String {
    format!(
        "Policies:\n{}\n\
         Examples:\n  \
         downbeat goodput scenarios/one-model-8gpu.toml\n  \
         downbeat goodput scenarios/h200-10-models-2gpu.toml --policies guarded,eager,clockwork,nexus\n  \
         downbeat goodput scenarios/eight-models-8gpu.toml --policies guarded:k=1,guarded:k=4 --html k.html\n  \
         downbeat goodput scenarios/tight-slo.toml --seeds 10 --format json | jq .policies",
        PolicySpec::catalogue()
    )
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let page = arguments.html.as_deref().map(PageFile::check).transpose()?;
    let scenario = Scenario::load(&arguments.scenario)?;
    let search = GoodputSearch { scenario: &scenario, policies: &arguments.policies, seeds: arguments.seeds };
    let progress = ProgressBar::new(search.steps());
    if let Ok(style) = ProgressStyle::with_template("{bar:40} {pos}/{len} searches, {elapsed} ({eta} left)") {
        progress.set_style(style);
    }
    progress.enable_steady_tick(std::time::Duration::from_millis(200));
    let report = search.run(&|| progress.inc(1))?;
    progress.finish_and_clear();
    if let Some(page) = &page {
        page.write(&goodput_page(&report))?;
    }
    match arguments.format {
        Format::Json => output::print(&serde_json::to_string_pretty(&report)?),
        Format::Text => {
            let mut text = text(&report, arguments.seeds);
            if let Some(page) = &page {
                text += &format!("\nPictures: {}\n", page.path().display());
            }
            output::print(&text)
        }
    }
}

fn text(report: &GoodputReport, seeds: u32) -> String {
    let mut text = format!(
        "{}: fluid bound {:.0} rps, {seeds} {}\n\n",
        report.scenario,
        report.fluid_bound_rps,
        if seeds == 1 { "seed" } else { "seeds" }
    );
    let mut policies: Vec<_> = report.policies.iter().collect();
    policies.sort_by(|a, b| b.1.goodput_rps.total_cmp(&a.1.goodput_rps));
    let rows = policies.into_iter().map(|(name, policy)| {
        let settings = if policy.settings == *name { String::new() } else { policy.settings.clone() };
        vec![
            name.clone(),
            format!("{:.0}", policy.goodput_rps),
            format!("{:.0}", policy.spread_rps),
            format!("{:.3}", policy.ratio_to_bound),
            settings,
        ]
    });
    text += &output::table(&["policy", "goodput rps", "spread", "of bound", "best settings"], rows);
    text + "\n"
}
