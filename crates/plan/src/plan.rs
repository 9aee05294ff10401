//! A plan as it is written down: what `downbeat transition` and the operator read.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::problem::Problem;
use crate::solver::{Allocation, Bound};

/// Which GPUs there are, how they are cut and what runs where, with a certificate of how good that is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// The problem's name.
    pub problem: String,
    /// The rule that throughput was counted by.
    pub rule: String,
    /// How many GPUs it takes.
    pub gpus: u32,
    /// What they cost, in the units of the problem; the number of GPUs where all cost the same 1.
    pub cost: f64,
    /// Whether it is `gpus` or `cost` that was made as small as possible, and that the bound is of.
    pub objective: Objective,
    /// No plan has less of the objective.
    pub lower_bound: f64,
    /// How that is known.
    pub bound_name: String,
    /// Whether the bound is reached.
    pub proved_optimal: bool,
    /// How much of the objective could be saved at most, as a share.
    pub gap: f64,
    /// How long planning took.
    pub seconds: f64,
    /// The solver.
    pub algorithm: String,
    /// Every GPU.
    pub layout: Vec<GpuLayout>,
    /// Every service.
    pub services: Vec<ServiceSupply>,
    /// What is to be known before it is believed.
    pub notes: Vec<String>,
}

/// What is made as small as possible.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Objective {
    /// The number of GPUs.
    Gpus,
    /// Their cost.
    Cost,
}

/// One GPU.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GpuLayout {
    /// Its number.
    pub gpu: u32,
    /// The number of its node.
    pub node: u32,
    /// Its index among its node's GPUs, as the driver counts them; plans of before this was written down do not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<u32>,
    /// The GPU model.
    #[serde(rename = "type")]
    pub gpu_type: String,
    /// What runs on it, by start.
    pub instances: Vec<Instance>,
}

/// Gives GPUs that do not say their index within their node the first ones that are free there, in the order of their
/// numbers: right for a whole layout, as it was first planned.
pub fn number_devices(layout: &mut [GpuLayout]) {
    let mut taken: BTreeSet<(u32, u32)> =
        layout.iter().filter_map(|gpu| Some((gpu.node, gpu.device?))).collect();
    let mut unnumbered: Vec<&mut GpuLayout> = layout.iter_mut().filter(|gpu| gpu.device.is_none()).collect();
    unnumbered.sort_by_key(|gpu| gpu.gpu);
    for gpu in unnumbered {
        gpu.device = (0..).find(|&device| taken.insert((gpu.node, device)));
    }
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
    pub model: String,
    /// The batch it is planned to run.
    pub batch: u32,
    /// What it is counted to serve.
    pub throughput_rps: f64,
}

/// What a service asks for and gets.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ServiceSupply {
    /// The service.
    pub name: String,
    /// Its model.
    pub model: String,
    /// What it is asked for.
    pub demand_rps: f64,
    /// What it gets.
    pub provided_rps: f64,
    /// Its latency objective.
    pub slo_ms: f64,
    /// How many instances it has.
    pub instances: u32,
    /// What was planned for over the demand; 1 unless a replay asked for more.
    #[serde(default = "one")]
    pub headroom: f64,
}

fn one() -> f64 {
    1.0
}

impl Plan {
    /// Writes down an allocation whose instances lie as in `layout`.
    pub(crate) fn new(
        problem: &Problem,
        allocation: &Allocation,
        bound: Bound,
        algorithm: &str,
        layout: Vec<GpuLayout>,
        mut notes: Vec<String>,
    ) -> Plan {
        let cost = allocation.cost(problem);
        let gap = if cost > 0.0 { ((cost - bound.cost) / cost).max(0.0) } else { 0.0 };
        let proved = gap <= 1e-9;
        let per_gpu = if problem.minimises_cost() { 1.0 } else { problem.pools[0].cost };
        notes.extend(problem.notes.iter().cloned());
        let services = (problem.services.iter().zip(&allocation.instances).enumerate())
            .map(|(index, (service, counts))| ServiceSupply {
                name: service.name.clone(),
                model: service.model.clone(),
                demand_rps: service.rate_rps,
                provided_rps: problem.capacity(index, counts),
                slo_ms: service.slo_ms,
                instances: counts.iter().sum(),
                headroom: service.headroom,
            })
            .collect();
        Plan {
            problem: problem.name.clone(),
            rule: problem.rule.to_string(),
            gpus: allocation.gpu_count(),
            cost,
            objective: if problem.minimises_cost() { Objective::Cost } else { Objective::Gpus },
            lower_bound: (bound.cost / per_gpu * 1e9).round() / 1e9,
            bound_name: bound.name.to_owned(),
            proved_optimal: proved,
            gap: if proved { 0.0 } else { gap },
            seconds: 0.0,
            algorithm: algorithm.to_owned(),
            layout,
            services,
            notes,
        }
    }
}
