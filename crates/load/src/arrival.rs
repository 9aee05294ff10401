//! When requests come, as the command line says it.

#[cfg(test)]
mod tests;

use std::fmt;
use std::path::Path;
use std::str::FromStr;
use std::sync::Arc;

use downbeat_sim::{Arrival, RateTrace, Span};

/// A process of arrivals: `poisson`, `uniform`, `gamma:SHAPE`, `onoff:ON_S,OFF_S,FACTOR` or `trace:FILE`.
///
/// The processes are the simulator's, so that a server can be offered what a simulated cluster was.
#[derive(Clone, Debug)]
pub struct ArrivalSpec {
    text: String,
    /// The process.
    pub process: Arrival,
}

/// Why a text is no process of arrivals.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ArrivalError(String);

impl ArrivalSpec {
    /// The mean rate that a trace has by itself, in requests per second; a rate that is given scales it.
    pub fn own_rate_rps(&self) -> Option<f64> {
        match &self.process {
            Arrival::Trace(trace) => Some(trace.mean_rate()),
            _ => None,
        }
    }
}

impl FromStr for ArrivalSpec {
    type Err = ArrivalError;

    fn from_str(text: &str) -> Result<ArrivalSpec, ArrivalError> {
        let (kind, rest) = text.split_once(':').unwrap_or((text, ""));
        let wrong = |what: &str| Err(ArrivalError(what.to_owned()));
        let numbers: Option<Vec<f64>> = rest
            .split(',')
            .map(|word| word.trim().parse::<f64>().ok().filter(|n| n.is_finite() && *n > 0.0))
            .collect();
        let process = match (kind, rest, numbers.as_deref()) {
            ("poisson", "", _) => Arrival::Poisson,
            ("uniform", "", _) => Arrival::Uniform,
            ("poisson" | "uniform", _, _) => return wrong("poisson and uniform have no settings"),
            // Below, nearly all gaps are no time at all.
            ("gamma", _, Some(&[shape])) if shape >= 1e-3 => Arrival::Gamma { shape },
            ("gamma", _, _) => {
                return wrong("say gamma:SHAPE, from 0.001; shapes below 1 are burstier than poisson");
            }
            ("onoff", _, Some(&[on_s, off_s, factor])) => {
                let span = Span::from_secs_f64;
                Arrival::OnOff { on: span(on_s), off: span(off_s), factor }
            }
            ("onoff", _, _) => {
                return wrong(
                    "say onoff:ON_S,OFF_S,FACTOR: for ON_S seconds FACTOR times the rate of the next OFF_S",
                );
            }
            ("trace", "", _) => return wrong("say trace:FILE, a CSV with the columns time_s and rate"),
            ("trace", file, _) => {
                let trace =
                    RateTrace::load(Path::new(file)).map_err(|error| ArrivalError(error.to_string()))?;
                Arrival::Trace(Arc::new(trace))
            }
            _ => {
                return wrong(
                    "there are poisson, uniform, gamma:SHAPE, onoff:ON_S,OFF_S,FACTOR and trace:FILE",
                );
            }
        };
        Ok(ArrivalSpec { text: text.to_owned(), process })
    }
}

impl fmt::Display for ArrivalSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}
