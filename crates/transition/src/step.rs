//! The steps of a transition, as they are written down: what the operator carries out and the replayer checks.

use serde::{Deserialize, Serialize};

use crate::layout::{Instance, Slice};

/// What is to be done, in which order, and how long it is expected to take.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Transition {
    /// What changes the GPUs' slices.
    pub driver: Driver,
    /// The steps. Each comes after those that it waits for.
    pub steps: Vec<Step>,
    /// GPUs that are in neither layout and are needed on the way.
    pub spares: Vec<SpareGpu>,
    /// Whether it was proved that fewer spares cannot do. Where it was not, nobody has found a way with fewer.
    #[serde(default)]
    pub spares_are_fewest: bool,
    /// Instances that must change, and GPUs that must be repartitioned.
    #[serde(default)]
    pub must_change: usize,
    /// No transition between the layouts has fewer steps: those, and one for each circle of instances that wait for one
    /// another.
    pub lower_bound: usize,
    /// How long it takes when every step begins as soon as it may.
    pub expected_s: f64,
    /// The steps, by id, that decide how long it takes; one after the other.
    pub critical_path: Vec<u32>,
    /// How many rounds of making room were needed.
    pub rounds: usize,
    /// GPUs of the second layout that have changed numbers: (there, in the steps).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub renumbered: Vec<(u32, u32)>,
    /// What is to be known before it is believed.
    pub notes: Vec<String>,
}

/// What changes the GPUs' slices, and how finely.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Driver {
    /// NVML: one slice at a time, beside others that run on.
    Nvml,
    /// mig-parted: the slices of a whole GPU at once, and nothing may run on it meanwhile.
    MigParted,
}

/// A GPU that is needed on the way only.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SpareGpu {
    /// The number it is given.
    pub gpu: u32,
    /// The number its node is given.
    pub node: u32,
    /// The GPU model.
    #[serde(rename = "type")]
    pub gpu_type: String,
}

/// What a step does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StepKind {
    /// Starts an instance. It serves when the step has ended.
    Create,
    /// Stops an instance. It serves no more when the step begins.
    Delete,
    /// Starts an instance elsewhere and stops the old one when the new one serves.
    Migrate,
    /// Changes a GPU's slices.
    Repartition,
}

/// Which part of exchange-and-compact a step belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Phase {
    /// Changes which instances there are.
    Exchange,
    /// Changes where they are.
    Compact,
}

/// One step. Begins when all of `after` have ended, beside whatever else is under way.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Step {
    /// Its number, from 1.
    pub id: u32,
    /// What it does.
    pub kind: StepKind,
    /// The part of exchange-and-compact it belongs to.
    pub phase: Phase,
    /// The GPU; for a migration the one that the instance comes to.
    pub gpu: u32,
    /// Its node.
    pub node: u32,
    /// Its model.
    #[serde(rename = "type")]
    pub gpu_type: String,
    /// The instance that is started or stopped. For a migration, as it is after it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instance: Option<Instance>,
    /// For a migration, where the instance comes from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<Source>,
    /// Slices that go: with a deletion or a migration (from its source) when it ends, otherwise when it begins.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub removes: Vec<Slice>,
    /// Slices that come, on `gpu`: with a repartition when it ends, otherwise when it begins.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub makes: Vec<Slice>,
    /// The steps that must have ended before it begins.
    pub after: Vec<u32>,
    /// Why it is there.
    pub why: String,
    /// How long it is expected to take.
    pub expected_s: f64,
    /// When it begins, if all goes as expected.
    pub start_s: f64,
    /// When it ends, if all goes as expected.
    pub end_s: f64,
    /// By how much it may be late without the whole being late.
    pub slack_s: f64,
}

/// Where an instance was.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Source {
    /// The GPU.
    pub gpu: u32,
    /// Its node.
    pub node: u32,
    /// The memory unit it began at.
    pub start: u8,
}

impl Step {
    /// What it does, in words.
    pub fn describe(&self) -> String {
        let slices = |slices: &[Slice]| -> String {
            let names: Vec<String> =
                slices.iter().map(|slice| format!("{}@{}", slice.profile, slice.start)).collect();
            if names.is_empty() { "nothing".to_owned() } else { names.join(" ") }
        };
        let Some(instance) = &self.instance else {
            return format!("repartition GPU {} into {}", self.gpu, slices(&self.makes));
        };
        let what = format!("{} {}", instance.profile, instance.service);
        match (self.kind, &self.from) {
            (StepKind::Migrate, Some(from)) => {
                let local = if from.node == self.node { "" } else { " on another node" };
                format!(
                    "migrate {what} from GPU {}@{} to GPU {}@{}{local}",
                    from.gpu, from.start, self.gpu, instance.start
                )
            }
            (StepKind::Delete, _) => format!("delete {what} on GPU {}@{}", self.gpu, instance.start),
            _ => format!("create {what} on GPU {}@{}", self.gpu, instance.start),
        }
    }
}
