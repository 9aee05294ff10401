//! The controller's command line, and the two ways to set it.

use std::fmt;

use downbeat_sched::Span;

use super::super::setting::{self, Setting};

/// Which batch sizes a model was compiled for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sizes {
    /// 1, 2, 4, 8 and so on, and the largest: what Clockwork's models were compiled for.
    PowersOfTwo,
    /// Every size: what a runtime that takes any batch size allows.
    All,
}

/// The settings of [`Clockwork`](super::Clockwork). The default is `clockwork`, without the published caps.
#[derive(Clone, Debug, PartialEq)]
pub struct ClockworkSettings {
    /// `ahead`: how far into the future a device is filled; default 10 ms.
    pub ahead: Span,
    /// `max_batch`: the largest batch; default off.
    pub max_batch: Option<u32>,
    /// `max_exec`: the longest execution that a batch above 1 may take; default off.
    pub max_exec: Option<Span>,
    /// `sizes`: `pow2` or `all`; default `pow2`.
    pub sizes: Sizes,
    /// `buffer`: how long before its deadline a request should finish; default 0.
    pub buffer: Span,
    /// `window`: the executions an estimate is made from, 0 for the profile alone; default 10.
    pub window: usize,
}

impl Default for ClockworkSettings {
    fn default() -> ClockworkSettings {
        ClockworkSettings {
            ahead: Span::from_millis(10),
            max_batch: None,
            max_exec: None,
            sizes: Sizes::PowersOfTwo,
            buffer: Span::ZERO,
            window: 10,
        }
    }
}

impl ClockworkSettings {
    pub(crate) const TABLE: [Setting; 6] = [
        Setting { key: "ahead", values: "a span (2ms, 250us, 1.5s, 0)" },
        Setting { key: "max_batch", values: "off or a whole number of 1 or more" },
        Setting { key: "max_exec", values: "off or a span (25ms)" },
        Setting { key: "sizes", values: "pow2 or all" },
        Setting { key: "buffer", values: "a span (5ms, 0)" },
        Setting { key: "window", values: "a whole number; 0 for the profile alone" },
    ];

    /// `clockwork-published`: batches of at most 16, executions of at most 25 ms.
    pub fn published() -> ClockworkSettings {
        ClockworkSettings {
            max_batch: Some(16),
            max_exec: Some(Span::from_millis(25)),
            ..ClockworkSettings::default()
        }
    }

    /// The settings worth trying. The published 10 ms suit SLOs of 100 ms; where SLOs are of that order themselves,
    /// batches that are fixed 10 ms ahead are fixed too early.
    pub fn grid() -> Vec<ClockworkSettings> {
        let mut grid = Vec::new();
        for sizes in [Sizes::PowersOfTwo, Sizes::All] {
            for ahead in [10, 5, 2, 1].map(Span::from_millis) {
                grid.push(ClockworkSettings { ahead, sizes, ..ClockworkSettings::default() });
            }
        }
        grid
    }

    /// Changes one setting, as written on a command line.
    pub fn set(&mut self, key: &str, value: &str) -> Result<(), String> {
        match key {
            "ahead" => self.ahead = setting::span(value)?,
            "max_batch" => self.max_batch = setting::optional(value, setting::count)?,
            "max_exec" => self.max_exec = setting::optional(value, setting::span)?,
            "sizes" => {
                self.sizes = match value {
                    "pow2" => Sizes::PowersOfTwo,
                    "all" => Sizes::All,
                    _ => return Err(format!("'{value}' is not a choice of sizes; write pow2 or all")),
                }
            }
            "buffer" => self.buffer = setting::span(value)?,
            "window" if value == "0" => self.window = 0,
            "window" => self.window = setting::count(value)? as usize,
            _ => return Err(setting::unknown(key, &ClockworkSettings::TABLE)),
        }
        Ok(())
    }

    /// A setting's value, as [`set`](ClockworkSettings::set) takes it; empty for a key that is not in the table.
    pub(crate) fn get(&self, key: &str) -> String {
        match key {
            "ahead" => setting::show_span(self.ahead),
            "max_batch" => setting::show_optional(self.max_batch, |it| it.to_string()),
            "max_exec" => setting::show_optional(self.max_exec, setting::show_span),
            "sizes" => match self.sizes {
                Sizes::PowersOfTwo => "pow2".to_owned(),
                Sizes::All => "all".to_owned(),
            },
            "buffer" => setting::show_span(self.buffer),
            "window" => self.window.to_string(),
            _ => String::new(),
        }
    }

    /// The sizes to use of a model whose largest batch is `largest`, rising.
    pub(super) fn sizes_up_to(&self, largest: u32) -> Vec<u32> {
        let largest = largest.min(self.max_batch.unwrap_or(u32::MAX)).max(1);
        match self.sizes {
            Sizes::All => (1..=largest).collect(),
            Sizes::PowersOfTwo => {
                let powers = (0..u32::BITS).map(|exponent| 1 << exponent);
                powers.take_while(|&size| size < largest).chain([largest]).collect()
            }
        }
    }
}

impl fmt::Display for ClockworkSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let default = ClockworkSettings::default();
        setting::write(f, &ClockworkSettings::TABLE, |key| {
            let always = ["ahead", "sizes"].contains(&key);
            Some(self.get(key)).filter(|value| always || *value != default.get(key))
        })
    }
}
