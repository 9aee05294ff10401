//! A layout: which GPUs there are, how they are cut and what runs where.
//!
//! The JSON of `downbeat plan` is one; what a plan says beyond its layout is ignored, but for how many instances each
//! service has: a plan that contradicts itself is none. The state that a half-done transition leaves
//! ([`state_after`](crate::state_after)) is one too; it may hold slices in which nothing runs.

use serde::{Deserialize, Serialize};

/// Everything that runs on a cluster.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Layout {
    /// The GPUs.
    #[serde(rename = "layout")]
    pub gpus: Vec<Gpu>,
    /// The services, those without an instance included.
    #[serde(default)]
    pub services: Vec<ServiceName>,
}

/// A service.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServiceName {
    /// Its name.
    pub name: String,
    /// How many instances it has, where a plan says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instances: Option<u32>,
}

impl ServiceName {
    /// A service of which nothing else is said.
    pub fn new(name: impl Into<String>) -> ServiceName {
        ServiceName { name: name.into(), instances: None }
    }
}

/// One GPU.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Gpu {
    /// Its number.
    pub gpu: u32,
    /// The number of its node.
    pub node: u32,
    /// The GPU model.
    #[serde(rename = "type")]
    pub gpu_type: String,
    /// What runs on it.
    pub instances: Vec<Instance>,
    /// Slices that exist and hold nothing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub idle: Vec<Slice>,
}

/// A slice and what runs in it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Instance {
    /// The slice profile: `3g.71gb`.
    pub profile: String,
    /// The memory unit it begins at.
    pub start: u8,
    /// The service.
    pub service: String,
    /// Its model.
    #[serde(default)]
    pub model: String,
    /// The batch it is planned to run.
    #[serde(default)]
    pub batch: u32,
    /// What it is counted to serve.
    pub throughput_rps: f64,
}

/// A slice at its place.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Slice {
    /// The slice profile.
    pub profile: String,
    /// The memory unit it begins at.
    pub start: u8,
}

impl Instance {
    /// The slice it runs in.
    pub fn slice(&self) -> Slice {
        Slice { profile: self.profile.clone(), start: self.start }
    }
}

impl Layout {
    /// Reads the JSON of a plan or of a state.
    pub fn parse(json: &str) -> Result<Layout, serde_json::Error> {
        serde_json::from_str(json)
    }

    /// How many instances there are.
    pub fn instance_count(&self) -> usize {
        self.gpus.iter().map(|gpu| gpu.instances.len()).sum()
    }
}
