//! `downbeat goodput`

use std::fmt;
use std::path::PathBuf;

use clap::Args;
use downbeat_sim::{GoodputReport, GoodputSearch, PolicySpec, Scenario, goodput_page};
use indicatif::{HumanDuration, ProgressBar, ProgressState, ProgressStyle};

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
    #[arg(long, value_name = "POLICIES", value_delimiter = ',', default_value = "adaptive,deferred,eager")]
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
         downbeat goodput scenarios/h200-10-models-2gpu.toml --policies adaptive,eager,clockwork,nexus\n  \
         downbeat goodput scenarios/eight-models-8gpu.toml --policies guarded:k=1,guarded:k=4 --html k.html\n  \
         downbeat goodput scenarios/tight-slo.toml --seeds 10 --format json | jq .policies",
        PolicySpec::catalogue()
    )
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let page = arguments.html.as_deref().map(PageFile::check).transpose()?;
    let scenario = Scenario::load(&arguments.scenario)?;
    let mut policies: Vec<PolicySpec> = Vec::new();
    for policy in &arguments.policies {
        if !policies.contains(policy) {
            policies.push(policy.clone());
        }
    }
    let search = GoodputSearch {
        scenario: &scenario,
        policies: &policies,
        seeds: arguments.seeds,
        rarest_requests: GoodputSearch::RAREST_REQUESTS,
    };
    let progress = progress(search.steps());
    let report = search.run(&|| progress.inc(1))?;
    progress.finish_and_clear();
    let result = match arguments.format {
        Format::Json => serde_json::to_string_pretty(&report)?,
        Format::Text => text(&report, arguments.seeds),
    };
    output::deliver(&result, arguments.format, page.map(|page| (page, || goodput_page(&report))))
}

fn progress(steps: u64) -> ProgressBar {
    // Nothing is known of the rest before the first search is done.
    let left = |state: &ProgressState, text: &mut dyn fmt::Write| {
        if let (done @ 1.., Some(all)) = (state.pos(), state.len()) {
            let left = state.elapsed().mul_f64(all.saturating_sub(done) as f64 / done as f64);
            // Text that cannot be formatted is not shown; there is nobody to tell.
            let _ = write!(text, " (about {} left)", HumanDuration(left));
        }
    };
    let progress = ProgressBar::new(steps);
    if let Ok(style) = ProgressStyle::with_template("{bar:40} {pos}/{len} searches, {elapsed}{left}") {
        progress.set_style(style.with_key("left", left));
    }
    progress.enable_steady_tick(std::time::Duration::from_millis(200));
    progress
}

fn text(report: &GoodputReport, seeds: u32) -> String {
    let mut text = format!(
        "{}: fluid bound {:.0} rps, {seeds} {}\n",
        report.scenario,
        report.fluid_bound_rps,
        if seeds == 1 { "seed" } else { "seeds" }
    );
    text += &output::notes(&report.notes);
    text += "\n";
    let mut policies: Vec<_> = report.policies.iter().collect();
    policies.sort_by(|a, b| b.1.goodput_rps.total_cmp(&a.1.goodput_rps));
    let rows = policies.into_iter().map(|(name, policy)| {
        let settings = if policy.settings == *name { String::new() } else { policy.settings.clone() };
        vec![
            name.clone(),
            format!("{}{:.0}", if policy.capped { ">= " } else { "" }, policy.goodput_rps),
            format!("{:.0}", policy.spread_rps),
            format!("{:.3}", policy.ratio_to_bound),
            settings,
        ]
    });
    text += &output::table(&["policy", "goodput rps", "spread", "of bound", "best settings"], rows);
    text += "\n";
    if report.policies.values().any(|policy| policy.capped) {
        text += ">= stands where no rate failed up to the end of the search.\n";
    }
    text
}
