//! A plan as it is written down: what the next epoch, the operator and people read.

use downbeat_milp::Backend;
use serde::{Deserialize, Serialize};

use crate::headroom::outlook;
use crate::infeasible::Unsolved;
use crate::layout::{self, SlicedGpu};
use crate::previous::Previous;
use crate::problem::Problem;
use crate::solve::{Solution, Subcluster};

/// Which models share which GPUs, with how good that is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// The problem's name.
    pub problem: String,
    /// How many GPUs it takes.
    pub gpus: u32,
    /// How many it takes by the estimate of needs, before simulation.
    pub estimated_gpus: u32,
    /// How many there are, where that was said.
    pub gpus_available: Option<u32>,
    /// No division takes fewer than this, by the estimate; what sizes become in simulation is another matter.
    pub lower_bound: u32,
    /// How that is known.
    pub bound_name: String,
    /// How many of the estimated GPUs could be saved at most, as a share.
    pub gap: f64,
    /// Whether the division is proved to take the fewest GPUs, by the estimate.
    pub proved_optimal: bool,
    /// Who found the division: `heuristic` or `exact`.
    pub algorithm: String,
    /// How long planning took.
    pub seconds: f64,
    /// Whether every sub-cluster's size was confirmed by simulation.
    pub confirmed: bool,
    /// The sub-clusters.
    pub subclusters: Vec<SubclusterPlan>,
    /// Every model, in the problem's order.
    pub models: Vec<ModelPlan>,
    /// The models that move, since the last epoch.
    pub moved: Vec<Move>,
    /// The GPUs that are cut into slices; empty where whole ones are used.
    pub layout: Vec<SlicedGpu>,
    /// What is to be known before it is believed.
    pub notes: Vec<String>,
}

/// One sub-cluster.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SubclusterPlan {
    /// Its name.
    pub name: String,
    /// What it is made of: `gpu`, or a slice such as `2g.35gb`.
    pub device: String,
    /// How many of them.
    pub count: u32,
    /// How many the estimate asked for, before simulation.
    pub estimated: u32,
    /// The names of its models.
    pub models: Vec<String>,
    /// The requests per second of all its models.
    pub rate_rps: f64,
    /// What its models take of each device's memory: all weights, and the largest activation.
    pub memory_mib: f64,
    /// The memory of a device.
    pub device_memory_mib: f64,
    /// How much of what its devices carry is taken.
    pub load: f64,
    /// Its longest batch, as planned.
    pub rhythm_ms: f64,
}

/// One model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ModelPlan {
    /// Its name.
    pub name: String,
    /// Its sub-cluster.
    pub subcluster: String,
    /// Requests per second.
    pub rate_rps: f64,
    /// From arrival to response.
    pub slo_ms: f64,
    /// By which factor its rate may grow, all others staying as they are, before its sub-cluster is too small.
    pub headroom: f64,
    /// The batch it is expected to fill.
    pub batch: u32,
    /// The devices it keeps busy.
    pub load: f64,
}

/// A model that is elsewhere than in the last epoch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Move {
    /// The model.
    pub model: String,
    /// Where it was.
    pub from: String,
    /// Where it is to be.
    pub to: String,
}

impl Plan {
    /// Writes down a solution whose sub-clusters have these sizes: those of the solution, or those that a simulation
    /// asked for.
    pub fn new(
        problem: &Problem,
        solution: &Solution,
        previous: Option<&Previous>,
        counts: &[u32],
        backend: &Backend,
    ) -> Result<Plan, Unsolved> {
        let per_gpu = u64::from(problem.units_per_gpu);
        let wanted = |counts: &[u32]| -> Vec<(String, usize, u32)> {
            (solution.subclusters.iter().zip(counts))
                .map(|(subcluster, &count)| (subcluster.name.clone(), subcluster.device, count))
                .collect()
        };
        let estimates: Vec<u32> = solution.subclusters.iter().map(|subcluster| subcluster.count).collect();
        let (layout, gpus, estimated_gpus) = if problem.is_sliced() {
            let layout = layout::cut(problem, &wanted(counts), backend)?;
            let gpus = layout.len() as u32;
            (layout, gpus, layout::cut(problem, &wanted(&estimates), backend)?.len() as u32)
        } else {
            (Vec::new(), counts.iter().sum(), estimates.iter().sum())
        };
        let lower_bound = solution.bound_units.div_ceil(per_gpu) as u32;
        let mut models: Vec<Option<ModelPlan>> = vec![None; problem.models.len()];
        let mut subclusters = Vec::new();
        for (subcluster, &count) in solution.subclusters.iter().zip(counts) {
            subclusters.push(written(problem, subcluster, count, &mut models));
        }
        let models: Vec<ModelPlan> = models.into_iter().flatten().collect();
        let moved = solution.moved.iter().filter_map(|&model| {
            let ModelPlan { name, subcluster, .. } = &models[model];
            let old = previous?.subclusters.iter().find(|old| old.models.contains(name))?;
            Some(Move { model: name.clone(), from: old.name.clone(), to: subcluster.clone() })
        });
        Ok(Plan {
            problem: problem.name.clone(),
            gpus,
            estimated_gpus,
            gpus_available: problem.gpus,
            lower_bound,
            bound_name: solution.bound_name.to_owned(),
            gap: f64::from(estimated_gpus.saturating_sub(lower_bound)) / f64::from(estimated_gpus.max(1)),
            proved_optimal: estimated_gpus == lower_bound,
            algorithm: solution.algorithm.to_owned(),
            seconds: 0.0,
            confirmed: false,
            subclusters,
            moved: moved.collect(),
            models,
            layout,
            notes: problem.notes.clone(),
        })
    }
}

fn written(
    problem: &Problem,
    subcluster: &Subcluster,
    count: u32,
    models: &mut [Option<ModelPlan>],
) -> SubclusterPlan {
    let outlook = outlook(problem, subcluster, count);
    let own = || subcluster.models.iter().map(|&model| &problem.models[model]);
    for (&index, place) in subcluster.models.iter().zip(&outlook.models) {
        let model = &problem.models[index];
        models[index] = Some(ModelPlan {
            name: model.name.clone(),
            subcluster: subcluster.name.clone(),
            rate_rps: model.rate_rps,
            slo_ms: model.slo_ms,
            headroom: place.headroom,
            batch: place.batch,
            load: place.load,
        });
    }
    let device = &problem.devices[subcluster.device];
    SubclusterPlan {
        name: subcluster.name.clone(),
        device: device.name.clone(),
        count,
        estimated: subcluster.count,
        models: own().map(|model| model.name.clone()).collect(),
        rate_rps: own().map(|model| model.rate_rps).sum(),
        memory_mib: own().map(|model| model.weights_mib).sum::<f64>()
            + own().map(|model| model.activation_mib).fold(0.0, f64::max),
        device_memory_mib: device.memory_mib,
        load: outlook.load_share,
        rhythm_ms: outlook.rhythm_ms,
    }
}
