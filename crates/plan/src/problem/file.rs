//! The shape of a problem file.

use serde::Deserialize;
use toml::Spanned;

/// The whole file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ProblemFile {
    pub(super) gpu: Option<Spanned<String>>,
    pub(super) count: Option<Spanned<i64>>,
    pub(super) gpus_per_node: Option<Spanned<i64>>,
    pub(super) profiles: Option<Spanned<String>>,
    pub(super) device: Option<Spanned<String>>,
    pub(super) rule: Option<Spanned<String>>,
    pub(super) exclude_slices: Option<Vec<Spanned<String>>>,
    pub(super) include_slices: Option<Vec<Spanned<String>>>,
    pub(super) gpu_models: Option<Spanned<String>>,
    pub(super) pool: Option<Vec<Spanned<PoolFile>>>,
    pub(super) service: Option<Vec<Spanned<ServiceFile>>>,
}

/// `[[pool]]`
#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table with gpu")]
pub(super) struct PoolFile {
    pub(super) gpu: Spanned<String>,
    pub(super) count: Option<Spanned<i64>>,
    pub(super) cost: Option<Spanned<f64>>,
    pub(super) gpus_per_node: Option<Spanned<i64>>,
    pub(super) profiles: Option<Spanned<String>>,
    pub(super) device: Option<Spanned<String>>,
    pub(super) exclude_slices: Option<Vec<Spanned<String>>>,
    pub(super) include_slices: Option<Vec<Spanned<String>>>,
}

/// `[[service]]`
#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table with model, rate_rps and slo_ms")]
pub(super) struct ServiceFile {
    pub(super) name: Option<Spanned<String>>,
    pub(super) model: Spanned<String>,
    pub(super) rate_rps: Spanned<f64>,
    pub(super) slo_ms: Spanned<f64>,
    pub(super) min_replicas: Option<Spanned<i64>>,
    pub(super) memory_mib: Option<Spanned<f64>>,
}
