//! GPUs of a type may trade places: which of them, so that most stays as it is?

use crate::layout::{Gpu, Layout};

/// Permutes the contents of `to`'s GPUs within each type so that more of them is already there in `from`; returns which
/// numbers changed, as (before, after). The set of GPUs in use stays the same.
///
/// Contents are dealt greedily, the pair with most in common first: whole GPUs that stay untouched are found first, and
/// those are worth most.
pub(super) fn renumber(from: &Layout, to: &mut Layout) -> Vec<(u32, u32)> {
    let common = |seat: &Gpu, content: &Gpu| -> (bool, usize) {
        let old = from.gpus.iter().find(|old| old.gpu == seat.gpu);
        let old = old.map_or(&[][..], |old| &old.instances);
        let same = |instance: &&crate::layout::Instance| {
            old.iter().any(|old| {
                old.start == instance.start
                    && old.profile == instance.profile
                    && old.service == instance.service
                    && old.model == instance.model
            })
        };
        let shared = content.instances.iter().filter(same).count();
        (shared == old.len() && shared == content.instances.len(), shared)
    };
    let mut pairs = Vec::new();
    for (seat, gpu) in to.gpus.iter().enumerate() {
        for (content, other) in to.gpus.iter().enumerate().filter(|(_, other)| other.gpu_type == gpu.gpu_type)
        {
            pairs.push((common(gpu, other), seat == content, seat, content));
        }
    }
    // Most in common first; where that is equal, what keeps its number.
    pairs.sort_by(|a, b| b.0.cmp(&a.0).then(b.1.cmp(&a.1)).then((a.2, a.3).cmp(&(b.2, b.3))));
    let mut content_of = vec![None; to.gpus.len()];
    let mut seated = vec![false; to.gpus.len()];
    for (_, _, seat, content) in pairs {
        if content_of[seat].is_none() && !seated[content] {
            content_of[seat] = Some(content);
            seated[content] = true;
        }
    }
    let before = to.gpus.clone();
    let mut changed = Vec::new();
    for (seat, content) in content_of.into_iter().enumerate() {
        let content = content.unwrap_or(seat);
        if content != seat {
            changed.push((before[content].gpu, before[seat].gpu));
            to.gpus[seat].instances = before[content].instances.clone();
        }
    }
    changed
}
