//! The second layout with GPUs that have traded places, so that fewer must be cut anew.

use downbeat_mig::Placed;

use crate::case::{Case, CaseGpu, GpuIndex};

/// A case whose GPUs are to have each other's content: that of a GPU which is cut alike at the beginning, where there
/// is one.
pub(super) fn of(case: &Case) -> Case {
    let merit = |seat: &CaseGpu, content: &CaseGpu| {
        let shared = content.new.iter().filter(|pod| seat.old.contains(pod)).count();
        (has_room_for(case, seat, content), seat.number == content.number, shared)
    };
    let used: Vec<GpuIndex> = (0..case.gpus.len()).filter(|&gpu| !case.gpus[gpu].new.is_empty()).collect();
    let mut pairs = Vec::new();
    for &seat in &used {
        for &content in &used {
            let (at, of) = (&case.gpus[seat], &case.gpus[content]);
            if at.gpu_type == of.gpu_type {
                pairs.push((merit(at, of), seat, content));
            }
        }
    }
    pairs.sort_by(|a, b| b.0.cmp(&a.0).then((a.1, a.2).cmp(&(b.1, b.2))));
    let mut detour = case.clone();
    let (mut has_content, mut is_seated) = (vec![false; case.gpus.len()], vec![false; case.gpus.len()]);
    for (_, seat, content) in pairs {
        if !has_content[seat] && !is_seated[content] {
            (has_content[seat], is_seated[content]) = (true, true);
            detour.gpus[seat].new.clone_from(&case.gpus[content].new);
        }
    }
    detour
}

/// Whether a GPU is cut for what another is to have.
fn has_room_for(case: &Case, seat: &CaseGpu, content: &CaseGpu) -> bool {
    let slices: Vec<Placed> =
        seat.old.iter().map(|&pod| case.placed(pod)).chain(seat.idle.iter().copied()).collect();
    content.new.iter().all(|&pod| slices.contains(&case.placed(pod)))
}
