//! Numbers for GPUs that come beside others.

use downbeat_plan::GpuLayout;

/// GPUs that are there, and others beside them: numbers that were used before first, then new ones on nodes of their
/// own.
pub(super) fn beside(there: Vec<GpuLayout>, more: Vec<GpuLayout>, known: &[GpuLayout]) -> Vec<GpuLayout> {
    let all = || there.iter().chain(known);
    let next_gpu = all().map(|gpu| gpu.gpu + 1).max().unwrap_or(0);
    let next_node = all().map(|gpu| gpu.node + 1).max().unwrap_or(0);
    let is_free = |gpu: &&GpuLayout| !there.iter().any(|there| there.gpu == gpu.gpu);
    let mut free: Vec<&GpuLayout> = known.iter().filter(is_free).collect();
    let numbered: Vec<GpuLayout> = more
        .into_iter()
        .map(|gpu| match free.iter().position(|free| free.gpu_type == gpu.gpu_type) {
            Some(index) => {
                let place = free.remove(index);
                GpuLayout { gpu: place.gpu, node: place.node, device: place.device, ..gpu }
            }
            None => GpuLayout { gpu: next_gpu + gpu.gpu, node: next_node + gpu.node, ..gpu },
        })
        .collect();
    let mut gpus: Vec<GpuLayout> = there.into_iter().chain(numbered).collect();
    gpus.sort_by_key(|gpu| gpu.gpu);
    gpus
}
