//! What the operator of a Triton server would tune.

use std::fmt;

use downbeat_sched::{Delays, LatencyProfile, Span};

use super::super::setting::{self, Setting, SloSpan};
use crate::Cluster;

/// How a model's largest batch (`max_batch_size`) is chosen.
///
/// Triton itself would fill any batch the model allows, however late it then ends; an operator who has an SLO
/// measures l(b) and caps it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum BatchCap {
    /// The largest batch the profile describes.
    Model,
    /// The largest b with 2 l(b) within the SLO: a request that just missed a batch still makes the next.
    HalfSlo,
    /// The largest b with l(b) within the SLO.
    Slo,
    /// The largest b with l(b) within this share of the SLO.
    Share(f64),
}

/// The settings of [`Delayed`](super::Delayed).
#[derive(Clone, Debug, PartialEq)]
pub struct DelayedSettings {
    /// `delay`: `max_queue_delay_microseconds`; default 0, as Triton's.
    pub delay: SloSpan,
    /// `cap`: how `max_batch_size` is chosen (`model`, `half`, `slo`, `0.7slo`); default `half`.
    pub cap: BatchCap,
    /// `max_batch`: a limit on top of `cap`; default off.
    pub max_batch: Option<u32>,
    /// `preferred`: `preferred_batch_size`, written `4+8`; default none, which means the largest batch.
    pub preferred: Vec<u32>,
    /// `timeout`: `default_timeout_microseconds` with the action REJECT; default off, as Triton's. `on` gives every
    /// model what a full batch of the cap `half` leaves of its SLO: who waits longer would be late.
    pub timeout: QueueTimeout,
}

/// How long a request may wait in the queue.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum QueueTimeout {
    /// As long as it takes.
    Off,
    /// While a batch of the cap `half` would still end inside the SLO.
    On,
    /// This long.
    Fixed(SloSpan),
}

impl Default for DelayedSettings {
    fn default() -> DelayedSettings {
        DelayedSettings {
            delay: SloSpan::Fixed(Span::ZERO),
            cap: BatchCap::HalfSlo,
            max_batch: None,
            preferred: Vec::new(),
            timeout: QueueTimeout::Off,
        }
    }
}

impl DelayedSettings {
    pub(crate) const TABLE: [Setting; 5] = [
        Setting { key: "delay", values: "a span (2ms, 250us, 0) or a share (0.25slo)" },
        Setting { key: "cap", values: "model, half, slo or a share (0.7slo)" },
        Setting { key: "max_batch", values: "off or a whole number of 1 or more" },
        Setting { key: "preferred", values: "off or sizes (4+8)" },
        Setting { key: "timeout", values: "off, on, a span (2ms) or a share (0.5slo)" },
    ];

    /// The settings worth trying: every delay that leaves the capped batch time to run, with and without a timeout.
    ///
    /// One model on many devices does best with a large cap, because its batches start staggered; many models on few
    /// devices do best with a small one and a long delay.
    pub fn grid() -> Vec<DelayedSettings> {
        let caps = [(BatchCap::HalfSlo, 0.5), (BatchCap::Share(0.7), 0.7), (BatchCap::Share(0.8), 0.8)];
        let mut grid = Vec::new();
        for (cap, longest_run) in caps {
            for delay in [0.0, 0.125, 0.25, 0.375, 0.5] {
                if delay + longest_run > 1.0 {
                    continue;
                }
                let delay = if delay > 0.0 { SloSpan::Share(delay) } else { SloSpan::Fixed(Span::ZERO) };
                for timeout in [QueueTimeout::Off, QueueTimeout::On] {
                    grid.push(DelayedSettings { delay, cap, timeout, ..DelayedSettings::default() });
                }
            }
        }
        grid
    }

    /// Changes one setting, as written on a command line.
    pub fn set(&mut self, key: &str, value: &str) -> Result<(), String> {
        match key {
            "delay" => self.delay = value.parse()?,
            "cap" => {
                self.cap = match value {
                    "model" => BatchCap::Model,
                    "half" => BatchCap::HalfSlo,
                    "slo" => BatchCap::Slo,
                    _ => match value.parse()? {
                        SloSpan::Share(share) => BatchCap::Share(share),
                        SloSpan::Fixed(_) => {
                            return Err(format!("'{value}' is not a cap; write model, half, slo or 0.7slo"));
                        }
                    },
                }
            }
            "max_batch" => self.max_batch = setting::optional(value, setting::count)?,
            "preferred" => {
                let sizes = setting::optional(value, |list| list.split('+').map(setting::count).collect())?;
                self.preferred = sizes.unwrap_or_default();
            }
            "timeout" => {
                self.timeout = match value {
                    "off" => QueueTimeout::Off,
                    "on" => QueueTimeout::On,
                    _ => QueueTimeout::Fixed(value.parse()?),
                }
            }
            _ => return Err(setting::unknown(key, &DelayedSettings::TABLE)),
        }
        Ok(())
    }

    /// A setting's value, as [`set`](DelayedSettings::set) takes it; empty for a key that is not in the table.
    pub(crate) fn get(&self, key: &str) -> String {
        match key {
            "delay" => self.delay.to_string(),
            "cap" => self.cap.to_string(),
            "max_batch" => setting::show_optional(self.max_batch, |it| it.to_string()),
            "preferred" if self.preferred.is_empty() => "off".to_owned(),
            "preferred" => self.preferred.iter().map(ToString::to_string).collect::<Vec<_>>().join("+"),
            "timeout" => match self.timeout {
                QueueTimeout::Off => "off".to_owned(),
                QueueTimeout::On => "on".to_owned(),
                QueueTimeout::Fixed(span) => span.to_string(),
            },
            _ => String::new(),
        }
    }

    /// The largest batch on a device with this profile.
    pub(super) fn cap_of(&self, profile: &LatencyProfile, slo: Span, delays: Delays) -> u32 {
        let within = |share: f64| {
            let budget = SloSpan::Share(share).of(slo) - delays.control;
            profile.largest_within(budget, delays.data)
        };
        let cap = match self.cap {
            BatchCap::Model => profile.max_batch(),
            BatchCap::HalfSlo => within(0.5),
            BatchCap::Slo => within(1.0),
            BatchCap::Share(share) => within(share),
        };
        cap.min(self.max_batch.unwrap_or(u32::MAX)).max(1)
    }

    /// How long a request of the model may wait.
    pub(super) fn timeout_of(&self, cluster: &Cluster, model: usize) -> Option<Span> {
        let facts = &cluster.models[model];
        match self.timeout {
            QueueTimeout::Off => None,
            QueueTimeout::Fixed(span) => Some(span.of(facts.slo)),
            QueueTimeout::On => {
                let half = DelayedSettings { cap: BatchCap::HalfSlo, ..self.clone() };
                let longest_run = facts.profiles.iter().flatten().map(|profile| {
                    let cap = half.cap_of(profile, facts.slo, cluster.delays);
                    profile.latency(cap) + cluster.delays.lead(cap)
                });
                Some(facts.slo - longest_run.max()?)
            }
        }
    }
}

impl fmt::Display for BatchCap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BatchCap::Model => f.write_str("model"),
            BatchCap::HalfSlo => f.write_str("half"),
            BatchCap::Slo => f.write_str("slo"),
            BatchCap::Share(share) => write!(f, "{share}slo"),
        }
    }
}

impl fmt::Display for DelayedSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        setting::write(f, &DelayedSettings::TABLE, |key| {
            let always = ["delay", "cap", "timeout"].contains(&key);
            Some(self.get(key)).filter(|value| always || value != "off")
        })
    }
}
