//! A shard alone, without the thread around it: from a request's arrival to its batch's end.

use std::collections::VecDeque;

use downbeat_sched::{
    BatchId, ClassId, ClassSet, Delays, GpuId, Grant, LatencyProfile, ModelId, ModelSpec, Need, Outlook,
    Priority, Release, Request, RequestId, Room, Rule, Shard, Span, Time,
};
use rand::SeedableRng;
use rand_distr::{Distribution, Exp1};
use rand_xoshiro::Xoshiro256PlusPlus;

/// A cluster with devices to spare.
struct Plenty;

impl Outlook for Plenty {
    fn room(&self, _: ClassId, _: Priority) -> Room {
        Room { headroom: 1.3, ..Room::default() }
    }

    fn head_start(&self, _: ClassId, _: Span, _: Need) -> Span {
        Span::ZERO
    }
}

/// A shard with one model, which is granted a device when its window opens.
pub(crate) struct Core {
    shard: Shard,
    running: VecDeque<(Time, BatchId)>,
    random: Xoshiro256PlusPlus,
    allowance: Span,
    mean_gap_ns: f64,
    now_ns: f64,
    next: u64,
    left: u64,
}

impl Core {
    /// A model with an SLO in ms and so many requests a second, after some time.
    pub(crate) fn warm(slo_ms: f64, rate: f64) -> Core {
        let delays = Delays { control: Span::from_micros(100), data: Span::from_micros(50) };
        let profile = LatencyProfile::linear(1.082, 5.204, 128).expect("valid coefficients");
        let mut shard = Shard::new(delays, Rule::ADAPTIVE.margin, 0, 1);
        shard.suppress_updates(Span::from_micros(200));
        shard.add(ModelId(0), ModelSpec::new([(ClassId(0), profile)]));
        shard.set_present(ClassSet::from_bits(1));
        let mut core = Core {
            shard,
            running: VecDeque::new(),
            random: Xoshiro256PlusPlus::seed_from_u64(1),
            allowance: Span::from_millis_f64(slo_ms - 2.0),
            mean_gap_ns: 1e9 / rate,
            now_ns: 0.0,
            next: 0,
            left: 0,
        };
        for _ in 0..20_000 {
            let (now, request) = core.draw();
            core.request(now, &request);
        }
        core
    }

    pub(crate) fn run(&mut self, count: u64) {
        for _ in 0..count {
            let (now, request) = self.draw();
            counted_request(self, now, &request);
        }
    }

    fn draw(&mut self) -> (Time, Request) {
        let gap: f64 = Exp1.sample(&mut self.random);
        self.now_ns += gap * self.mean_gap_ns;
        let now = Time::from_nanos(self.now_ns as u64);
        let id = RequestId(self.next);
        self.next += 1;
        let deadline = now + self.allowance;
        (now, Request { id, model: ModelId(0), deadline, priority: Priority(0), rows: 1 })
    }

    #[inline(always)]
    fn request(&mut self, now: Time, request: &Request) {
        let Core { shard, running, left, .. } = self;
        while let Some((at, batch)) = running.pop_front_if(|(at, _)| *at <= now) {
            shard.finish(at, batch, |_| *left += 1);
        }
        while let Some(model) = shard.due(now) {
            shard.offer(now, model, &Plenty);
        }
        if shard.arrive(now, request) != Ok(true) {
            return;
        }
        let opens_at = |shard: &mut Shard| {
            let offer = shard.offer(now, request.model, &Plenty)?;
            offer.candidates.first().map(|candidate| candidate.frontrun)
        };
        while opens_at(shard).is_some_and(|frontrun| frontrun <= now) {
            let grant = Grant {
                model: request.model,
                gpu: GpuId(0),
                life: 0,
                class: ClassId(0),
                free_at: Time::ZERO,
                reason: Release::Window,
            };
            let Some(taken) = shard.take(now, &grant) else { break };
            running.push_back((taken.finish_at, taken.batch));
        }
    }
}

#[inline(never)]
fn counted_request(core: &mut Core, now: Time, request: &Request) {
    core.request(now, request);
}
