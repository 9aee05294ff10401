//! The layout that a plan begins from, as far as it can be believed: it is a file, and people edit files.

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use downbeat_mig::Placed;

use crate::plan::GpuLayout;
use crate::problem::Problem;

/// The layout without what cannot be, and a line for each GPU that this concerns.
///
/// Of GPUs with one number the first counts. A GPU whose slices cannot lie as they are said to is there, but nothing on
/// it stays.
pub(crate) fn believed(problem: &Problem, from: &[GpuLayout]) -> (Vec<GpuLayout>, Vec<String>) {
    let mut numbers = BTreeSet::new();
    let mut notes = Vec::new();
    let mut gpus = Vec::new();
    for gpu in from {
        if !numbers.insert(gpu.gpu) {
            notes.push(format!("the older plan has GPU {} twice; the second is left out", gpu.gpu));
        } else if is_possible(problem, gpu) {
            gpus.push(gpu.clone());
        } else {
            notes.push(format!(
                "the older plan has slices on GPU {} that cannot lie so on {}; it is cut anew",
                gpu.gpu, gpu.gpu_type
            ));
            gpus.push(GpuLayout { instances: Vec::new(), ..gpu.clone() });
        }
    }
    (gpus, notes)
}

/// Whether slices can lie so. Of types and slices that the problem does not know, nothing is known, and nothing stays.
fn is_possible(problem: &Problem, gpu: &GpuLayout) -> bool {
    let Some(pool) = problem.pools.iter().find(|pool| pool.gpu.name == gpu.gpu_type) else { return true };
    let place = |instance: &crate::plan::Instance| {
        let profile = pool.gpu.profiles.iter().position(|profile| profile.name == instance.profile)?;
        Some(Placed { start: instance.start, profile })
    };
    let placed: Option<Vec<Placed>> = gpu.instances.iter().map(place).collect();
    placed.is_none_or(|placed| pool.gpu.allows(&placed))
}
