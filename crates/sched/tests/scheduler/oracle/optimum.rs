//! No schedule can do better than the best one found with all arrivals known in advance.

use downbeat_sched::*;
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::cluster::{State, TestCluster, at, linear};

/// A few requests for one or two models, on one or two devices; all times in whole milliseconds.
#[derive(Debug)]
struct Instance {
    gpus: u32,
    /// Slope, intercept and largest batch of each model.
    models: Vec<(u32, u32, u32)>,
    /// By arrival.
    requests: Vec<Asked>,
}

#[derive(Clone, Copy, Debug)]
struct Asked {
    arrival: u32,
    deadline: u32,
    model: usize,
    rows: u32,
}

impl Instance {
    /// Requests of up to `widest` rows, as far as the model takes so many.
    fn random(seed: u64, widest: u32) -> Instance {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let models: Vec<_> = (0..random.random_range(1..=2))
            .map(|_| (random.random_range(0..=3), random.random_range(1..=8), random.random_range(1..=5)))
            .collect();
        let mut requests: Vec<_> = (0..random.random_range(4..=7))
            .map(|_| {
                let model = random.random_range(0..models.len());
                let (alpha, beta, largest) = models[model];
                let arrival = random.random_range(0..12);
                let rows = if widest == 1 { 1 } else { random.random_range(1..=widest.min(largest)) };
                let alone = alpha * rows + beta;
                let slack = random.random_range(0..=2 * alone);
                Asked { arrival, deadline: arrival + alone + slack, model, rows }
            })
            .collect();
        requests.sort_by_key(|asked| asked.arrival);
        Instance { gpus: random.random_range(1..=2), models, requests }
    }

    /// How many requests finish in time when `policy` decides.
    fn in_time<P: Policy>(&self, policy: P, gpus: u32) -> u32 {
        let mut cluster = TestCluster::new(policy, Delays::default());
        for (model, &(alpha, beta, max_batch)) in (0u32..).zip(&self.models) {
            let profile = linear(f64::from(alpha), f64::from(beta), max_batch);
            cluster.add_model(ModelId(model), ModelSpec::new([(ClassId(0), profile)]));
        }
        (0..gpus).for_each(|gpu| cluster.join(GpuId(gpu), ClassId(0)));
        for asked in &self.requests {
            cluster.run_until(at(f64::from(asked.arrival)));
            cluster.request_rows(asked.rows, asked.model as u32, f64::from(asked.deadline));
        }
        cluster.drain();
        (0..self.requests.len() as u64).filter(|&id| cluster.state(id) == State::Finished).count() as u32
    }

    /// How many could, had all arrivals been known in advance.
    ///
    /// Nothing is lost by starting every batch as soon as its last request is there and the device is free. So it is
    /// enough to know, for each set of requests, when one device can be done with all of them in time; and the best
    /// schedule gives each device a set, all of them disjoint.
    fn optimum(&self) -> u32 {
        let done = self.earliest_done();
        let mut reachable = vec![false; done.len()];
        reachable[0] = true;
        for _ in 0..self.gpus {
            for all in (0..done.len()).rev() {
                reachable[all] |= subsets(all).any(|one| done[one].is_some() && reachable[all & !one]);
            }
        }
        (0..done.len()).filter(|&set| reachable[set]).map(usize::count_ones).max().unwrap_or(0)
    }

    /// For each set of requests, when one device that runs just these can be done with them; `None` where one is late.
    fn earliest_done(&self) -> Vec<Option<u32>> {
        let mut done = vec![None; 1 << self.requests.len()];
        done[0] = Some(0);
        for set in 1..done.len() {
            let after = |last: usize| self.finish(last, done[set & !last]?);
            done[set] = subsets(set).filter(|&last| last != 0).filter_map(after).min();
        }
        done
    }

    /// When the batch of these requests is done on a device that is free at `free`; `None` where that is no batch, or
    /// too late for one of them.
    fn finish(&self, batch: usize, free: u32) -> Option<u32> {
        let members =
            || self.requests.iter().enumerate().filter(|(id, _)| batch >> id & 1 == 1).map(|(_, r)| r);
        let model = members().next()?.model;
        let (alpha, beta, max_batch) = self.models[model];
        let size: u32 = members().map(|asked| asked.rows).sum();
        let start = members().map(|asked| asked.arrival).max()?.max(free);
        let finish = start + alpha * size + beta;
        let legal =
            size <= max_batch && members().all(|asked| asked.model == model && finish <= asked.deadline);
        legal.then_some(finish)
    }
}

/// All subsets of `set`, itself and the empty one included.
fn subsets(set: usize) -> impl Iterator<Item = usize> {
    let smaller = move |&subset: &usize| subset.checked_sub(1).map(|less| less & set);
    std::iter::successors(Some(set), smaller)
}

const INSTANCES: u64 = 3_000;

/// Asserts that `policy` never serves more than could have been served, and over all instances more than `share` of it.
fn keeps<P: Policy>(share: f64, policy: &P, widest: u32) {
    let (mut served, mut possible) = (0, 0);
    for seed in 0..INSTANCES {
        let instance = Instance::random(seed, widest);
        let in_time = instance.in_time(policy.clone(), instance.gpus);
        let optimum = instance.optimum();
        assert!(in_time <= optimum, "seed {seed}: {in_time} in time, at most {optimum}: {instance:?}");
        served += in_time;
        possible += optimum;
    }
    let kept = f64::from(served) / f64::from(possible);
    assert!(kept > share, "{kept:.3} of the optimum: {policy:?}");
}

#[test]
fn the_optimum_of_a_hand_worked_instance_is_right() {
    // l(b) = b + 2. Request 0 alone from 0 to 3 loses request 1, due at 5; both together from 1 to 5 are in time. Then
    // request 2 runs from 5 to 8 and request 3, due at 8, is lost on one device, but not on two.
    let ask = |arrival, deadline, rows| Asked { arrival, deadline, model: 0, rows };
    let requests = vec![ask(0, 5, 1), ask(1, 5, 1), ask(4, 8, 1), ask(4, 7, 1)];
    let one = Instance { gpus: 1, models: vec![(1, 2, 4)], requests };
    assert_eq!(one.optimum(), 3);
    assert_eq!(Instance { gpus: 2, ..one }.optimum(), 4);
    // Two and three rows do not fit into a batch of four: l(2) + l(3) = 9.
    for (deadline, optimum) in [(8, 1), (9, 2)] {
        let requests = vec![ask(0, deadline, 2), ask(0, deadline, 3)];
        assert_eq!(Instance { gpus: 1, models: vec![(1, 2, 4)], requests }.optimum(), optimum);
    }
}

/// The bars are a little under what was measured (the instances are always the same): 0.924, 0.925, 0.916, 0.899, 0.900,
/// 0.893 and 0.894. With so few requests there is little to gain from dispatching early.
#[test]
fn no_policy_beats_the_optimum_and_each_keeps_its_share_of_it() {
    keeps(0.915, &Adaptive, 1);
    keeps(0.915, &Deferred::<TimeoutDrop, SmallestId>::new(), 1);
    keeps(0.915, &Deferred::<WindowDrop, EarliestFree>::new(), 1);
    keeps(0.905, &Guarded::<TimeoutDrop, SmallestId>::new(1.0), 1);
    keeps(0.89, &Guarded::<TimeoutDrop, SmallestId>::new(2.0), 1);
    keeps(0.89, &Guarded::<WindowDrop, SmallestId>::new(2.0), 1);
    keeps(0.88, &Eager::<TimeoutDrop, SmallestId>::new(), 1);
    keeps(0.88, &Eager::<WindowDrop, SmallestId>::new(), 1);
}

/// The same with requests of up to five rows, which are never split: 0.890, 0.896, 0.882, 0.905, 0.895 and 0.883.
#[test]
fn with_several_rows_no_policy_beats_the_optimum_and_each_keeps_its_share_of_it() {
    keeps(0.88, &Adaptive, 5);
    keeps(0.885, &Deferred::<TimeoutDrop, SmallestId>::new(), 5);
    keeps(0.87, &Deferred::<WindowDrop, EarliestFree>::new(), 5);
    keeps(0.895, &Guarded::<TimeoutDrop, SmallestId>::new(1.0), 5);
    keeps(0.885, &Eager::<TimeoutDrop, SmallestId>::new(), 5);
    keeps(0.87, &Eager::<WindowDrop, SmallestId>::new(), 5);
}

/// Every request could run alone at once, and waits only as long as that costs nothing.
#[test]
fn with_a_device_per_request_nothing_is_lost() {
    for seed in 0..INSTANCES {
        let instance = Instance::random(seed, 1 + seed as u32 % 5);
        let all = instance.requests.len() as u32;
        assert_eq!(instance.in_time(Deferred::<TimeoutDrop, SmallestId>::new(), all), all, "seed {seed}");
        assert_eq!(instance.in_time(Guarded::<TimeoutDrop, EarliestFree>::new(2.0), all), all, "seed {seed}");
        assert_eq!(instance.in_time(Eager::<TimeoutDrop, SmallestId>::new(), all), all, "seed {seed}");
        assert_eq!(Instance { gpus: all, ..instance }.optimum(), all, "seed {seed}");
    }
}
