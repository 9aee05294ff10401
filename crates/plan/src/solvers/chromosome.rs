//! A whole deployment, GPU by GPU: the chromosome of the genetic algorithm, and what tree search begins from.

use rand::RngExt;
use rand::seq::SliceRandom;
use rand_xoshiro::Xoshiro256PlusPlus;

use super::deployment::{Deployment, Filled};
use super::fit::pack;
use super::greedy::tidy;
use super::taste::Worth;
use crate::problem::Problem;
use crate::solver::Allocation;

/// A deployment; a gene is a GPU.
#[derive(Clone, Debug)]
pub(crate) struct Chromosome {
    pub(crate) gpus: Vec<Filled>,
}

/// What a whole GPU's worth of used slices counts beside a GPU's cost.
const USED_WEIGHT: f64 = 1e-4;
/// Costs and fitness that differ by less are the same but for rounding.
pub(crate) const ROUNDING: f64 = 1e-7;

impl Chromosome {
    /// What it costs.
    pub(crate) fn cost(&self, problem: &Problem) -> f64 {
        self.gpus.iter().map(|gpu| problem.cost(gpu.configuration)).sum()
    }

    /// What it costs, and by how little it misses costing less: of two as dear the one with more unused slices is
    /// nearer to a better one.
    pub(crate) fn fitness(&self, problem: &Problem, worth: &Worth) -> f64 {
        self.cost(problem) + USED_WEIGHT * self.used(worth)
    }

    /// What the slices that are used are worth.
    fn used(&self, worth: &Worth) -> f64 {
        let instances = self.gpus.iter().flat_map(|gpu| &gpu.instances);
        instances.map(|&(slice, _, count)| worth.slices[slice] * f64::from(count)).sum()
    }

    /// The same instances on fewer GPUs, where they fit: slices of a kind are interchangeable, so that holes can be
    /// gathered.
    pub(crate) fn compacted(
        self,
        problem: &Problem,
        worth: &Worth,
        random: &mut Xoshiro256PlusPlus,
    ) -> Chromosome {
        let cost = self.cost(problem);
        let cheapest = problem.pools.iter().map(|pool| pool.cost).fold(f64::INFINITY, f64::min);
        if self.used(worth) > cost - cheapest + ROUNDING {
            return self;
        }
        let packed = self.packed(problem, worth, random);
        if packed.cost(problem) < cost - ROUNDING { packed } else { self }
    }

    /// The same instances, packed anew on no more GPUs of a pool than it has here.
    fn packed(&self, problem: &Problem, worth: &Worth, random: &mut Xoshiro256PlusPlus) -> Chromosome {
        let mut waiting: Vec<Vec<usize>> = vec![Vec::new(); problem.slices.len()];
        let mut left_in_pool = vec![0u32; problem.pools.len()];
        for gpu in &self.gpus {
            left_in_pool[problem.configurations[gpu.configuration].pool] += 1;
            for &(slice, service, count) in &gpu.instances {
                waiting[slice].extend(std::iter::repeat_n(service, count as usize));
            }
        }
        for services in &mut waiting {
            services.shuffle(random);
        }
        Chromosome { gpus: pack(problem, &worth.slices, waiting, left_in_pool) }
    }

    /// Without places, and without what is not needed.
    pub(crate) fn allocation(&self, problem: &Problem) -> Allocation {
        let mut allocation = Allocation::empty(problem);
        for gpu in &self.gpus {
            gpu.add_to(&mut allocation);
        }
        tidy(problem, &mut allocation);
        allocation
    }

    /// Swaps services between equal slices of two GPUs: the same deployment, in which other things are erased together.
    pub(crate) fn mutate(&mut self, swaps: usize, random: &mut Xoshiro256PlusPlus) {
        let gpus = &mut self.gpus;
        for _ in 0..swaps {
            let (a, b) = (random.random_range(0..gpus.len()), random.random_range(0..gpus.len()));
            if a == b || gpus[a].instances.is_empty() || gpus[b].instances.is_empty() {
                continue;
            }
            let i = random.random_range(0..gpus[a].instances.len());
            let (slice, first, _) = gpus[a].instances[i];
            let equal = |&(kind, other, _): &(usize, usize, u32)| kind == slice && other != first;
            let Some(j) = gpus[b].instances.iter().position(equal) else { continue };
            let second = gpus[b].instances[j].1;
            gpus[a].exchange(slice, first, second);
            gpus[b].exchange(slice, second, first);
        }
    }

    /// Erases so many GPUs, any of them; what is then superfluous elsewhere is taken out, and the slices that this
    /// leaves are given to who lacks something now. What is left, and where it stands.
    pub(crate) fn erase<'a>(
        &self,
        problem: &'a Problem,
        count: usize,
        random: &mut Xoshiro256PlusPlus,
    ) -> (Chromosome, Deployment<'a>) {
        let mut left = self.clone();
        for _ in 0..count.min(left.gpus.len()) {
            let index = random.random_range(0..left.gpus.len());
            left.gpus.swap_remove(index);
        }
        let mut state = Deployment::new(problem);
        for gpu in &left.gpus {
            state.add(gpu);
        }
        left.free_superfluous(&mut state, random);
        for gpu in &mut left.gpus {
            let filled = state.fill_up(gpu.clone(), &state.unsatisfied());
            state.replace(gpu, &filled);
            *gpu = filled;
        }
        (left, state)
    }

    /// Takes out instances that are not needed, beginning anywhere.
    fn free_superfluous(&mut self, state: &mut Deployment<'_>, random: &mut Xoshiro256PlusPlus) {
        let length = self.gpus.len();
        let start = random.random_range(0..length.max(1));
        for offset in 0..length {
            let gpu = &mut self.gpus[(start + offset) % length];
            for (slice, service, count) in &mut gpu.instances {
                let counts = &mut state.allocation.instances[*service];
                while *count > 0 {
                    counts[*slice] -= 1;
                    if !state.problem.is_served(*service, counts) {
                        counts[*slice] += 1;
                        break;
                    }
                    *count -= 1;
                }
            }
            gpu.instances.retain(|(_, _, count)| *count > 0);
        }
    }
}

impl Filled {
    /// Gives one slice of this kind from a service to another.
    fn exchange(&mut self, slice: usize, from: usize, to: usize) {
        if let Some(entry) = self.instances.iter_mut().find(|entry| entry.0 == slice && entry.1 == from) {
            entry.2 -= 1;
        }
        self.instances.retain(|(_, _, count)| *count > 0);
        self.give(slice, to);
    }

    /// Gives a slice of this kind to a service.
    pub(super) fn give(&mut self, slice: usize, service: usize) {
        match self.instances.iter_mut().find(|entry| entry.0 == slice && entry.1 == service) {
            Some(entry) => entry.2 += 1,
            None => self.instances.push((slice, service, 1)),
        }
    }
}
