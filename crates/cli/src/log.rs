//! Log lines: to standard error, for people or for programs.

use std::io::IsTerminal;

use anyhow::Context;
use downbeat_server::settings::{LOG_LEVELS, LogFormat, is_log_level};
use tracing_subscriber::EnvFilter;

pub(crate) fn start(format: LogFormat, level: &str) -> anyhow::Result<()> {
    if !is_log_level(level) {
        anyhow::bail!("the log level is {level:?}; {LOG_LEVELS}");
    }
    let filter =
        EnvFilter::try_new(level).with_context(|| format!("the log level {level:?} is not understood"))?;
    let lines =
        tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).with_target(false);
    // Whoever reads the log may go away: that is no reason to panic.
    let lines = lines.log_internal_errors(false).with_ansi(std::io::stderr().is_terminal());
    match format {
        LogFormat::Text => lines.init(),
        LogFormat::Json => lines.json().flatten_event(true).init(),
    }
    Ok(())
}
