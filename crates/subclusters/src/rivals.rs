//! What others would do: divisions that a plan is compared with. Their sizes are chosen with the same estimate of
//! needs.

#[cfg(test)]
mod tests;

use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::need::{Memory, Needs};
use crate::problem::Problem;
use crate::solve::Subcluster;

/// Every model has GPUs of its own: nothing is shared.
pub fn one_per_model(problem: &Problem) -> Option<Vec<Subcluster>> {
    sized(&Needs::of(problem), (0..problem.models.len()).map(|model| vec![model]).collect())
}

/// Models are thrown into `count` sub-clusters at random, and into more where memory asks for it.
pub fn at_random(problem: &Problem, count: usize, seed: u64) -> Option<Vec<Subcluster>> {
    let needs = Needs::of(problem);
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut order: Vec<usize> = (0..problem.models.len()).collect();
    order.shuffle(&mut random);
    let mut bins = Bins::new(&needs, count);
    for model in order {
        let open: Vec<usize> = (0..bins.groups.len()).filter(|&bin| bins.has_room(model, bin)).collect();
        let chosen =
            if open.is_empty() { bins.groups.len() } else { open[random.random_range(0..open.len())] };
        bins.put(model, chosen);
    }
    sized(&needs, bins.groups)
}

/// The sub-cluster with the lowest rate so far, of those with memory for it, gets the next model, the busiest model
/// first: what a load balancer that counts requests does.
pub fn by_rate(problem: &Problem, count: usize) -> Option<Vec<Subcluster>> {
    let needs = Needs::of(problem);
    let rate = |model: usize| problem.models[model].rate_rps;
    let mut order: Vec<usize> = (0..problem.models.len()).collect();
    order.sort_by(|&a, &b| rate(b).total_cmp(&rate(a)).then(a.cmp(&b)));
    let mut bins = Bins::new(&needs, count);
    let mut rates = vec![0.0; count];
    for model in order {
        let open = (0..bins.groups.len()).filter(|&bin| bins.has_room(model, bin));
        let least = open.min_by(|&a, &b| f64::total_cmp(&rates[a], &rates[b])).unwrap_or(bins.groups.len());
        bins.put(model, least);
        rates.resize(bins.groups.len(), 0.0);
        rates[least] += rate(model);
    }
    sized(&needs, bins.groups)
}

/// Sub-clusters by memory alone.
struct Bins<'a> {
    needs: &'a Needs,
    groups: Vec<Vec<usize>>,
    taken: Vec<Memory>,
    room: u64,
}

impl Bins<'_> {
    fn new(needs: &Needs, count: usize) -> Bins<'_> {
        let room = needs.room_kib.iter().copied().max().unwrap_or(0);
        Bins {
            needs,
            groups: vec![Vec::new(); count],
            taken: vec![Memory { weights: 0, activation: 0 }; count],
            room,
        }
    }

    fn has_room(&self, model: usize, bin: usize) -> bool {
        let (own, taken) = (self.needs.memory[model], self.taken[bin]);
        taken.weights + own.weights + taken.activation.max(own.activation) <= self.room
    }

    fn put(&mut self, model: usize, bin: usize) {
        if self.groups.len() <= bin {
            self.groups.push(Vec::new());
            self.taken.push(Memory { weights: 0, activation: 0 });
        }
        let own = self.needs.memory[model];
        self.groups[bin].push(model);
        self.taken[bin].weights += own.weights;
        self.taken[bin].activation = self.taken[bin].activation.max(own.activation);
    }
}

/// Groups with the devices they need; `None` where one cannot be run.
fn sized(needs: &Needs, groups: Vec<Vec<usize>>) -> Option<Vec<Subcluster>> {
    let groups = groups.into_iter().filter(|group| !group.is_empty()).enumerate();
    groups
        .map(|(index, mut models)| {
            models.sort_unstable();
            let choice = needs.of_set(&models)?;
            Some(Subcluster {
                name: format!("r{}", index + 1),
                device: choice.device,
                count: choice.count,
                models,
            })
        })
        .collect()
}
