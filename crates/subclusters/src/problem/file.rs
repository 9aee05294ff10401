//! The shape of a problem file. Every value carries its place in the text, for messages.

use serde::Deserialize;
use toml::Spanned;

/// The whole file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ProblemFile {
    pub(super) gpu: Option<Spanned<String>>,
    pub(super) gpu_memory_mib: Option<Spanned<f64>>,
    pub(super) gpus: Option<Spanned<i64>>,
    pub(super) slices: Option<Spanned<Vec<Spanned<String>>>>,
    pub(super) profiles: Option<Spanned<String>>,
    pub(super) device: Option<Spanned<String>>,
    pub(super) model: Option<Vec<Spanned<ModelFile>>>,
}

/// `[[model]]`
#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table with name, rate_rps and slo_ms")]
pub(super) struct ModelFile {
    pub(super) name: Spanned<String>,
    pub(super) rate_rps: Spanned<f64>,
    pub(super) slo_ms: Spanned<f64>,
    pub(super) measured: Option<Spanned<String>>,
    pub(super) profile: Option<Spanned<ProfileEntry>>,
    pub(super) weights_mib: Option<Spanned<f64>>,
    pub(super) activation_mib: Option<Spanned<f64>>,
}

/// `profile = { alpha_ms = ..., beta_ms = ..., max_batch = ... }`
#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table such as { alpha_ms = 1, beta_ms = 5, max_batch = 8 }")]
pub(super) struct ProfileEntry {
    pub(super) alpha_ms: Spanned<f64>,
    pub(super) beta_ms: Spanned<f64>,
    pub(super) max_batch: Spanned<i64>,
}
