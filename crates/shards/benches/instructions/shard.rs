//! A shard's thread, turn by turn, in virtual time.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use downbeat_sched::{
    BatchId, ClassId, Delays, GpuId, LatencyProfile, ModelId, ModelSpec, Outcome, Priority, Request,
    RequestId, Rule, Span, Time,
};
use downbeat_shards::{DomainId, Ensemble, Finished, Host, Inlet, Launch, Settings};
use rand::{RngExt, SeedableRng};
use rand_distr::{Distribution, Exp1};
use rand_xoshiro::Xoshiro256PlusPlus;

/// Requests before it is counted.
const WARM: u64 = 20_000;

/// A shard and a matchmaker with a load.
pub(crate) struct Requests {
    ensemble: Ensemble<Script>,
    random: Xoshiro256PlusPlus,
    models: u32,
    allowance: Span,
    mean_gap_ns: f64,
    now_ns: f64,
    next: u64,
    /// Requests that come in one turn.
    group: u64,
}

/// Requests and batches on their way.
#[derive(Default)]
struct Script {
    requests: VecDeque<(Time, Request)>,
    running: BinaryHeap<Reverse<(Time, u32, u64)>>,
    counted: bool,
    left: u64,
}

impl Host for Script {
    fn poll(&mut self, now: Time, inlet: &mut Inlet) {
        if self.counted { self.excluded_poll(now, inlet) } else { self.look(now, inlet) }
    }

    fn wake_at(&self) -> Time {
        self.running.peek().map_or(Time::NEVER, |Reverse((at, ..))| *at)
    }

    fn start(&mut self, _: Time, launch: &Launch, _: &[Request]) {
        self.running.push(Reverse((launch.finish_at, launch.gpu.0, launch.batch.0)));
    }

    fn answer(&mut self, _: Time, _: ModelId, _: RequestId, _: Outcome) {
        self.left += 1;
    }

    fn finish(&mut self, _: Time, _: &Request) {
        self.left += 1;
    }
}

impl Script {
    /// The load generator is no part of the shard.
    #[inline(never)]
    fn excluded_poll(&mut self, now: Time, inlet: &mut Inlet) {
        self.look(now, inlet);
    }

    #[inline(always)]
    fn look(&mut self, now: Time, inlet: &mut Inlet) {
        while let Some(&Reverse((at, gpu, batch))) = self.running.peek()
            && at <= now
        {
            self.running.pop();
            let domain = DomainId(0);
            inlet.finished.push(Finished { domain, gpu: GpuId(gpu), batch: BatchId(batch), at });
        }
        while let Some((_, request)) = self.requests.pop_front_if(|(at, _)| *at <= now) {
            inlet.arrived.push(request);
        }
    }
}

impl Requests {
    /// So many models at so many requests a second together, with an SLO in ms, in groups, after some time.
    pub(crate) fn warm(models: u32, slo_ms: f64, rate: f64, group: u64) -> Requests {
        let delays = Delays { control: Span::from_micros(100), data: Span::from_micros(50) };
        let profile = LatencyProfile::linear(1.082, 5.204, 128).expect("valid coefficients");
        let gpus = (1.5e-3 * rate) as u32 + 100;
        let settings = Settings { delays, models, gpus, ..Settings::default() };
        let hosts = vec![Script::default()];
        let mut ensemble = Ensemble::new(Rule::ADAPTIVE, &settings, hosts).expect("one shard, one domain");
        for model in (0..models).map(ModelId) {
            let spec = ModelSpec::new([(ClassId(0), profile.clone())]);
            ensemble.control().add_model_on(DomainId(0), model, spec, 0.0, 0).expect("room for it");
        }
        for gpu in (0..gpus).map(GpuId) {
            ensemble.control().join(DomainId(0), gpu, ClassId(0)).expect("there is a domain");
        }
        ensemble.settle(Time::ZERO);
        let mut requests = Requests {
            ensemble,
            random: Xoshiro256PlusPlus::seed_from_u64(1),
            models,
            allowance: Span::from_millis_f64(slo_ms - 2.0),
            mean_gap_ns: 1e9 / rate,
            now_ns: 0.0,
            next: 0,
            group,
        };
        requests.run_with(WARM.max(40 * u64::from(models)), |ensemble, now| ensemble.shard_turn(0, now));
        requests.ensemble.host(0).counted = true;
        requests
    }

    /// Lets so many requests come, and counts the shard's turns.
    pub(crate) fn run(&mut self, count: u64) {
        self.run_with(count, counted_turn);
    }

    fn run_with(&mut self, count: u64, turn: impl Fn(&mut Ensemble<Script>, Time) -> bool) {
        for _ in 0..count {
            let gap: f64 = Exp1.sample(&mut self.random);
            self.now_ns += gap * self.mean_gap_ns;
            let now = Time::from_nanos(self.now_ns as u64);
            let request = Request {
                id: RequestId(self.next),
                model: ModelId(self.random.random_range(0..self.models)),
                deadline: now + self.allowance,
                priority: Priority(0),
                rows: 1,
            };
            self.next += 1;
            self.ensemble.host(0).requests.push_back((now, request));
            if !self.next.is_multiple_of(self.group) {
                continue;
            }
            turn(&mut self.ensemble, now);
            // The matchmaker looks at what there is, and the shard carries out what it is granted, in a turn of its
            // own.
            while self.ensemble.matchmaker_turn(0, now) {
                if self.ensemble.has_orders(0) {
                    turn(&mut self.ensemble, now);
                }
            }
        }
    }
}

#[inline(never)]
fn counted_turn(ensemble: &mut Ensemble<Script>, now: Time) -> bool {
    ensemble.shard_turn(0, now)
}
