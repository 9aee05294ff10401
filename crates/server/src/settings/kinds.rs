//! The kinds of values that settings have, and how they are shown.

use std::net::IpAddr;
use std::path::PathBuf;

use clap::ValueEnum;
use downbeat_sched::Rule;
use serde::Deserialize;

use crate::device::DeviceSpec;

/// Which models are loaded when the server starts.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum ModelControl {
    /// All, and clients change nothing.
    None,
    /// Those that are named; clients load and unload others.
    Explicit,
}

/// A use for devices that the traffic does not need.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum SpareDevices {
    /// They are used to answer sooner.
    Answer,
    /// They stay idle, so that device time is in proportion to load: for sites that pay for device time or share devices
    /// with other work.
    Idle,
}

impl SpareDevices {
    /// The rule that the scheduler follows while nothing is lost.
    pub(crate) fn rule(self) -> Rule {
        match self {
            SpareDevices::Answer => Rule::ADAPTIVE,
            SpareDevices::Idle => Rule::ADAPTIVE.without_early_starts(),
        }
    }
}

/// How log lines look.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// For people.
    Text,
    /// For programs.
    Json,
}

impl LogFormat {
    /// As it is written on the command line.
    pub(crate) fn name(self) -> &'static str {
        match self {
            LogFormat::Text => "text",
            LogFormat::Json => "json",
        }
    }
}

/// What a level of the log must be.
pub const LOG_LEVELS: &str =
    "it must be off, error, warn, info, debug or trace, also by module: info,downbeat_server=debug";

/// Whether a text says what to log. The log itself takes an unknown word for a module, and logs nothing else.
pub fn is_log_level(text: &str) -> bool {
    const LEVELS: [&str; 6] = ["off", "error", "warn", "info", "debug", "trace"];
    text.split(',').all(|directive| {
        let level = directive.rsplit_once('=').map_or(directive, |(_, level)| level);
        LEVELS.contains(&level.trim().to_ascii_lowercase().as_str())
    })
}

/// Where profiles are kept unless a setting says otherwise: the user's cache.
pub(super) fn default_cache_dir() -> PathBuf {
    let home = || Some(PathBuf::from(std::env::var_os("HOME")?).join(".cache"));
    let base = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from).or_else(home);
    base.unwrap_or_else(std::env::temp_dir).join("downbeat")
}

/// One worker on the CPU.
pub(super) fn default_devices() -> Vec<DeviceSpec> {
    "cpu".parse().into_iter().collect()
}

/// How a value looks in TOML.
pub(super) trait Show {
    fn show(&self) -> String;
}

macro_rules! show_as_is {
    ($($kind:ty),+) => { $(impl Show for $kind { fn show(&self) -> String { self.to_string() } })+ };
}

show_as_is!(u16, u32, u64, usize);

impl Show for f64 {
    fn show(&self) -> String {
        format!("{self:?}")
    }
}

fn quoted(text: &str) -> String {
    toml::Value::from(text).to_string()
}

impl Show for String {
    fn show(&self) -> String {
        quoted(self)
    }
}

impl Show for PathBuf {
    fn show(&self) -> String {
        quoted(&self.to_string_lossy())
    }
}

impl Show for IpAddr {
    fn show(&self) -> String {
        quoted(&self.to_string())
    }
}

impl Show for DeviceSpec {
    fn show(&self) -> String {
        quoted(&self.to_string())
    }
}

impl Show for ModelControl {
    fn show(&self) -> String {
        quoted(match self {
            ModelControl::None => "none",
            ModelControl::Explicit => "explicit",
        })
    }
}

impl Show for SpareDevices {
    fn show(&self) -> String {
        quoted(match self {
            SpareDevices::Answer => "answer",
            SpareDevices::Idle => "idle",
        })
    }
}

impl Show for LogFormat {
    fn show(&self) -> String {
        quoted(self.name())
    }
}

impl<T: Show> Show for Vec<T> {
    fn show(&self) -> String {
        format!("[{}]", self.iter().map(Show::show).collect::<Vec<_>>().join(", "))
    }
}

#[cfg(test)]
mod tests;
