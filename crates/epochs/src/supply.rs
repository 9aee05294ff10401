//! What a layout serves, counted as the planner counts.

use downbeat_plan::{GpuLayout, Problem};
use downbeat_transition::{Gpu, Instance, Layout, ServiceName};

/// How many instances each service has of each kind of slice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Supply {
    /// By service, then by kind of slice.
    counts: Vec<Vec<u32>>,
}

impl Supply {
    /// Nothing.
    pub fn none(problem: &Problem) -> Supply {
        Supply { counts: vec![vec![0; problem.slices.len()]; problem.services.len()] }
    }

    /// What a layout has. Instances that serve nothing, because stopping them failed, are not counted, nor what the
    /// problem does not know.
    pub fn of(problem: &Problem, layout: &Layout) -> Supply {
        let mut supply = Supply::none(problem);
        for gpu in &layout.gpus {
            for instance in gpu.instances.iter().filter(|instance| instance.throughput_rps > 0.0) {
                if let Some((service, slice)) = kind(problem, &gpu.gpu_type, instance) {
                    supply.counts[service][slice] += 1;
                }
            }
        }
        supply
    }

    /// One instance more.
    pub fn add(&mut self, service: usize, slice: usize) {
        self.counts[service][slice] += 1;
    }

    /// The requests per second that it serves of a service.
    pub fn rps(&self, problem: &Problem, service: usize) -> f64 {
        problem.capacity(service, &self.counts[service])
    }

    /// The instances of a service.
    pub fn instances(&self, service: usize) -> u32 {
        self.counts[service].iter().sum()
    }
}

/// The indices of an instance's service and kind of slice.
pub fn kind(problem: &Problem, gpu_type: &str, instance: &Instance) -> Option<(usize, usize)> {
    let service = problem.services.iter().position(|service| service.name == instance.service)?;
    let own = |slice: &usize| {
        problem.pools[problem.slices[*slice].pool].gpu.name == gpu_type
            && problem.slice_name(*slice) == instance.profile
    };
    Some((service, (0..problem.slices.len()).find(own)?))
}

/// A plan's layout in the terms of transitions.
pub(crate) fn layout_of(problem: &Problem, gpus: &[GpuLayout]) -> Layout {
    let instance = |instance: &downbeat_plan::Instance| Instance {
        profile: instance.profile.clone(),
        start: instance.start,
        service: instance.service.clone(),
        model: instance.model.clone(),
        batch: instance.batch,
        throughput_rps: instance.throughput_rps,
    };
    let gpu = |gpu: &GpuLayout| Gpu {
        gpu: gpu.gpu,
        node: gpu.node,
        gpu_type: gpu.gpu_type.clone(),
        instances: gpu.instances.iter().map(instance).collect(),
        idle: Vec::new(),
    };
    Layout { gpus: gpus.iter().map(gpu).collect(), services: names(problem) }
}

/// A layout in the terms of plans. What serves nothing is left out: nobody wants to keep it.
pub(crate) fn gpus_of(layout: &Layout) -> Vec<GpuLayout> {
    let instance = |instance: &Instance| downbeat_plan::Instance {
        profile: instance.profile.clone(),
        start: instance.start,
        service: instance.service.clone(),
        model: instance.model.clone(),
        batch: instance.batch,
        throughput_rps: instance.throughput_rps,
    };
    let serves = |instance: &&Instance| instance.throughput_rps > 0.0;
    let gpu = |gpu: &Gpu| GpuLayout {
        gpu: gpu.gpu,
        node: gpu.node,
        device: None,
        gpu_type: gpu.gpu_type.clone(),
        instances: gpu.instances.iter().filter(serves).map(instance).collect(),
    };
    layout.gpus.iter().map(gpu).collect()
}

/// Every service, whether it has an instance or not.
pub(crate) fn names(problem: &Problem) -> Vec<ServiceName> {
    problem.services.iter().map(|service| ServiceName::new(service.name.clone())).collect()
}
