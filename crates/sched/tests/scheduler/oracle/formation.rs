//! The first batch out of a small queue is the largest that the deadlines allow.

use downbeat_sched::*;
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::cluster::{Started, TestCluster, at, linear, span};

/// One device that another model keeps until `busy_until_ms`, and up to eight requests, by arrival.
#[derive(Debug)]
struct Instance {
    alpha_ms: f64,
    beta_ms: f64,
    max_batch: u32,
    control_ms: f64,
    data_ms: f64,
    busy_until_ms: f64,
    /// Arrival, deadline and rows of each.
    requests: Vec<(f64, f64, u32)>,
}

/// The first batch of an instance.
struct First {
    batch: Started,
    /// The requests that were answered before it.
    gone: Vec<u64>,
}

impl Instance {
    /// Times in whole or half milliseconds, so that sums are exact and ties are common.
    fn random(seed: u64, widest: u32) -> Instance {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let mut halves = |from: u32, to: u32| f64::from(random.random_range(from..to)) / 2.0;
        let with_delays = halves(0, 2) > 0.0;
        let (control_ms, data_ms) = if with_delays { (halves(0, 6), halves(0, 3)) } else { (0.0, 0.0) };
        let busy_until_ms = halves(0, 30);
        let mut requests: Vec<_> = (0..1 + halves(0, 16) as u32)
            .map(|_| {
                let arrival_ms = halves(0, 30);
                let deadline_ms = arrival_ms + halves(1, 60);
                (arrival_ms, deadline_ms, if widest == 1 { 1 } else { halves(2, 2 * widest + 2) as u32 })
            })
            .collect();
        requests.sort_by(|a, b| a.0.total_cmp(&b.0));
        let (alpha_ms, beta_ms) = (halves(0, 4), halves(1, 12));
        let max_batch = 1 + 2 * halves(0, 9) as u32;
        Instance { alpha_ms, beta_ms, max_batch, control_ms, data_ms, busy_until_ms, requests }
    }

    /// The first batch of the model, as the scheduler forms it.
    fn first_batch(&self, rule: Rule) -> Option<First> {
        let delays = Delays { control: span(self.control_ms), data: span(self.data_ms) };
        let mut cluster = TestCluster::new(rule, delays);
        let own = linear(self.alpha_ms, self.beta_ms, self.max_batch);
        cluster.add_model(ModelId(0), ModelSpec::new([(ClassId(0), own)]));
        let lead_ms = self.control_ms + self.data_ms;
        let occupies = self.busy_until_ms > lead_ms;
        if occupies {
            let other = linear(0.0, self.busy_until_ms - lead_ms, 1);
            cluster.add_model(ModelId(1), ModelSpec::new([(ClassId(0), other)]));
        }
        cluster.join(GpuId(0), ClassId(0));
        for (id, &(arrival_ms, deadline_ms, rows)) in self.requests.iter().enumerate() {
            if id == 0 && occupies {
                cluster.request(1, self.busy_until_ms);
            }
            cluster.run_until(at(arrival_ms));
            cluster.request_rows(rows, 0, deadline_ms);
        }
        cluster.drain();
        // Where the other model's request is number 0, ours are numbered from 1.
        let offset = u64::from(occupies);
        let first = cluster.started().into_iter().find(|batch| batch.model == 0)?;
        let ours = |action: &Action| matches!(action, Action::Start(start) if start.model == ModelId(0));
        let before = cluster.log.iter().map(|(_, action, _)| action).take_while(|action| !ours(action));
        let answered = |action: &Action| match action {
            Action::Answer { request, .. } => Some(request.0 - offset),
            _ => None,
        };
        let gone = before.filter_map(answered).collect();
        let batch = Started { ids: first.ids.iter().map(|id| id - offset).collect(), ..first };
        Some(First { batch, gone })
    }

    /// When a batch of `rows` finishes that was sent at `sent_ms`; never where there is no such batch.
    fn finish_ms(&self, sent_ms: f64, rows: u32) -> f64 {
        if rows > self.max_batch {
            return f64::INFINITY;
        }
        let there_ms = sent_ms + self.control_ms + self.data_ms * f64::from(rows);
        let is_busy = self.busy_until_ms > sent_ms;
        let start_ms = if is_busy { there_ms.max(self.busy_until_ms) } else { there_ms };
        start_ms + self.alpha_ms * f64::from(rows) + self.beta_ms
    }

    /// What it should be, were it sent at `sent_ms`: of the first `there` that have not gone, in deadline order, from
    /// the first that could make it alone on, as many as finish together by that one's deadline.
    fn expected(&self, there: usize, gone: &[u64], sent_ms: f64) -> Vec<u64> {
        let mut waiting: Vec<(f64, u64, u32)> = (0u64..)
            .zip(&self.requests[..there])
            .filter(|(id, _)| !gone.contains(id))
            .map(|(id, &(_, deadline_ms, rows))| (deadline_ms, id, rows))
            .collect();
        waiting.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        let hopeless =
            |&(deadline_ms, _, rows): &(f64, u64, u32)| self.finish_ms(sent_ms, rows) > deadline_ms;
        let head = waiting.iter().take_while(|request| hopeless(request)).count();
        let alive = &waiting[head..];
        let rows = |b: usize| alive[..b].iter().map(|request| request.2).sum::<u32>();
        let fits = |b: &usize| alive[..*b].iter().all(|r| self.finish_ms(sent_ms, rows(*b)) <= r.0);
        let b = (1..=alive.len()).rev().find(fits).unwrap_or(0);
        alive[..b].iter().map(|request| request.1).collect()
    }

    fn check(&self, rule: Rule, seed: u64) -> bool {
        let Some(First { batch, gone }) = self.first_batch(rule) else { return false };
        // Of several that arrive at the very instant at which the batch is sent, some may come after it.
        let before = self.requests.partition_point(|request| request.0 < batch.sent_ms);
        let by_then = self.requests.partition_point(|request| request.0 <= batch.sent_ms);
        let mut expected = (before..=by_then).map(|there| self.expected(there, &gone, batch.sent_ms));
        assert!(expected.any(|ids| ids == batch.ids), "seed {seed}, {rule:?}: {batch:?} of {self:?}");
        for &id in &gone {
            let (_, deadline_ms, rows) = self.requests[id as usize];
            let hopeless = self.finish_ms(batch.sent_ms, rows) > deadline_ms;
            assert!(hopeless, "seed {seed}, {rule:?}: {id} was given up for nothing in {self:?}");
        }
        true
    }
}

#[test]
fn with_timeout_drop_the_largest_batch_that_its_earliest_deadline_allows_is_started() {
    let mut started = 0;
    for seed in 0..6_000 {
        let instance = Instance::random(seed, if seed < 3_000 { 1 } else { 5 });
        started += u32::from(instance.check(Rule::DEFERRED.with_drop(DropRule::Timeout), seed));
        started += u32::from(instance.check(Rule::guarded(1.0).with_drop(DropRule::Timeout), seed));
        started += u32::from(instance.check(Rule::EAGER.with_order(GpuOrder::EarliestFree), seed));
    }
    assert!(started > 10_000, "only {started} instances of 18000 start anything");
}
