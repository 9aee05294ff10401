//! A plan in the making, GPU by GPU: what greedy, tree search and the genetic algorithm share.

use super::taste::Taste;
use crate::bound::slice_cost;
use crate::problem::Problem;
use crate::solver::Allocation;

/// A GPU: how it is cut, and how many slices of each kind go to which service.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Filled {
    pub(crate) configuration: usize,
    /// (slice, service, how many)
    pub(crate) instances: Vec<(usize, usize, u32)>,
    pub(crate) score: f64,
}

impl Filled {
    /// Counts it in.
    pub(crate) fn add_to(&self, allocation: &mut Allocation) {
        allocation.gpus[self.configuration] += 1;
        for &(slice, service, count) in &self.instances {
            allocation.instances[service][slice] += count;
        }
    }
}

/// A plan in the making: GPUs so far, and how much of each service's demand they serve.
#[derive(Clone)]
pub(crate) struct Deployment<'a> {
    pub(crate) problem: &'a Problem,
    pub(crate) allocation: Allocation,
    /// How much of each demand is not served yet, from 1 to 0.
    pub(crate) lacking: Vec<f64>,
    pub(super) left_in_pool: Vec<u32>,
    /// What the best GPU for each service alone would score per cost, where [`best_gpu`](Self::best_gpu) is to be
    /// asked; kept up to date, because asking for all of them at every step would take longer than all the rest.
    alone: Vec<f64>,
    /// What is worth how much.
    taste: Taste,
}

impl<'a> Deployment<'a> {
    /// Nothing yet; for who knows which GPUs to add.
    pub(crate) fn new(problem: &'a Problem) -> Deployment<'a> {
        Deployment {
            problem,
            taste: Taste::published(problem),
            allocation: Allocation::empty(problem),
            lacking: vec![1.0; problem.services.len()],
            left_in_pool: problem.pools.iter().map(|pool| pool.count.unwrap_or(u32::MAX)).collect(),
            alone: Vec::new(),
        }
    }

    /// Nothing yet; for who asks for the [best GPU](Self::best_gpu).
    pub(crate) fn ranked(problem: &'a Problem) -> Deployment<'a> {
        let mut empty = Deployment::new(problem);
        empty.alone = (0..problem.services.len()).map(|service| empty.score_alone(service)).collect();
        empty
    }

    /// What counts from now on.
    pub(crate) fn set_taste(&mut self, taste: &Taste) {
        self.taste.clone_from(taste);
    }

    /// What the best GPU for a service alone would score per cost.
    fn score_alone(&self, service: usize) -> f64 {
        if self.lacking[service] <= 0.0 {
            return 0.0;
        }
        let open = self.open_configurations();
        open.into_iter()
            .map(|index| self.fill(index, &[service]).score / self.problem.cost(index))
            .fold(0.0, f64::max)
    }

    /// Adds a GPU.
    pub(crate) fn add(&mut self, gpu: &Filled) {
        gpu.add_to(&mut self.allocation);
        let pool = self.problem.configurations[gpu.configuration].pool;
        self.left_in_pool[pool] = self.left_in_pool[pool].saturating_sub(1);
        for &(_, service, _) in &gpu.instances {
            self.lacking[service] = self.lack(service);
        }
        if self.alone.is_empty() {
            return;
        }
        if self.left_in_pool[pool] == 0 {
            self.alone = (0..self.alone.len()).map(|service| self.score_alone(service)).collect();
        } else {
            for &(_, service, _) in &gpu.instances {
                self.alone[service] = self.score_alone(service);
            }
        }
    }

    /// How often a GPU can be taken before it is worth asking again: once, but for demands of hundreds of GPUs.
    pub(super) fn repeats(&self, gpu: &Filled) -> u32 {
        let needed = gpu.instances.iter().map(|&(_, service, _)| {
            let own = gpu.instances.iter().filter(|(_, owner, _)| *owner == service);
            let gained: f64 = own.map(|&(slice, _, count)| self.gain(service, slice, count)).sum();
            self.lacking[service] / gained.max(1e-12)
        });
        let pool = self.problem.configurations[gpu.configuration].pool;
        ((needed.fold(f64::INFINITY, f64::min) / 16.0) as u32).clamp(1, self.left_in_pool[pool].max(1))
    }

    fn lack(&self, service: usize) -> f64 {
        let counts = &self.allocation.instances[service];
        if self.problem.is_served(service, counts) {
            return 0.0;
        }
        let wanted = &self.problem.services[service];
        let served = (self.problem.capacity(service, counts) / wanted.planned_rps()).min(1.0);
        let replicas =
            f64::from(self.problem.replicas(service, counts)) / f64::from(wanted.min_replicas.max(1));
        // What is not served is never called nothing.
        (1.0 - served.min(replicas)).max(1e-9)
    }

    /// What `count` more instances on a kind of slice add to a service's completion rate.
    pub(crate) fn gain(&self, service: usize, slice: usize, count: u32) -> f64 {
        let Some(curve) = &self.problem.curves[service][slice] else { return 0.0 };
        let have = self.allocation.instances[service][slice];
        let more = curve.capacity(have + count) - curve.capacity(have);
        let wanted = &self.problem.services[service];
        // An instance that serves nothing by itself is a step towards several that do, and towards the replicas wanted.
        let step = curve.best_rate() * f64::from(count) * 0.5;
        let replica = f64::from(count) / f64::from(wanted.min_replicas.max(1));
        let gain = more.max(if more <= 0.0 { step } else { 0.0 }) / wanted.planned_rps();
        if wanted.min_replicas > 1 { gain.min(replica) } else { gain }
    }

    /// Whether any demand is not met.
    pub(crate) fn is_lacking(&self) -> bool {
        self.lacking.iter().any(|&lacking| lacking > 0.0)
    }

    /// What a GPU would score now.
    pub(crate) fn score(&self, gpu: &Filled) -> f64 {
        let mut score = 0.0;
        for (index, &(_, service, _)) in gpu.instances.iter().enumerate() {
            let own = |other: &&(usize, usize, u32)| other.1 == service;
            // Each service once, at its first instance.
            if gpu.instances[..index].iter().any(|other| other.1 == service) {
                continue;
            }
            let gained: f64 = gpu
                .instances
                .iter()
                .filter(own)
                .map(|&(slice, _, count)| self.gain(service, slice, count))
                .sum();
            let lacking = self.lacking[service];
            score += self.taste.worth(service, lacking, gained.min(lacking));
        }
        score
    }

    /// Exchanges a GPU for the same one filled otherwise.
    pub(crate) fn replace(&mut self, old: &Filled, new: &Filled) {
        for &(slice, service, count) in &old.instances {
            self.allocation.instances[service][slice] -= count;
        }
        for &(slice, service, count) in &new.instances {
            self.allocation.instances[service][slice] += count;
        }
        for &(_, service, _) in old.instances.iter().chain(&new.instances) {
            self.lacking[service] = self.lack(service);
        }
    }

    /// Services that still lack something.
    pub(crate) fn unsatisfied(&self) -> Vec<usize> {
        (0..self.lacking.len()).filter(|&service| self.lacking[service] > 0.0).collect()
    }

    /// Whether the configuration's pool has GPUs left.
    pub(super) fn is_open(&self, configuration: usize) -> bool {
        self.left_in_pool[self.problem.configurations[configuration].pool] > 0
    }

    /// Configurations of pools that have GPUs left; all of them where none has.
    pub(crate) fn open_configurations(&self) -> Vec<usize> {
        let all = 0..self.problem.configurations.len();
        let open: Vec<usize> = all.clone().filter(|&index| self.is_open(index)).collect();
        if open.is_empty() { all.collect() } else { open }
    }

    /// The GPU with the best score per cost, with pairs among the `paired` services that gain most alone; `None` when
    /// nothing lacks.
    pub(crate) fn best_gpu(&self, paired: usize) -> Option<Filled> {
        let unsatisfied = self.unsatisfied();
        let configurations = self.open_configurations();
        let mut leaders: Vec<usize> = unsatisfied.clone();
        let better = |a: &usize, b: &usize| self.alone[*b].total_cmp(&self.alone[*a]).then(a.cmp(b));
        if leaders.len() > paired {
            leaders.select_nth_unstable_by(paired, better);
            leaders.truncate(paired);
        }
        leaders.sort_by(better);
        let mut best: Option<Filled> = None;
        for (index, &first) in leaders.iter().enumerate() {
            for &second in &leaders[index..] {
                for &configuration in &configurations {
                    let pair = [first, second];
                    let filled = self.fill(configuration, if first == second { &pair[..1] } else { &pair });
                    if best.as_ref().is_none_or(|best| self.is_better(&filled, best)) {
                        best = Some(filled);
                    }
                }
            }
        }
        let best = best?;
        Some(self.fill_up(best, &unsatisfied))
    }

    /// Whether a GPU scores more per cost than another; of equals, whether it leaves more to other services.
    fn is_better(&self, filled: &Filled, best: &Filled) -> bool {
        let worth = |gpu: &Filled| gpu.score / self.problem.cost(gpu.configuration);
        let (found, known) = (worth(filled), worth(best));
        if (found - known).abs() > 1e-12 * known {
            return found > known;
        }
        let used = |gpu: &Filled| -> f64 {
            let share =
                |&(slice, _, count): &(usize, usize, u32)| slice_cost(self.problem, slice) * f64::from(count);
            gpu.instances.iter().map(share).sum::<f64>() / self.problem.cost(gpu.configuration)
        };
        used(filled) < used(best)
    }

    /// A GPU cut this way, its slices given one by one, the largest first, to whichever of the services gains most.
    pub(crate) fn fill(&self, configuration: usize, services: &[usize]) -> Filled {
        let mut filled = Filled { configuration, instances: Vec::new(), score: 0.0 };
        let slices = &self.problem.configurations[configuration].slices;
        self.fill_slices(&mut filled, slices, services);
        filled
    }

    /// Gives slices that are left to other services.
    pub(crate) fn fill_up(&self, mut filled: Filled, services: &[usize]) -> Filled {
        let mut left = self.problem.configurations[filled.configuration].slices.clone();
        for &(slice, _, count) in &filled.instances {
            left[slice] -= count;
        }
        if left.iter().any(|&count| count > 0) {
            self.fill_slices(&mut filled, &left, services);
        }
        filled
    }

    fn fill_slices(&self, filled: &mut Filled, slices: &[u32], services: &[usize]) {
        // What each service has been given on this GPU so far.
        let given = |service: usize| {
            let own = filled.instances.iter().filter(|(_, owner, _)| *owner == service);
            own.map(|&(slice, _, count)| self.gain(service, slice, count)).sum::<f64>()
        };
        let mut given: Vec<f64> = services.iter().map(|&service| given(service)).collect();
        for slice in (0..slices.len()).rev().filter(|&slice| slices[slice] > 0) {
            let have = |service: usize| {
                let own =
                    filled.instances.iter().find(|(kind, owner, _)| *kind == slice && *owner == service);
                own.map_or(0, |(_, _, count)| *count)
            };
            let mut have: Vec<u32> = services.iter().map(|&service| have(service)).collect();
            for _ in 0..slices[slice] {
                let mut best: Option<(f64, usize, f64)> = None;
                for (index, &service) in services.iter().enumerate() {
                    let lacking = self.lacking[service];
                    if given[index] >= lacking || self.problem.curves[service][slice].is_none() {
                        continue;
                    }
                    let more =
                        self.gain(service, slice, have[index] + 1) - self.gain(service, slice, have[index]);
                    let score = self.taste.worth(service, lacking, more.min(lacking - given[index]));
                    if score > 0.0 && best.is_none_or(|(most, _, _)| score > most) {
                        best = Some((score, index, more));
                    }
                }
                let Some((score, index, more)) = best else { break };
                let service = services[index];
                filled.score += score;
                given[index] += more;
                have[index] += 1;
                match filled.instances.iter_mut().find(|(kind, owner, _)| *kind == slice && *owner == service)
                {
                    Some(entry) => entry.2 += 1,
                    None => filled.instances.push((slice, service, 1)),
                }
            }
        }
    }
}
