//! How few steps there can be.

use crate::case::{Case, Pod};
use crate::step::Driver;

/// Instances that must change, and GPUs that must be cut anew: no transition has fewer steps.
///
/// A step makes at most one instance come and one go, and both only where they are of a kind. So of each kind at least as many
/// steps are needed as instances must come, and as must go. With mig-parted everything on a GPU that is cut anew must go first.
pub(crate) fn lower_bound(case: &Case, driver: Driver) -> usize {
    let mut come = vec![0usize; case.kinds.len()];
    let mut go = vec![0usize; case.kinds.len()];
    let mut cuts = 0;
    for gpu in &case.gpus {
        let slices = gpu.old.iter().map(|&pod| case.placed(pod)).chain(gpu.idle.iter().copied());
        let slices: Vec<_> = slices.collect();
        let cut =
            driver == Driver::MigParted && gpu.new.iter().any(|&pod| !slices.contains(&case.placed(pod)));
        cuts += usize::from(cut);
        let only = |these: &[Pod], those: &[Pod], counts: &mut Vec<usize>| {
            for pod in these.iter().filter(|pod| cut || !those.contains(pod)) {
                counts[pod.kind] += 1;
            }
        };
        only(&gpu.new, &gpu.old, &mut come);
        only(&gpu.old, &gpu.new, &mut go);
    }
    cuts + come.into_iter().zip(go).map(|(come, go)| come.max(go)).sum::<usize>()
}
