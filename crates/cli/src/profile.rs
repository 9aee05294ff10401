//! `downbeat profile`

use std::path::PathBuf;

use anyhow::Context;
use clap::Args;
use downbeat_server::DeviceSpec;
use downbeat_server::profiler::{ModelProfile, Profiler, Trouble};
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::json;

use crate::output::{self, Format};

/// Measure how long a device takes for a batch of b, for b = 1, 2, 4, ...
///
/// Runs each model of a repository on the device, with made-up inputs, until the median of every batch size is stable,
/// and writes the latencies as a CSV that `downbeat serve --profile` and the scenarios of `downbeat simulate` read.
#[derive(Args)]
#[command(after_long_help = concat!(
    "Examples:\n",
    "  downbeat profile --model-repository models --device cpu\n",
    "  downbeat profile --model-repository models --device cuda:0@h200/7g --model resnet50 --output h200.csv\n",
    "  downbeat profile --model-repository models --format json | jq '.models[].points'"
))]
pub(crate) struct Arguments {
    /// The model repository, a folder in Triton's layout
    #[arg(long, value_name = "DIR", env = "DOWNBEAT_MODEL_REPOSITORY", hide_env = true)]
    model_repository: PathBuf,
    /// The device: cpu, cuda:0 or tensorrt:0, with an optional @class under which the latencies are written
    #[arg(long, value_name = "DEVICE", default_value = "cpu")]
    device: DeviceSpec,
    /// A model to measure; all unless given. May be repeated
    #[arg(long, value_name = "MODEL")]
    model: Vec<String>,
    /// The size that dimensions get which the model leaves open
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=1 << 20))]
    open_size: u64,
    /// Where to write the latencies; default: DEVICE.csv, named for the device's class
    #[arg(long, short, value_name = "CSV")]
    output: Option<PathBuf>,
    /// The library of ONNX Runtime; by default it is looked for
    #[arg(long, value_name = "FILE", env = "DOWNBEAT_ONNXRUNTIME", hide_env = true)]
    onnxruntime: Option<PathBuf>,
    /// Threads that share the work of one operator; 0 for one per core
    #[arg(long, value_name = "N", default_value_t = 0)]
    intra_op_threads: u32,
    /// How to print the result
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let class = &arguments.device.class;
    let output = arguments.output.clone().unwrap_or_else(|| PathBuf::from(format!("{}.csv", class.device())));
    // Before anything is measured, which may take minutes.
    let folder = output.parent().filter(|folder| !folder.as_os_str().is_empty() && !folder.is_dir());
    if let Some(folder) = folder {
        anyhow::bail!("cannot write {}: there is no folder {}", output.display(), folder.display());
    }
    if arguments.device.count > 1 {
        output::warn("one device is measured: the others of its class are taken to be like it");
    }
    let profiler = Profiler::start(
        &arguments.model_repository,
        &arguments.device,
        arguments.onnxruntime.as_deref(),
        arguments.intra_op_threads,
        arguments.open_size,
    )?;
    let names = profiler.models(&arguments.model)?;
    let bar = ProgressBar::new(0)
        .with_style(ProgressStyle::with_template("{prefix} {bar:30} {pos}/{len} sizes  {msg}")?);
    let mut profiles = Vec::new();
    let mut troubles: Vec<Trouble> = Vec::new();
    for (index, name) in names.iter().enumerate() {
        bar.set_prefix(format!("{name} ({} of {})", index + 1, names.len()));
        let measured = profiler.measure(name, &mut |progress| {
            bar.set_length(progress.sizes as u64);
            bar.set_position(progress.done as u64);
            let current = &progress.current;
            bar.set_message(format!(
                "l({}) = {:.3} ms after {} runs",
                current.batch, current.median_ms, current.repeats
            ));
        });
        match measured {
            Ok(profile) => profiles.push(profile),
            Err(trouble) => troubles.push(trouble),
        }
    }
    bar.finish_and_clear();
    for trouble in &troubles {
        output::warn(&trouble.to_string());
    }
    if profiles.is_empty() {
        anyhow::bail!("no model was measured");
    }
    let unwritten = || format!("cannot write {}", output.display());
    profiler.write(&profiles, &output).with_context(unwritten)?;
    match arguments.format {
        Format::Json => output::print(&serde_json::to_string_pretty(&to_json(&profiles, &arguments.device))?),
        Format::Text => {
            output::print(&to_text(&profiles))?;
            output::print(&format!("\nWritten to {}. Use it: downbeat serve --profile {0}", output.display()))
        }
    }
}

fn to_text(profiles: &[ModelProfile]) -> String {
    let rows = profiles.iter().flat_map(|profile| {
        profile.sizes.iter().map(|size| {
            let rate = 1e3 * f64::from(size.batch) / size.median_ms;
            vec![
                profile.model.clone(),
                size.batch.to_string(),
                format!("{:.3}", size.median_ms),
                format!("{:.1} %", 100.0 * size.spread),
                size.repeats.to_string(),
                format!("{rate:.0}"),
            ]
        })
    });
    let table = output::table(&["model", "batch", "latency ms", "spread", "runs", "rows/s"], rows);
    let fits: String = profiles
        .iter()
        .filter_map(|profile| Some((profile, profile.fit()?)))
        .map(|(profile, fit)| {
            let (model, error) = (&profile.model, 100.0 * fit.max_relative_error);
            format!(
                "{model}: l(b) = {:.4} b + {:.4} ms, off by {error:.0} % at most\n",
                fit.alpha_ms, fit.beta_ms
            )
        })
        .collect();
    format!("{table}\n\n{fits}")
}

fn to_json(profiles: &[ModelProfile], device: &DeviceSpec) -> serde_json::Value {
    let model = |profile: &ModelProfile| {
        let point = |size: &downbeat_server::profiler::Measured| json!({ "batch": size.batch, "latency_ms": size.median_ms, "spread": size.spread, "runs": size.repeats });
        json!({ "name": profile.model, "points": profile.sizes.iter().map(point).collect::<Vec<_>>() })
    };
    json!({ "class": device.class.as_str(), "models": profiles.iter().map(model).collect::<Vec<_>>() })
}
