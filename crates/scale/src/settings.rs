//! What an operator may choose.

use downbeat_sched::Span;

/// How an [`Autoscaler`](crate::Autoscaler) is to behave. The defaults suit devices that take a minute or a few to
/// come.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// Never fewer devices than this; at least 1.
    pub min: u32,
    /// Never more than this; at least `min`.
    pub max: u32,
    /// How long a device takes from being asked for to taking work.
    pub provision: Span,
    /// Over how long signals are averaged before more devices are asked for: long enough to tell a surge from chance.
    pub react: Span,
    /// Fewer devices must have been enough at every moment of so long a time before some are given back.
    pub calm: Span,
    /// How long after any change no device is given back.
    pub cool_down: Span,
    /// At most this share of the devices, and at least one, is asked for at once.
    pub step_up: f64,
    /// At most this share of the devices, and at least one, is given back at once.
    pub step_down: f64,
    /// By how much of a device the need must be below what would be left, before one is given back.
    pub hysteresis: f64,
    /// The bad rate from which on the cluster counts as overloaded: half of what an objective of 99 % allows.
    pub bad_rate_max: f64,
    /// Devices kept beyond the need from the beginning, in square roots of it. Where that is not enough, more is learned
    /// from requests that are lost.
    pub reserve: f64,
    /// Whether to look ahead by [`Forecast`](crate::Forecast).
    pub forecast: bool,
}

/// What is wrong with settings.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SettingsError {
    /// No device at all.
    #[error("min must be at least 1: without a device nobody can be served, nor a need be seen")]
    NoneAtAll,
    /// More at least than at most.
    #[error("min must be at most max ({min} is more than {max})")]
    MinAboveMax {
        /// What was given as the least.
        min: u32,
        /// What was given as the most.
        max: u32,
    },
    /// A number out of its range.
    #[error("{name} must be {rule} (is {value})")]
    OutOfRange {
        /// The setting.
        name: &'static str,
        /// What it must be.
        rule: &'static str,
        /// What it is.
        value: String,
    },
}

impl Settings {
    /// The defaults, from `min` to `max` devices.
    pub fn between(min: u32, max: u32) -> Result<Settings, SettingsError> {
        Settings { min, max, ..Settings::unlimited() }.checked()
    }

    /// For one who only wants to know: any number of devices from 1 on, and as many at once as are wanted.
    pub fn advisory() -> Settings {
        Settings { step_up: 100.0, ..Settings::unlimited() }
    }

    fn unlimited() -> Settings {
        Settings {
            min: 1,
            max: 1_000_000,
            provision: Span::from_millis(120_000),
            react: Span::from_millis(15_000),
            calm: Span::from_millis(300_000),
            cool_down: Span::from_millis(120_000),
            step_up: 1.0,
            step_down: 0.25,
            hysteresis: 0.15,
            bad_rate_max: 0.005,
            // The need has a margin of its own, half a device where many models share devices: a batch is reckoned to
            // wait for its first request, too, and rates are those of one second.
            reserve: 0.0,
            forecast: false,
        }
    }

    /// The settings, if they make sense.
    pub fn checked(self) -> Result<Settings, SettingsError> {
        if self.min == 0 {
            return Err(SettingsError::NoneAtAll);
        }
        if self.min > self.max {
            return Err(SettingsError::MinAboveMax { min: self.min, max: self.max });
        }
        let shares = [("step_up", self.step_up, 100.0), ("step_down", self.step_down, 1.0)];
        for (name, value, most) in shares {
            if !(value > 0.0 && value <= most) {
                let rule = if most > 1.0 { "above 0 and at most 100" } else { "above 0 and at most 1" };
                return Err(SettingsError::OutOfRange { name, rule, value: value.to_string() });
            }
        }
        if !(0.0..1.0).contains(&self.bad_rate_max) || self.bad_rate_max == 0.0 {
            let (name, rule) = ("bad_rate_max", "above 0 and below 1");
            return Err(SettingsError::OutOfRange { name, rule, value: self.bad_rate_max.to_string() });
        }
        for (name, value) in [("hysteresis", self.hysteresis), ("reserve", self.reserve)] {
            if !(0.0..=100.0).contains(&value) {
                let rule = "from 0 to 100";
                return Err(SettingsError::OutOfRange { name, rule, value: value.to_string() });
            }
        }
        Ok(self)
    }
}
