//! The scheduler's command line, and what was added to it.

use std::fmt;

use downbeat_sched::Span;

use super::super::setting::{self, Setting};

/// What rates the plan is made for, relative to those seen.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Headroom {
    /// The largest factor whose plan fits the cluster.
    Fit,
    /// This factor, or less where its plan does not fit the cluster.
    Factor(f64),
}

impl Headroom {
    const LEAST: f64 = 0.001;
    const MOST: f64 = 100.0;

    /// The largest factor to try.
    pub(super) fn most(self) -> f64 {
        match self {
            // An idle cluster: rates may be far below what it can carry.
            Headroom::Fit => 1000.0,
            Headroom::Factor(factor) => factor,
        }
    }
}

/// How many requests a turn takes, where more are waiting than were planned for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum TurnBatch {
    /// The planned batch at most: the public code.
    Planned,
    /// This many times the planned batch at most, as far as it ends by the head's deadline.
    Factor(f64),
    /// As many as end by the head's deadline, while the device's other models can wait for them.
    Duty,
    /// As many as end by the head's deadline.
    Deadline,
}

/// The settings of [`Nexus`](super::Nexus).
#[derive(Clone, Debug, PartialEq)]
pub struct NexusSettings {
    /// `epoch`: how often the cluster is planned anew; default 30 s.
    pub epoch: Span,
    /// `min_epoch`: how soon it is planned anew when a model's rate left 0.8 to 1.1 of what was planned for, and over
    /// how long rates are measured; default 10 s.
    pub min_epoch: Span,
    /// `headroom`: `fit` or a factor; default `fit`.
    pub headroom: Headroom,
    /// `batch`: `planned`, `duty`, `deadline` or a factor; default `deadline`.
    pub batch: TurnBatch,
    /// `spread`: `plan`, or a number of devices for every model instead of a plan, its requests going to one of them at
    /// random; default `plan`.
    pub spread: Option<u32>,
}

impl Default for NexusSettings {
    fn default() -> NexusSettings {
        NexusSettings {
            epoch: Span::from_millis(30_000),
            min_epoch: Span::from_millis(10_000),
            headroom: Headroom::Fit,
            batch: TurnBatch::Deadline,
            spread: None,
        }
    }
}

impl NexusSettings {
    pub(crate) const TABLE: [Setting; 5] = [
        Setting { key: "epoch", values: "a span of 100ms or more (30s)" },
        Setting { key: "min_epoch", values: "a span of 100ms or more (10s)" },
        Setting { key: "headroom", values: "fit or a factor from 0.001 to 100" },
        Setting { key: "batch", values: "planned, duty, deadline or a factor from 1" },
        Setting { key: "spread", values: "plan or a number of devices from 1" },
    ];

    /// Planning takes time that grows with the cluster, and a rate needs arrivals to be measured by.
    const SHORTEST_EPOCH: Span = Span::from_millis(100);

    /// The settings worth trying: whole clusters or part of them, and from the public code's batches to larger ones.
    pub fn grid() -> Vec<NexusSettings> {
        let pairs = [
            (Headroom::Fit, TurnBatch::Deadline),
            (Headroom::Fit, TurnBatch::Duty),
            (Headroom::Fit, TurnBatch::Factor(2.0)),
            (Headroom::Fit, TurnBatch::Planned),
            (Headroom::Factor(3.0), TurnBatch::Deadline),
            (Headroom::Factor(2.0), TurnBatch::Deadline),
            (Headroom::Factor(1.5), TurnBatch::Deadline),
        ];
        pairs.map(|(headroom, batch)| NexusSettings { headroom, batch, ..NexusSettings::default() }).into()
    }

    /// Changes one setting, as written on a command line.
    pub fn set(&mut self, key: &str, value: &str) -> Result<(), String> {
        let factor = |least: f64, most: f64| {
            let within = setting::number(value).ok().filter(|factor| (least..=most).contains(factor));
            let range = if most < f64::MAX { format!("{least} to {most}") } else { format!("{least} up") };
            within.ok_or_else(|| {
                format!("{key}: '{value}' is neither a factor from {range} nor a word it knows")
            })
        };
        match key {
            "epoch" => self.epoch = epoch(value)?,
            "min_epoch" => self.min_epoch = epoch(value)?,
            "headroom" if value == "fit" => self.headroom = Headroom::Fit,
            "headroom" => self.headroom = Headroom::Factor(factor(Headroom::LEAST, Headroom::MOST)?),
            "batch" => {
                self.batch = match value {
                    "planned" => TurnBatch::Planned,
                    "duty" => TurnBatch::Duty,
                    "deadline" => TurnBatch::Deadline,
                    _ => TurnBatch::Factor(factor(1.0, f64::MAX)?),
                }
            }
            "spread" if value == "plan" => self.spread = None,
            "spread" => {
                let devices = value.parse().ok().filter(|&devices: &u32| devices > 0);
                let wrong = || format!("{key}: '{value}' is neither a number of devices nor plan");
                self.spread = Some(devices.ok_or_else(wrong)?);
            }
            _ => return Err(setting::unknown(key, &NexusSettings::TABLE)),
        }
        Ok(())
    }

    /// A setting's value, as [`set`](NexusSettings::set) takes it; empty for a key that is not in the table.
    pub(crate) fn get(&self, key: &str) -> String {
        match key {
            "epoch" => setting::show_span(self.epoch),
            "min_epoch" => setting::show_span(self.min_epoch),
            "headroom" => match self.headroom {
                Headroom::Fit => "fit".to_owned(),
                Headroom::Factor(factor) => factor.to_string(),
            },
            "batch" => match self.batch {
                TurnBatch::Planned => "planned".to_owned(),
                TurnBatch::Duty => "duty".to_owned(),
                TurnBatch::Deadline => "deadline".to_owned(),
                TurnBatch::Factor(factor) => factor.to_string(),
            },
            "spread" => self.spread.map_or_else(|| "plan".to_owned(), |devices| devices.to_string()),
            _ => String::new(),
        }
    }
}

fn epoch(value: &str) -> Result<Span, String> {
    let epoch = setting::span(value)?;
    if epoch < NexusSettings::SHORTEST_EPOCH {
        return Err(format!(
            "'{value}' is too short for an epoch; write {:?} or more",
            NexusSettings::SHORTEST_EPOCH
        ));
    }
    Ok(epoch)
}

impl fmt::Display for NexusSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let default = NexusSettings::default();
        setting::write(f, &NexusSettings::TABLE, |key| {
            let always = ["headroom", "batch"].contains(&key);
            Some(self.get(key)).filter(|value| always || *value != default.get(key))
        })
    }
}
