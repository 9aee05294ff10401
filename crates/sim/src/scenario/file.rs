//! The shape of a scenario file. Every value carries its place in the text, for messages.
//!
//! A value that has kinds (`arrival`, `jitter`, `popularity`, `profile`) is read as one flat table and told apart by
//! [`build`](super::build): an enum that serde tells apart would lose the places.

use std::collections::BTreeMap;

use serde::Deserialize;
use toml::Spanned;

/// A whole file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ScenarioFile {
    pub(super) gpus: Option<Spanned<i64>>,
    pub(super) gpu_class: Option<Vec<Spanned<ClassFile>>>,
    pub(super) duration_s: Option<Spanned<f64>>,
    pub(super) warmup_s: Option<Spanned<f64>>,
    pub(super) seed: Option<Spanned<i64>>,
    pub(super) arrival: Option<Spanned<ArrivalFile>>,
    pub(super) spare_devices: Option<Spanned<String>>,
    pub(super) control_delay_us: Option<Spanned<f64>>,
    pub(super) data_delay_us: Option<Spanned<f64>>,
    pub(super) response_reserve_us: Option<Spanned<f64>>,
    pub(super) response_us: Option<Spanned<QuantilesFile>>,
    pub(super) jitter: Option<Spanned<JitterFile>>,
    pub(super) total_rps: Option<Spanned<f64>>,
    pub(super) popularity: Option<Spanned<PopularityFile>>,
    pub(super) model: Option<Vec<Spanned<ModelFile>>>,
    pub(super) fault: Option<Vec<Spanned<FaultFile>>>,
    pub(super) autoscale: Option<Spanned<AutoscaleFile>>,
    pub(super) subcluster: Option<Vec<Spanned<SubclusterFile>>>,
}

/// `[[gpu_class]]`
#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table with name and count")]
pub(super) struct ClassFile {
    pub(super) name: Spanned<String>,
    pub(super) count: Spanned<i64>,
}

/// `[[subcluster]]`
#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table with name, gpus and models")]
pub(super) struct SubclusterFile {
    pub(super) name: Spanned<String>,
    pub(super) gpus: Option<Spanned<i64>>,
    pub(super) gpus_by_class: Option<Spanned<BTreeMap<Spanned<String>, Spanned<i64>>>>,
    pub(super) models: Spanned<Vec<Spanned<String>>>,
}

/// `[[fault]]`
#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table with gpu and at_s")]
pub(super) struct FaultFile {
    pub(super) gpu: Spanned<i64>,
    pub(super) at_s: Spanned<f64>,
}

/// `[autoscale]`
#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table such as { min = 1, max = 16, provision_s = 120 }")]
pub(super) struct AutoscaleFile {
    pub(super) min: Option<Spanned<i64>>,
    pub(super) max: Option<Spanned<i64>>,
    pub(super) provision_s: Option<Spanned<f64>>,
    pub(super) interval_s: Option<Spanned<f64>>,
    pub(super) react_s: Option<Spanned<f64>>,
    pub(super) calm_s: Option<Spanned<f64>>,
    pub(super) cool_down_s: Option<Spanned<f64>>,
    pub(super) step_up: Option<Spanned<f64>>,
    pub(super) step_down: Option<Spanned<f64>>,
    pub(super) hysteresis: Option<Spanned<f64>>,
    pub(super) reserve: Option<Spanned<f64>>,
    pub(super) forecast: Option<Spanned<bool>>,
}

/// `arrival = { kind = ..., ... }`
#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table such as { kind = \"poisson\" }")]
pub(super) struct ArrivalFile {
    pub(super) kind: Spanned<String>,
    pub(super) shape: Option<Spanned<f64>>,
    pub(super) on_s: Option<Spanned<f64>>,
    pub(super) off_s: Option<Spanned<f64>>,
    pub(super) factor: Option<Spanned<f64>>,
    pub(super) csv: Option<Spanned<String>>,
}

/// `jitter = { kind = ..., ... }`
#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table such as { kind = \"none\" }")]
pub(super) struct JitterFile {
    pub(super) kind: Spanned<String>,
    pub(super) sigma: Option<Spanned<f64>>,
    pub(super) added_us: Option<Spanned<QuantilesFile>>,
}

/// `[[0.5, 20], [0.99, 300], [1, 4000]]`: shares, and what they stay within.
pub(super) type QuantilesFile = Vec<(f64, f64)>;

/// `popularity = { kind = ..., ... }`
#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table such as { kind = \"zipf\", s = 0.9 }")]
pub(super) struct PopularityFile {
    pub(super) kind: Spanned<String>,
    pub(super) s: Option<Spanned<f64>>,
}

/// `[[model]]`
#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub(super) struct ModelFile {
    pub(super) name: Spanned<String>,
    pub(super) slo_ms: Spanned<f64>,
    pub(super) weight: Option<Spanned<f64>>,
    pub(super) priority: Option<Spanned<i64>>,
    pub(super) rate_rps: Option<Spanned<f64>>,
    pub(super) profile: Option<Spanned<ProfileEntry>>,
    pub(super) profiles: Option<Spanned<BTreeMap<Spanned<String>, Spanned<ProfileEntry>>>>,
    pub(super) arrival: Option<Spanned<ArrivalFile>>,
}

/// `profile = { alpha_ms = ..., ... }` or `{ csv = ..., ... }`
#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table such as { alpha_ms = 1, beta_ms = 5, max_batch = 8 }")]
pub(super) struct ProfileEntry {
    pub(super) alpha_ms: Option<Spanned<f64>>,
    pub(super) beta_ms: Option<Spanned<f64>>,
    pub(super) max_batch: Option<Spanned<i64>>,
    pub(super) csv: Option<Spanned<String>>,
    pub(super) model: Option<Spanned<String>>,
    pub(super) slice: Option<Spanned<String>>,
}
