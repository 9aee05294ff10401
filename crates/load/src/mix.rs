//! Which models are asked, how often, and by when they must have answered.

#[cfg(test)]
mod tests;

use std::str::FromStr;
use std::time::Duration;

/// A model as the command line names it: `NAME[:KEY=VALUE...]`. What is not said is `None`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ModelSpec {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: Option<String>,
    /// Its part of the traffic, in relation to the other models' weights.
    pub weight: Option<f64>,
    /// Its objective.
    pub slo: Option<Duration>,
    /// The `timeout` parameter of its requests.
    pub timeout: Option<Duration>,
    /// The `priority` parameter of its requests.
    pub priority: Option<u64>,
    /// Rows of each request, where the model has a batch dimension.
    pub rows: Option<u32>,
}

/// A model and its part of the load, with nothing left open.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelLoad {
    /// Its name.
    pub name: String,
    /// Its version; empty for the server's choice.
    pub version: String,
    /// Its part of the traffic, in relation to the other models' weights; above 0.
    pub weight: f64,
    /// From when a request should have been sent to its answer. Without one, every result is in time.
    pub slo: Option<Duration>,
    /// The `timeout` parameter of its requests; none where it is `None`.
    pub timeout: Option<Duration>,
    /// The `priority` parameter of its requests; none where it is `None`.
    pub priority: Option<u64>,
    /// Rows of each request, where the model has a batch dimension.
    pub rows: u32,
}

/// Why a text names no model.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct MixError(String);

impl FromStr for ModelSpec {
    type Err = MixError;

    fn from_str(text: &str) -> Result<ModelSpec, MixError> {
        let mut words = text.split(':');
        let name = words.next().unwrap_or_default();
        if name.is_empty() {
            return Err(MixError("the name is missing: NAME[:KEY=VALUE...]".to_owned()));
        }
        let mut spec = ModelSpec { name: name.to_owned(), ..ModelSpec::default() };
        for word in words {
            let (key, value) = word.split_once('=').ok_or_else(|| {
                MixError(format!("`{word}` is not KEY=VALUE (the model is called `{name}`)"))
            })?;
            spec.set(key, value)?;
        }
        Ok(spec)
    }
}

impl ModelSpec {
    fn set(&mut self, key: &str, value: &str) -> Result<(), MixError> {
        let wrong = |what: &str| MixError(format!("{key} must be {what} (is `{value}`)"));
        let positive = || value.parse::<f64>().ok().filter(|n| n.is_finite() && *n > 0.0);
        let millis = || positive().and_then(millis).ok_or_else(|| wrong("a number of milliseconds above 0"));
        match key {
            "weight" => self.weight = Some(positive().ok_or_else(|| wrong("a number above 0"))?),
            "slo_ms" => self.slo = Some(millis()?),
            "timeout_ms" => self.timeout = Some(millis()?),
            "priority" => self.priority = Some(value.parse().map_err(|_| wrong("a whole number from 0"))?),
            "rows" => {
                let rows = value.parse().ok().filter(|rows| *rows > 0);
                self.rows = Some(rows.ok_or_else(|| wrong("a whole number from 1"))?);
            }
            "version" => self.version = Some(value.to_owned()),
            _ => {
                let keys = "weight, slo_ms, timeout_ms, priority, rows, version";
                return Err(MixError(format!("there is no `{key}`; a model has {keys}")));
            }
        }
        Ok(())
    }

    /// The model with what it leaves open taken from `rest`, whose name does not matter.
    pub fn or(self, rest: &ModelSpec) -> ModelLoad {
        ModelLoad {
            name: self.name,
            version: self.version.or_else(|| rest.version.clone()).unwrap_or_default(),
            weight: self.weight.or(rest.weight).unwrap_or(1.0),
            slo: self.slo.or(rest.slo),
            timeout: self.timeout.or(rest.timeout),
            priority: self.priority.or(rest.priority),
            rows: self.rows.or(rest.rows).unwrap_or(1),
        }
    }
}

/// A length of time in milliseconds, where it is one that can be waited for: above 0 and at most a day.
pub fn millis(ms: f64) -> Option<Duration> {
    const DAY_MS: f64 = 86_400_000.0;
    (ms > 0.0 && ms <= DAY_MS).then(|| Duration::from_secs_f64(ms / 1e3))
}
