//! Is a layout one that can be?

use std::collections::{BTreeMap, BTreeSet};

use downbeat_mig::{Catalogue, GpuModel, Placed};

use super::{CaseError, Comparison};
use crate::layout::{Gpu, Layout};

/// A GPU whose names have been looked up.
#[derive(Clone, Debug)]
pub(super) struct CheckedGpu {
    pub(super) number: u32,
    pub(super) node: u32,
    pub(super) model: GpuModel,
    pub(super) instances: Vec<CheckedInstance>,
    pub(super) idle: Vec<Placed>,
}

#[derive(Clone, Debug)]
pub(super) struct CheckedInstance {
    pub(super) placed: Placed,
    pub(super) service: String,
    pub(super) model: String,
    pub(super) batch: u32,
    pub(super) throughput_rps: f64,
}

/// The most that an instance may be counted to serve; more is a slip, and could not be summed exactly.
const MOST_RPS: f64 = 1e9;

/// Checks one layout: GPUs known and named once, slices known and legally placed, throughputs numbers.
pub(super) fn check(layout: &Layout, side: &'static str, catalogue: &Catalogue) -> Result<(), CaseError> {
    let mut seen = BTreeSet::new();
    for gpu in &layout.gpus {
        let wrong = |what: String| CaseError::IllegalLayout { side, gpu: gpu.gpu, what };
        if !seen.insert(gpu.gpu) {
            return Err(wrong("it is there twice".to_owned()));
        }
        let model = catalogue.find(&gpu.gpu_type).map_err(|cause| CaseError::UnknownGpu { side, cause })?;
        check_slices(gpu, model).map_err(wrong)?;
        for instance in &gpu.instances {
            let rate = instance.throughput_rps;
            if !(0.0..=MOST_RPS).contains(&rate) {
                return Err(wrong(format!(
                    "{} of {:?} is counted for {rate} requests per second; that is not a throughput",
                    instance.profile, instance.service
                )));
            }
            if instance.service.is_empty() {
                return Err(wrong(format!("the {} at {} has no service", instance.profile, instance.start)));
            }
        }
    }
    check_services(layout, side)
}

/// Whether each service has as many instances as is said of it.
fn check_services(layout: &Layout, side: &'static str) -> Result<(), CaseError> {
    let mut there: BTreeMap<&str, u32> = BTreeMap::new();
    for instance in layout.gpus.iter().flat_map(|gpu| &gpu.instances) {
        *there.entry(&instance.service).or_default() += 1;
    }
    for service in &layout.services {
        let there = there.get(service.name.as_str()).copied().unwrap_or(0);
        if let Some(listed) = service.instances.filter(|&listed| listed != there) {
            return Err(CaseError::Contradiction { side, service: service.name.clone(), listed, there });
        }
    }
    Ok(())
}

fn check_slices(gpu: &Gpu, model: &GpuModel) -> Result<(), String> {
    let mut placed: Vec<Placed> = Vec::new();
    let slices = gpu.instances.iter().map(crate::layout::Instance::slice).chain(gpu.idle.iter().cloned());
    for slice in slices {
        let Some(profile) = exact(model, &slice.profile) else {
            let known: Vec<&str> = model.profiles.iter().map(|profile| profile.name.as_str()).collect();
            return Err(format!(
                "{} has no slice {:?}; it has {}",
                model.name,
                slice.profile,
                known.join(", ")
            ));
        };
        let found = &model.profiles[profile];
        if !found.starts.contains(&slice.start) {
            return Err(format!(
                "{} may not begin at {}, only at {:?}",
                found.name, slice.start, found.starts
            ));
        }
        let ends = |other: &Placed| other.start + model.profiles[other.profile].size;
        let clash =
            placed.iter().find(|other| other.start < slice.start + found.size && slice.start < ends(other));
        if let Some(other) = clash {
            return Err(format!(
                "{} at {} and {} at {} overlap",
                model.profiles[other.profile].name, other.start, found.name, slice.start
            ));
        }
        placed.push(Placed { start: slice.start, profile });
        if !model.allows(&placed) {
            return Err(format!(
                "its slices are more than {} allows ({} compute slices, at most {} of {})",
                model.name, model.compute, found.most, found.name
            ));
        }
    }
    Ok(())
}

/// Checks that two layouts can be of one cluster.
pub(super) fn check_together(from: &Layout, to: &Layout, comparison: Comparison) -> Result<(), CaseError> {
    let types = |layout: &Layout| -> BTreeSet<String> {
        layout.gpus.iter().map(|gpu| gpu.gpu_type.clone()).collect()
    };
    let (first, second) = (types(from), types(to));
    // A layout without GPUs is for any.
    if first != second && !first.is_empty() && !second.is_empty() {
        let listed = |types: BTreeSet<String>| types.into_iter().collect::<Vec<_>>().join(", ");
        return Err(CaseError::DifferentTypes { first: listed(first), second: listed(second) });
    }
    for new in &to.gpus {
        let Some(old) = from.gpus.iter().find(|old| old.gpu == new.gpu) else { continue };
        let differ = |first: String, second: String| CaseError::DifferentGpu { gpu: new.gpu, first, second };
        if old.gpu_type != new.gpu_type {
            return Err(differ(old.gpu_type.clone(), new.gpu_type.clone()));
        }
        if old.node != new.node {
            return Err(differ(format!("on node {}", old.node), format!("on node {}", new.node)));
        }
    }
    let (first, second) = (named(from), named(to));
    let only =
        |these: &BTreeSet<String>, those: &BTreeSet<String>| these.difference(those).cloned().collect();
    if first != second && !comparison.services_may_differ {
        let (only_first, only_second) = (only(&first, &second), only(&second, &first));
        return Err(CaseError::DifferentServices { only_first, only_second });
    }
    Ok(())
}

fn named(layout: &Layout) -> BTreeSet<String> {
    let listed = layout.services.iter().map(|service| &service.name);
    let running = layout.gpus.iter().flat_map(|gpu| &gpu.instances).map(|instance| &instance.service);
    listed.chain(running).cloned().collect()
}

/// The services of both layouts, in order.
pub(super) fn services(from: &Layout, to: &Layout) -> Vec<String> {
    named(from).union(&named(to)).cloned().collect()
}

/// A checked layout's GPUs, names looked up.
pub(super) fn gpus(layout: &Layout, catalogue: &Catalogue) -> Vec<CheckedGpu> {
    let checked = |gpu: &Gpu| {
        let model = catalogue.find(&gpu.gpu_type).ok()?;
        let placed = |name: &str, start| Some(Placed { start, profile: exact(model, name)? });
        let instance = |instance: &crate::layout::Instance| {
            Some(CheckedInstance {
                placed: placed(&instance.profile, instance.start)?,
                service: instance.service.clone(),
                model: instance.model.clone(),
                batch: instance.batch,
                throughput_rps: instance.throughput_rps,
            })
        };
        Some(CheckedGpu {
            number: gpu.gpu,
            node: gpu.node,
            model: model.clone(),
            instances: gpu.instances.iter().filter_map(instance).collect(),
            idle: gpu.idle.iter().filter_map(|slice| placed(&slice.profile, slice.start)).collect(),
        })
    };
    layout.gpus.iter().filter_map(checked).collect()
}

/// Layouts are written by programs, which name slices in full.
fn exact(model: &GpuModel, name: &str) -> Option<usize> {
    model.profiles.iter().position(|profile| profile.name == name)
}
