//! Inference requests and responses, independent of how they travel.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::Duration;

use serde::Serialize;
use serde::de::{Deserialize, Deserializer, Visitor};

use crate::{Failure, Reason, Tensor};

/// The value of a parameter of a request, an input or a response.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Parameter {
    /// A truth value.
    Bool(bool),
    /// A signed integer.
    Int(i64),
    /// An unsigned integer.
    Uint(u64),
    /// A floating-point number.
    Double(f64),
    /// A string.
    String(String),
}

impl Parameter {
    /// Its value as a count of something; `None` if it is not a whole number from 0.
    pub fn as_count(&self) -> Option<u64> {
        match *self {
            Parameter::Int(value) => u64::try_from(value).ok(),
            Parameter::Uint(value) => Some(value),
            Parameter::Bool(_) | Parameter::Double(_) | Parameter::String(_) => None,
        }
    }
}

impl<'de> Deserialize<'de> for Parameter {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Parameter, D::Error> {
        deserializer.deserialize_any(ParameterVisitor)
    }
}

struct ParameterVisitor;

impl Visitor<'_> for ParameterVisitor {
    type Value = Parameter;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a truth value, a number or a string")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Parameter, E> {
        Ok(Parameter::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Parameter, E> {
        Ok(Parameter::Int(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Parameter, E> {
        Ok(i64::try_from(value).map_or(Parameter::Uint(value), Parameter::Int))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Parameter, E> {
        Ok(Parameter::Double(value))
    }

    fn visit_str<E>(self, value: &str) -> Result<Parameter, E> {
        Ok(Parameter::String(value.to_owned()))
    }
}

/// A request to run a model.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct InferRequest {
    /// The model's name.
    pub model: String,
    /// The model's version; empty for the server's choice.
    pub version: String,
    /// The client's own name for the request; comes back in the response.
    pub id: String,
    /// Parameters of the request as a whole.
    pub parameters: BTreeMap<String, Parameter>,
    /// The tensors to run on, checked: the content fits type and shape.
    pub inputs: Vec<Tensor>,
    /// The outputs wanted; empty for all.
    pub outputs: Vec<RequestedOutput>,
}

/// An output that a request asks for.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RequestedOutput {
    /// Its name.
    pub name: String,
    /// The `classification` parameter: the k most likely classes instead of the tensor; 0 for the tensor.
    pub classes: u32,
}

/// The result of a request.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct InferResponse {
    /// The model's name.
    pub model: String,
    /// The version that ran.
    pub version: String,
    /// The request's id.
    pub id: String,
    /// What happened: `downbeat_queue_us` and the like.
    pub parameters: BTreeMap<String, Parameter>,
    /// The outputs asked for, in the order asked for.
    pub outputs: Vec<Tensor>,
}

impl InferRequest {
    /// The `timeout` parameter, which is in microseconds; `None` where it is absent or 0.
    pub fn timeout(&self) -> Result<Option<Duration>, Failure> {
        Ok(self.count("timeout")?.filter(|&us| us > 0).map(Duration::from_micros))
    }

    /// The `priority` parameter: 1 is the highest; 0, or none, is the model's default.
    pub fn priority(&self) -> Result<u64, Failure> {
        Ok(self.count("priority")?.unwrap_or(0))
    }

    /// Whether what can be checked without knowing the model is right: the version is a number, parameters that the
    /// server reads are of their kind, and no input or output is named twice. The codecs have done this with every
    /// request that they return.
    ///
    /// Parameters that mean nothing here are ignored, as Triton does: its own (`triton_*`), and those of sequences
    /// (`sequence_id` and so on), which only concern models that keep state. Downbeat serves no such model.
    pub fn check(&self) -> Result<(), Failure> {
        if !self.version.is_empty() && self.version.parse::<u64>().is_err() {
            let message = format!("the version of a model is a number, not '{}'", self.version);
            return Err(Failure::new(Reason::Invalid, message));
        }
        self.timeout()?;
        self.priority()?;
        unique("input", self.inputs.iter().map(|input| input.name.as_str()))?;
        unique("output", self.outputs.iter().map(|output| output.name.as_str()))
    }

    fn count(&self, name: &str) -> Result<Option<u64>, Failure> {
        let Some(value) = self.parameters.get(name) else { return Ok(None) };
        let count = value.as_count().ok_or_else(|| {
            Failure::new(Reason::Invalid, format!("parameter '{name}' must be an integer, and not negative"))
        })?;
        Ok(Some(count))
    }
}

fn unique<'a>(what: &str, names: impl Iterator<Item = &'a str>) -> Result<(), Failure> {
    let mut seen = BTreeSet::new();
    for name in names {
        if !seen.insert(name) {
            return Err(Failure::new(Reason::Invalid, format!("{what} '{name}' is there twice")));
        }
    }
    Ok(())
}
