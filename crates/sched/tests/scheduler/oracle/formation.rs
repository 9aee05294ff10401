//! The first batch out of a small queue is the largest that the deadlines allow.

use downbeat_sched::*;
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::cluster::{Started, TestCluster, at, linear, span};

/// One device that another model keeps until `busy_until_ms`, and up to eight requests, by arrival.
struct Instance {
    alpha_ms: f64,
    beta_ms: f64,
    max_batch: u32,
    control_ms: f64,
    data_ms: f64,
    busy_until_ms: f64,
    /// Arrival and deadline of each.
    requests: Vec<(f64, f64)>,
}

impl Instance {
    /// Times in whole or half milliseconds, so that sums are exact and ties are common.
    fn random(seed: u64) -> Instance {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let mut halves = |from: u32, to: u32| f64::from(random.random_range(from..to)) / 2.0;
        let with_delays = halves(0, 2) > 0.0;
        let (control_ms, data_ms) = if with_delays { (halves(0, 6), halves(0, 3)) } else { (0.0, 0.0) };
        let busy_until_ms = halves(0, 30);
        let mut requests: Vec<_> = (0..1 + halves(0, 16) as u32)
            .map(|_| {
                let arrival_ms = halves(0, 30);
                (arrival_ms, arrival_ms + halves(1, 60))
            })
            .collect();
        requests.sort_by(|a, b| a.0.total_cmp(&b.0));
        let (alpha_ms, beta_ms) = (halves(0, 4), halves(1, 12));
        let max_batch = 1 + 2 * halves(0, 9) as u32;
        Instance { alpha_ms, beta_ms, max_batch, control_ms, data_ms, busy_until_ms, requests }
    }

    /// The first batch of the model, as the scheduler forms it.
    fn first_batch<P: Policy>(&self, policy: P) -> Option<Started> {
        let delays = Delays { control: span(self.control_ms), data: span(self.data_ms) };
        let mut cluster = TestCluster::new(policy, delays);
        let own = linear(self.alpha_ms, self.beta_ms, self.max_batch);
        cluster.add_model(ModelId(0), ModelSpec::new([(ClassId(0), own)]));
        let lead_ms = self.control_ms + self.data_ms;
        let occupies = self.busy_until_ms > lead_ms;
        if occupies {
            let other = linear(0.0, self.busy_until_ms - lead_ms, 1);
            cluster.add_model(ModelId(1), ModelSpec::new([(ClassId(0), other)]));
        }
        cluster.join(GpuId(0), ClassId(0));
        for (id, &(arrival_ms, deadline_ms)) in self.requests.iter().enumerate() {
            if id == 0 && occupies {
                cluster.request(1, self.busy_until_ms);
            }
            cluster.run_until(at(arrival_ms));
            cluster.request(0, deadline_ms);
        }
        cluster.drain();
        // Where the other model's request is number 0, ours are numbered from 1.
        let offset = u64::from(occupies);
        let first = cluster.started().into_iter().find(|batch| batch.model == 0)?;
        Some(Started { ids: first.ids.iter().map(|id| id - offset).collect(), ..first })
    }

    /// What it should be, were it sent at `sent_ms`: of the first `there` that could make it alone, the b earliest, for the
    /// largest b that finishes by the earliest deadline among them.
    fn expected(&self, there: usize, sent_ms: f64) -> Vec<u64> {
        let start_ms = |b: usize| {
            let there_ms = sent_ms + self.control_ms + self.data_ms * b as f64;
            if self.busy_until_ms > sent_ms { there_ms.max(self.busy_until_ms) } else { there_ms }
        };
        let finish_ms = |b: usize| start_ms(b) + self.alpha_ms * b as f64 + self.beta_ms;
        let mut alive: Vec<(f64, u64)> = (0u64..)
            .zip(&self.requests[..there])
            .filter(|(_, request)| request.1 >= finish_ms(1))
            .map(|(id, request)| (request.1, id))
            .collect();
        alive.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        let fits = |b: &usize| alive[..*b].iter().all(|&(deadline_ms, _)| finish_ms(*b) <= deadline_ms);
        let b = (1..=alive.len().min(self.max_batch as usize)).rev().find(fits).unwrap_or(0);
        alive[..b].iter().map(|&(_, id)| id).collect()
    }

    fn check<P: Policy>(&self, policy: &P, seed: u64) -> bool {
        let Some(batch) = self.first_batch(policy.clone()) else { return false };
        // Of several that arrive at the very instant at which the batch is sent, some may come after it.
        let before = self.requests.partition_point(|request| request.0 < batch.sent_ms);
        let by_then = self.requests.partition_point(|request| request.0 <= batch.sent_ms);
        let mut expected = (before..=by_then).map(|there| self.expected(there, batch.sent_ms));
        assert!(expected.any(|ids| ids == batch.ids), "seed {seed}, {policy:?}: {batch:?}");
        true
    }
}

#[test]
fn with_timeout_drop_the_largest_batch_that_its_earliest_deadline_allows_is_started() {
    let mut started = 0;
    for seed in 0..3_000 {
        let instance = Instance::random(seed);
        started += u32::from(instance.check(&Deferred::<TimeoutDrop, SmallestId>::new(), seed));
        started += u32::from(instance.check(&Guarded::<TimeoutDrop, SmallestId>::new(1.0), seed));
        started += u32::from(instance.check(&Eager::<TimeoutDrop, EarliestFree>::new(), seed));
    }
    assert!(started > 6_000, "only {started} instances of 9000 start anything");
}
