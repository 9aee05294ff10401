//! Policies by name: `guarded:k=2:drop=window`.

mod core;
#[cfg(test)]
mod tests;

use std::fmt;
use std::str::FromStr;

use downbeat_sched::Rule;

use self::core::CoreSettings;
use crate::domains;
use crate::policy::{Cluster, Policy};
use crate::report::RunReport;
use crate::rivals::setting::Setting;
use crate::rivals::{
    Clockwork, ClockworkSettings, Delayed, DelayedSettings, Nexus, NexusSettings, Shepherd, ShepherdSettings,
};
use crate::scenario::Scenario;
use crate::simulation::Until;

/// A policy with its settings, as people write it: a name, then `:key=value` for each setting that is not the default.
#[derive(Clone, Debug, PartialEq)]
pub struct PolicySpec {
    text: String,
    kind: Kind,
}

#[derive(Clone, Debug, PartialEq)]
enum Kind {
    Core(CoreSettings),
    Delayed(DelayedSettings),
    Clockwork(ClockworkSettings),
    Nexus(NexusSettings),
    Shepherd(ShepherdSettings),
}

/// A policy that can be asked for.
struct Entry {
    name: &'static str,
    about: &'static str,
    default: fn() -> Kind,
    /// The settings to try where none is given.
    grid: fn() -> Vec<Kind>,
}

/// All of them: names, help and defaults come from here alone.
const ENTRIES: [Entry; 9] = [
    Entry {
        name: "adaptive",
        about: "Downbeat's own: deferral while the spare GPUs can make up for it",
        default: || Kind::Core(CoreSettings::Portfolio),
        grid: Vec::new,
    },
    Entry {
        name: "guarded",
        about: "deferral whose windows open earlier by k times the work waiting per GPU",
        default: || Kind::Core(CoreSettings::Fixed(Rule::guarded(2.0))),
        grid: Vec::new,
    },
    Entry {
        name: "deferred",
        about: "Symphony's rule: a batch waits while one more request could join for free",
        default: || Kind::Core(CoreSettings::Fixed(Rule::DEFERRED)),
        grid: Vec::new,
    },
    Entry {
        name: "eager",
        about: "whenever a GPU is idle it starts the most urgent batch",
        default: || Kind::Core(CoreSettings::Fixed(Rule::EAGER)),
        grid: Vec::new,
    },
    Entry {
        name: "delayed",
        about: "Triton's dynamic batcher",
        default: || Kind::Delayed(DelayedSettings::default()),
        grid: || DelayedSettings::grid().into_iter().map(Kind::Delayed).collect(),
    },
    Entry {
        name: "clockwork",
        about: "Clockwork without its caps on batch size and execution time",
        default: || Kind::Clockwork(ClockworkSettings::default()),
        grid: || ClockworkSettings::grid().into_iter().map(Kind::Clockwork).collect(),
    },
    Entry {
        name: "clockwork-published",
        about: "Clockwork with the published caps on batch size and execution time",
        default: || Kind::Clockwork(ClockworkSettings::published()),
        grid: Vec::new,
    },
    Entry {
        name: "nexus",
        about: "Nexus: a plan by squishy bin packing, each GPU cycling through its models",
        default: || Kind::Nexus(NexusSettings::default()),
        grid: || NexusSettings::grid().into_iter().map(Kind::Nexus).collect(),
    },
    Entry {
        name: "shepherd",
        about: "Shepherd's flex: the largest feasible batch, preempting much smaller ones",
        default: || Kind::Shepherd(ShepherdSettings::default()),
        grid: Vec::new,
    },
];

/// Why a policy cannot be had.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PolicyError {
    /// No policy has this name.
    #[error("there is no policy {name:?}{}; known are {}", suggestion(name), names())]
    Unknown {
        /// The name that was given.
        name: String,
    },
    /// A setting is not what it must be.
    #[error("policy {policy:?}: {reason}")]
    Setting {
        /// The policy's name.
        policy: &'static str,
        /// What is wrong.
        reason: String,
    },
    /// The policy cannot run this scenario.
    #[error("{policy} cannot run {scenario}: {reason}")]
    Unsuitable {
        /// The policy.
        policy: String,
        /// The scenario.
        scenario: String,
        /// Why not.
        reason: String,
    },
}

fn names() -> String {
    ENTRIES.map(|entry| entry.name).join(", ")
}

fn suggestion(name: &str) -> String {
    let distance = |entry: &Entry| strsim::damerau_levenshtein(entry.name, name);
    let nearest = ENTRIES.iter().min_by_key(|entry| distance(entry)).filter(|entry| distance(entry) <= 3);
    nearest.map_or_else(String::new, |entry| format!(" (did you mean {:?}?)", entry.name))
}

impl PolicySpec {
    /// Every policy with its settings, their defaults and what they may be, for help texts.
    pub fn catalogue() -> String {
        ENTRIES.iter().map(Entry::help).collect()
    }

    /// Its name, without settings.
    pub fn name(&self) -> &str {
        self.text.split_once(':').map_or(&self.text, |(name, _)| name)
    }

    /// The settings to try where the policy leaves them open, to be told which are best; else the policy alone.
    pub fn variants(&self) -> Vec<PolicySpec> {
        let open = ENTRIES.iter().find(|entry| entry.name == self.text);
        let variants: Vec<PolicySpec> = open
            .map_or_else(Vec::new, |entry| (entry.grid)())
            .into_iter()
            .map(|kind| PolicySpec { text: kind.spelled_out(&self.text), kind })
            .collect();
        if variants.is_empty() { vec![self.clone()] } else { variants }
    }

    /// Runs the policy on a scenario; where that has sub-clusters, one of it on each.
    pub fn run(&self, scenario: &Scenario, seed: u64, until: Until) -> Result<RunReport, PolicyError> {
        let name = || self.text.clone();
        match &self.kind {
            Kind::Core(settings) => Ok(settings.run(name(), scenario, seed, until)),
            Kind::Delayed(settings) => {
                self.run_rival(scenario, seed, until, |cluster| Ok(Delayed::new(cluster, settings)))
            }
            Kind::Clockwork(settings) => {
                self.run_rival(scenario, seed, until, |cluster| Ok(Clockwork::new(cluster, settings)))
            }
            Kind::Shepherd(settings) => {
                self.run_rival(scenario, seed, until, |cluster| Ok(Shepherd::new(cluster, settings)))
            }
            Kind::Nexus(settings) => self.run_rival(scenario, seed, until, |cluster| {
                Nexus::new(cluster, settings).map_err(|error| PolicyError::Unsuitable {
                    policy: name(),
                    scenario: scenario.name.clone(),
                    reason: error.to_string(),
                })
            }),
        }
    }

    fn run_rival<P: Policy>(
        &self,
        scenario: &Scenario,
        seed: u64,
        until: Until,
        build: impl Fn(&Cluster) -> Result<P, PolicyError>,
    ) -> Result<RunReport, PolicyError> {
        domains::run(scenario, seed, self.text.clone(), until, build)
    }
}

impl Entry {
    fn help(&self) -> String {
        const INDENT: &str = "                       ";
        let kind = (self.default)();
        let mut lines = vec![format!("  {:<20} {}", self.name, self.about)];
        for Setting { key, values } in kind.table() {
            lines.push(format!("{INDENT}{key:<9} {values} (default {})", kind.get(key)));
        }
        if kind.table().is_empty() {
            lines.push(format!("{INDENT}no settings"));
        }
        if !(self.grid)().is_empty() {
            lines.push(format!("{INDENT}goodput tries several settings unless some are given"));
        }
        lines.join("\n") + "\n"
    }
}

impl Kind {
    /// The policy's name with all settings that are worth showing.
    fn spelled_out(&self, name: &str) -> String {
        let settings = self.to_string();
        if settings.is_empty() { name.to_owned() } else { format!("{name}:{settings}") }
    }

    fn table(&self) -> &'static [Setting] {
        match self {
            Kind::Core(settings) => settings.table(),
            Kind::Delayed(_) => &DelayedSettings::TABLE,
            Kind::Clockwork(_) => &ClockworkSettings::TABLE,
            Kind::Nexus(_) => &NexusSettings::TABLE,
            Kind::Shepherd(_) => &ShepherdSettings::TABLE,
        }
    }

    fn get(&self, key: &str) -> String {
        match self {
            Kind::Core(settings) => settings.get(key),
            Kind::Delayed(settings) => settings.get(key),
            Kind::Clockwork(settings) => settings.get(key),
            Kind::Nexus(settings) => settings.get(key),
            Kind::Shepherd(settings) => settings.get(key),
        }
    }

    fn set(&mut self, key: &str, value: &str) -> Result<(), String> {
        match self {
            Kind::Core(settings) => settings.set(key, value),
            Kind::Delayed(settings) => settings.set(key, value),
            Kind::Clockwork(settings) => settings.set(key, value),
            Kind::Nexus(settings) => settings.set(key, value),
            Kind::Shepherd(settings) => settings.set(key, value),
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Kind::Core(settings) => settings.fmt(f),
            Kind::Delayed(settings) => settings.fmt(f),
            Kind::Clockwork(settings) => settings.fmt(f),
            Kind::Nexus(settings) => settings.fmt(f),
            Kind::Shepherd(settings) => settings.fmt(f),
        }
    }
}

impl fmt::Display for PolicySpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl FromStr for PolicySpec {
    type Err = PolicyError;

    fn from_str(text: &str) -> Result<PolicySpec, PolicyError> {
        let mut parts = text.split(':');
        let name = parts.next().unwrap_or_default();
        let entry = ENTRIES
            .iter()
            .find(|entry| entry.name == name)
            .ok_or_else(|| PolicyError::Unknown { name: name.to_owned() })?;
        let fail = |reason| PolicyError::Setting { policy: entry.name, reason };
        let mut kind = (entry.default)();
        for part in parts {
            let (key, value) = part
                .split_once('=')
                .ok_or_else(|| fail(format!("'{part}' is not a setting; write KEY=VALUE")))?;
            kind.set(key, value).map_err(fail)?;
        }
        Ok(PolicySpec { text: text.to_owned(), kind })
    }
}
