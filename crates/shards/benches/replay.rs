//! Recorded traces through the threads, in real time, against the single-threaded scheduler on the same arrivals.
//!
//! `cargo bench -p downbeat-shards --bench replay`, or with `-- SECONDS`. Decisions on threads are as good where the
//! shares of requests inside their SLO differ by less than 2 %.

#![allow(clippy::print_stdout, reason = "a benchmark prints its results")]
#![expect(clippy::disallowed_methods, reason = "a replay takes as long as the trace")]

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use downbeat_sched::{
    BatchId, ClassId, GpuId, ModelId, ModelSpec, Outcome, Request, RequestId, Rule, Scheduler, Span, Time,
};
use downbeat_shards::{Clock, DomainId, EmulatedDevices, Finished, Host, Inlet, Launch, Runtime, Settings};
use downbeat_sim::{Arrivals, Scenario, Until, simulate};

const SCENARIOS: [&str; 4] =
    ["one-model-8gpu", "eight-models-8gpu", "mixed-24-models-8gpu", "zipf-100-models-32gpu"];

/// Well below the knee, where every decision counts and none is hopeless.
const LOAD: f64 = 0.85;

const SHARDS: usize = 2;
const SEED: u64 = 1;

/// Replays the arrivals of some models.
struct Replay {
    /// By time.
    requests: VecDeque<(Time, Request)>,
    reserve: Span,
    measured_from: Time,
    devices: Arc<EmulatedDevices>,
    running: BinaryHeap<Reverse<(Time, u32, u64)>>,
    offered: u64,
    in_slo: u64,
    batches: u64,
    rows: u64,
}

impl Host for Replay {
    fn poll(&mut self, now: Time, inlet: &mut Inlet) {
        while let Some(&Reverse((at, gpu, batch))) = self.running.peek()
            && at <= now
        {
            self.running.pop();
            let (domain, gpu, batch) = (DomainId(0), GpuId(gpu), BatchId(batch));
            inlet.finished.push(Finished { domain, gpu, batch, at });
        }
        while let Some((at, request)) = self.requests.pop_front_if(|(at, _)| *at <= now) {
            self.offered += u64::from(at >= self.measured_from);
            inlet.arrived.push(request);
        }
    }

    fn wake_at(&self) -> Time {
        let arrival = self.requests.front().map_or(Time::NEVER, |(at, _)| *at);
        self.running.peek().map_or(arrival, |Reverse((at, ..))| arrival.min(*at))
    }

    fn start(&mut self, now: Time, launch: &Launch, requests: &[Request]) {
        let finish_at = self.devices.send(launch.gpu, launch.ready_at, launch.latency);
        self.running.push(Reverse((finish_at, launch.gpu.0, launch.batch.0)));
        if now >= self.measured_from {
            self.batches += 1;
            self.rows += requests.len() as u64;
        }
    }

    fn answer(&mut self, _: Time, _: ModelId, _: RequestId, _: Outcome) {}

    fn finish(&mut self, now: Time, request: &Request) {
        self.in_slo += u64::from(request.id.0 >= MEASURED && now <= request.deadline + self.reserve);
    }
}

/// Numbers from here on are of requests that count.
const MEASURED: u64 = 1 << 40;

fn main() {
    let seconds = std::env::args().filter_map(|argument| argument.parse().ok()).next().unwrap_or(10.0);
    println!(
        "## Traces through {SHARDS} shards and a matchmaker, {seconds} s at {LOAD} of each scenario's rate\n"
    );
    println!(
        "| scenario | requests | in SLO, one thread | in SLO, threads | ratio | batch, one thread | batch, threads |"
    );
    println!("|---|---|---|---|---|---|---|");
    for name in SCENARIOS {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios").join(format!("{name}.toml"));
        let mut scenario = Scenario::load(&path).unwrap_or_else(|error| panic!("{error}"));
        scenario.duration = Span::from_secs_f64(seconds);
        scenario.warmup = Span::from_secs_f64(1.0);
        // What the operating system delays is kept off the deadline, for both.
        scenario.response_reserve = Span::from_millis(2);
        let scenario = scenario.with_rate(LOAD * scenario.total_rps);
        let mut single = Scheduler::new(Rule::ADAPTIVE, scenario.delays);
        let report = simulate(&scenario, SEED, "adaptive".to_owned(), &mut single, Until::End);
        let offered: u64 = report.models.iter().map(|model| model.offered).sum();
        let in_slo: u64 = report.models.iter().map(|model| model.in_slo).sum();
        let one = in_slo as f64 / offered.max(1) as f64;
        let batch = in_slo as f64 / report.batches.max(1) as f64;
        let threads = replay(&scenario);
        let many = threads.in_slo as f64 / threads.offered.max(1) as f64;
        println!(
            "| {name} | {} | {:.3} % | {:.3} % | {:.4} | {batch:.1} | {:.1} |",
            threads.offered,
            100.0 * one,
            100.0 * many,
            many / one,
            threads.rows as f64 / threads.batches.max(1) as f64,
        );
    }
}

/// What came of a replay.
struct Came {
    offered: u64,
    in_slo: u64,
    batches: u64,
    rows: u64,
}

fn replay(scenario: &Scenario) -> Came {
    let clock = Clock::start();
    let begin = clock.now() + Span::from_millis(200);
    let cluster = scenario.cluster();
    let devices = Arc::new(EmulatedDevices::new(cluster.gpus.len()));
    let end = Time::ZERO + scenario.duration;
    let hosts = (0..SHARDS).map(|shard| {
        let mut requests = Vec::new();
        for index in (0..scenario.models.len()).filter(|index| index % SHARDS == shard) {
            let facts = &cluster.models[index];
            let mut arrivals = Arrivals::new(&scenario.models[index].arrival, facts.rate_rps, SEED, index);
            loop {
                let at = arrivals.next();
                if at >= end {
                    break;
                }
                let at_clock = begin + at.since_origin();
                requests.push((at, at_clock, ModelId(index as u32), at_clock + facts.slo));
            }
        }
        requests.sort_by_key(|(at, _, model, _)| (*at, *model));
        let requests = (0u64..).zip(requests).map(|(number, (at, at_clock, model, deadline))| {
            let mark = if at.since_origin() >= scenario.warmup { MEASURED } else { 0 };
            let id = RequestId(mark + number * SHARDS as u64 + shard as u64);
            let priority = scenario.models[model.0 as usize].priority;
            (at_clock, Request { id, model, deadline, priority, rows: 1 })
        });
        Replay {
            requests: requests.collect(),
            reserve: scenario.response_reserve,
            measured_from: begin + scenario.warmup,
            devices: Arc::clone(&devices),
            running: BinaryHeap::new(),
            offered: 0,
            in_slo: 0,
            batches: 0,
            rows: 0,
        }
    });
    let settings = Settings {
        delays: scenario.delays,
        models: scenario.models.len() as u32,
        gpus: cluster.gpus.len() as u32,
        ..Settings::default()
    };
    let runtime = Runtime::start(Rule::ADAPTIVE, &settings, clock, hosts.collect())
        .unwrap_or_else(|error| panic!("{error}"));
    for (index, facts) in cluster.models.iter().enumerate() {
        let profiles = (0..).map(ClassId).zip(&facts.profiles);
        let profiles: Vec<_> =
            profiles.filter_map(|(class, profile)| Some((class, profile.clone()?))).collect();
        let model = ModelId(index as u32);
        let (spec, shard) = (ModelSpec::new(profiles), index % SHARDS);
        runtime.add_model_on(DomainId(0), model, spec, facts.rate_rps, shard).expect("room for it");
    }
    for (gpu, class) in (0..).map(GpuId).zip(&cluster.gpus) {
        runtime.join(DomainId(0), gpu, *class).expect("there is a domain");
    }
    thread::sleep(Duration::from_secs_f64(scenario.duration.as_secs_f64() + 1.5));
    let mut came = Came { offered: 0, in_slo: 0, batches: 0, rows: 0 };
    for host in runtime.stop().unwrap_or_else(|error| panic!("{error}")) {
        came.offered += host.offered;
        came.in_slo += host.in_slo;
        came.batches += host.batches;
        came.rows += host.rows;
    }
    came
}
