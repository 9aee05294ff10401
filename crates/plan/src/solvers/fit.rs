//! All that lacks, fitted at once: for each service the cheapest slices that serve the rest of it, packed on GPUs.
//!
//! Not the best plan, but a good one in milliseconds, however many GPUs it takes.

use super::deployment::{Deployment, Filled};
use crate::prices::cover;
use crate::problem::Problem;

/// Adds GPUs to `state` for all that it lacks, with the slices that are the cheapest at these prices. The GPUs added;
/// `None` where a service is left lacking, because pools have too few.
pub(crate) fn fit_rest(state: &mut Deployment<'_>, prices: &[f64]) -> Option<Vec<Filled>> {
    let problem = state.problem;
    let mut waiting: Vec<Vec<usize>> = vec![Vec::new(); problem.slices.len()];
    for service in state.unsatisfied() {
        let has = &state.allocation.instances[service];
        let pattern = cover::cheapest_rest(problem, service, has, prices)?;
        for (slice, &count) in pattern.counts.iter().enumerate() {
            waiting[slice].extend(std::iter::repeat_n(service, count as usize));
        }
    }
    let added = pack(problem, prices, waiting, state.left_in_pool.clone());
    for gpu in &added {
        state.add(gpu);
    }
    (!state.is_lacking()).then_some(added)
}

/// Packs instances, the services that wait for each kind of slice, GPU by GPU in the configuration that they fill best;
/// as far as there are GPUs.
pub(crate) fn pack(
    problem: &Problem,
    prices: &[f64],
    mut waiting: Vec<Vec<usize>>,
    mut left_in_pool: Vec<u32>,
) -> Vec<Filled> {
    let mut packed = Vec::new();
    loop {
        let filled = |index: usize| {
            let slices = problem.configurations[index].slices.iter().enumerate();
            let used = slices
                .map(|(slice, &count)| prices[slice] * f64::from(count.min(waiting[slice].len() as u32)));
            used.sum::<f64>() / problem.cost(index)
        };
        let open = (0..problem.configurations.len())
            .filter(|&index| left_in_pool[problem.configurations[index].pool] > 0)
            .map(|index| (filled(index), index))
            .filter(|(filled, _)| *filled > 0.0);
        // Of equally full ones the first: configurations with large slices, which are the hardest to place.
        let Some((_, configuration)) = open.max_by(|a, b| a.0.total_cmp(&b.0).then(b.1.cmp(&a.1))) else {
            return packed;
        };
        left_in_pool[problem.configurations[configuration].pool] -= 1;
        let mut gpu = Filled { configuration, instances: Vec::new(), score: 0.0 };
        for (slice, &count) in problem.configurations[configuration].slices.iter().enumerate() {
            for service in (0..count).map_while(|_| waiting[slice].pop()).collect::<Vec<usize>>() {
                gpu.give(slice, service);
            }
        }
        packed.push(gpu);
    }
}
