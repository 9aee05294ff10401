//! `downbeat serve`

use std::path::{Path, PathBuf};

use clap::{ArgMatches, Args, Command};
use downbeat_server::settings::{DEFAULT_FILE, Layer, Settings, Shown};

use crate::{log, output};

/// Serve the models of a repository to clients of Triton and of the Open Inference Protocol
///
/// Speaks HTTP and gRPC as Triton does, and schedules by deadlines: each request is due within its model's SLO, its own
/// timeout or its gRPC deadline, whichever is shortest. A request that can no longer make it is
/// answered then, not when a device frees up.
///
/// Every setting can be given as a flag, as an environment variable (DOWNBEAT_HTTP_PORT for --http-port) or in
/// downbeat.toml (http_port); flags go before variables, variables before the file.
#[derive(Args)]
#[command(after_long_help = concat!(
    "Examples:\n",
    "  downbeat serve --model-repository models\n",
    "  downbeat serve --model-repository models --device cpu:2 --default-slo-ms 50\n",
    "  downbeat serve --model-repository models --device emulated:8@h200/7g --profile profiles/h200.csv\n",
    "  downbeat serve --config downbeat.toml --print-config\n",
    "\n",
    "Signals: SIGTERM or Ctrl-C turns the server unready, lets it serve on for --drain-s seconds, then finishes what runs\n",
    "and exits 0. A second signal stops at once."
))]
pub(crate) struct Arguments {
    /// The configuration file; downbeat.toml is read if it is there
    #[arg(long, value_name = "FILE", env = "DOWNBEAT_CONFIG", hide_env = true)]
    config: Option<PathBuf>,
    /// Show all settings and where each comes from, and do not serve
    #[arg(long)]
    print_config: bool,
    #[command(flatten)]
    settings: Layer,
}

/// Adds to the help of every setting what it is when nobody sets it.
pub(crate) fn show_defaults(command: Command) -> Command {
    let defaults = Settings::merge(Layer::default(), |_| None, None).shown;
    // What is empty is not there, and the cache is in another place for everybody.
    let told =
        defaults.iter().filter(|shown| !["\"\"", "[]"].contains(&&*shown.value) && shown.key != "cache_dir");
    command.mut_subcommand("serve", |serve| {
        told.fold(serve, |serve, Shown { key, value, .. }| {
            serve.mut_arg(key, |argument| {
                let help = argument.get_help().map(ToString::to_string).unwrap_or_default();
                let value = value.trim_matches(|c| "[]\"".contains(c));
                argument.help(format!("{help} [default: {value}]"))
            })
        })
    })
}

pub(crate) fn run(arguments: Arguments, matches: &ArgMatches) -> anyhow::Result<()> {
    let path = match &arguments.config {
        Some(path) => Some(path.as_path()),
        None => Some(Path::new(DEFAULT_FILE)).filter(|path| path.exists()),
    };
    let file = path.map(|path| Layer::read(path).map(|layer| (layer, path))).transpose()?;
    let settings = Settings::merge(arguments.settings, |key| matches.value_source(key), file);
    if arguments.print_config {
        print(&settings)?;
        // Shown all the same: it says where a value comes from that is refused.
        return Ok(settings.check_values()?);
    }
    settings.check()?;
    log::start(settings.log_format, &settings.log_level)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let result = runtime.block_on(downbeat_server::server::serve(settings));
    // Whoever has not got their answer by now does not read it.
    runtime.shutdown_background();
    Ok(result?)
}

/// The settings as a `downbeat.toml` that gives the same, each with its origin.
fn print(settings: &Settings) -> anyhow::Result<()> {
    let line = |key: &str, value: &str| format!("{key} = {value}");
    let hidden = |key: &str, value: &str| {
        if key == "worker_token" && value != "\"\"" { "\"...\"".to_owned() } else { value.to_owned() }
    };
    let lines: Vec<(String, String)> = settings
        .shown
        .iter()
        .map(|shown| (line(shown.key, &hidden(shown.key, &shown.value)), shown.origin.to_string()))
        .collect();
    let width = lines.iter().map(|(line, _)| line.len()).filter(|&width| width < 60).max().unwrap_or(0);
    let text: String = lines.iter().map(|(line, origin)| format!("{line:width$}  # {origin}\n")).collect();
    output::print(&text)
}
