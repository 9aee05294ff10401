//! Where a transition stands that was not finished.

#[cfg(test)]
mod tests;

use crate::layout::{Gpu, Instance, Layout, ServiceName, Slice};
use crate::step::{Step, StepKind, Transition};

/// The layout after some steps have ended and some have failed, from which planning again finishes the job.
///
/// A failed step has done the least it may have done and cost the most it may have cost: an instance that was to come
/// is not there, one that was to go serves no more but is still in its slice, and slices that were to change are gone.
/// A failed migration leaves the instance where it was. Steps in neither list have not begun.
pub fn state_after(
    from: &Layout,
    transition: &Transition,
    ended: &[u32],
    failed: &[u32],
) -> Result<Layout, ResumeError> {
    let mut state = from.clone();
    for spare in &transition.spares {
        let (gpu, node, gpu_type) = (spare.gpu, spare.node, spare.gpu_type.clone());
        state.gpus.push(Gpu { gpu, node, gpu_type, instances: Vec::new(), idle: Vec::new() });
    }
    for id in ended.iter().chain(failed) {
        if !transition.steps.iter().any(|step| step.id == *id) {
            return Err(ResumeError::NoSuchStep { id: *id, last: transition.steps.len() });
        }
    }
    // GPUs that the first layout does not have are there as soon as something has been done to them.
    for step in &transition.steps {
        let (has_ended, has_failed) = (ended.contains(&step.id), failed.contains(&step.id));
        if !has_ended && !has_failed {
            continue;
        }
        if has_ended && has_failed {
            return Err(ResumeError::EndedAndFailed { id: step.id });
        }
        let unmet = step.after.iter().find(|before| !ended.contains(before));
        if let Some(&before) = unmet {
            return Err(ResumeError::TooEarly { id: step.id, before });
        }
        if !state.gpus.iter().any(|gpu| gpu.gpu == step.gpu) {
            let (gpu, node, gpu_type) = (step.gpu, step.node, step.gpu_type.clone());
            state.gpus.push(Gpu { gpu, node, gpu_type, instances: Vec::new(), idle: Vec::new() });
        }
        if has_ended {
            end(&mut state, step);
        } else {
            fail(&mut state, step);
        }
    }
    state.gpus.retain(|gpu| {
        from.gpus.iter().any(|old| old.gpu == gpu.gpu) || !gpu.instances.is_empty() || !gpu.idle.is_empty()
    });
    state.gpus.sort_by_key(|gpu| gpu.gpu);
    // What was said of the first layout no longer holds.
    state.services.iter_mut().for_each(|service| service.instances = None);
    for service in state.gpus.iter().flat_map(|gpu| &gpu.instances).map(|instance| instance.service.clone()) {
        if !state.services.iter().any(|known| known.name == service) {
            state.services.push(ServiceName::new(service));
        }
    }
    Ok(state)
}

/// Why a state cannot be told.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ResumeError {
    /// There is no such step.
    #[error("there is no step {id}; they are numbered from 1 to {last}")]
    NoSuchStep {
        /// As given.
        id: u32,
        /// The last there is.
        last: usize,
    },
    /// A step cannot have begun.
    #[error("step {id} waits for step {before}, which has not ended")]
    TooEarly {
        /// The step.
        id: u32,
        /// What it waits for.
        before: u32,
    },
    /// A step cannot be both.
    #[error("step {id} is said to have ended and to have failed")]
    EndedAndFailed {
        /// The step.
        id: u32,
    },
}

fn end(state: &mut Layout, step: &Step) {
    let source = step.from.as_ref().map_or(step.gpu, |from| from.gpu);
    if let Some(start) = match step.kind {
        StepKind::Delete => step.instance.as_ref().map(|instance| instance.start),
        StepKind::Migrate => step.from.as_ref().map(|from| from.start),
        StepKind::Create | StepKind::Repartition => None,
    } {
        stop(state, source, start);
    }
    remove_idle(state, source, &step.removes);
    let Some(gpu) = gpu(state, step.gpu) else { return };
    gpu.idle.extend(step.makes.iter().cloned());
    if let (StepKind::Create | StepKind::Migrate, Some(instance)) = (step.kind, &step.instance) {
        gpu.idle.retain(|slice| *slice != instance.slice());
        gpu.instances.push(instance.clone());
    }
}

fn fail(state: &mut Layout, step: &Step) {
    match (step.kind, &step.instance) {
        (StepKind::Delete, Some(instance)) => {
            let Some(gpu) = gpu(state, step.gpu) else { return };
            for running in gpu.instances.iter_mut().filter(|running| running.start == instance.start) {
                running.throughput_rps = 0.0;
            }
        }
        (StepKind::Repartition | StepKind::Create, _) => remove_idle(state, step.gpu, &step.removes),
        _ => {}
    }
}

/// An instance goes; its slice stays, idle.
fn stop(state: &mut Layout, number: u32, start: u8) {
    let Some(gpu) = gpu(state, number) else { return };
    let stopped: Vec<Slice> =
        gpu.instances.iter().filter(|instance| instance.start == start).map(Instance::slice).collect();
    gpu.instances.retain(|instance| instance.start != start);
    gpu.idle.extend(stopped);
}

fn remove_idle(state: &mut Layout, number: u32, slices: &[Slice]) {
    if let Some(gpu) = gpu(state, number) {
        gpu.idle.retain(|slice| !slices.contains(slice));
    }
}

fn gpu(state: &mut Layout, number: u32) -> Option<&mut Gpu> {
    state.gpus.iter_mut().find(|gpu| gpu.gpu == number)
}
