//! What models and requests cost in memory.

#![allow(clippy::unwrap_used, reason = "a test fails where something does")]
#![allow(clippy::print_stdout, reason = "the figures are worth knowing")]

use downbeat_sched::{
    ClassId, GpuId, LatencyProfile, ModelId, ModelSpec, Outcome, Priority, Request, RequestId, Rule, Span,
    Time,
};
use downbeat_shards::{DomainId, Ensemble, Finished, Host, Inlet, Launch, Settings};

#[global_allocator]
static ALLOCATOR: dhat::Alloc = dhat::Alloc;

const MODELS: u32 = 256;
const DOMAIN: DomainId = DomainId(0);
const CLASS: ClassId = ClassId(0);

/// Hands over what a test has prepared.
#[derive(Default)]
struct Prepared {
    requests: Vec<Request>,
    running: Vec<Finished>,
    started: u64,
}

impl Host for Prepared {
    fn poll(&mut self, now: Time, inlet: &mut Inlet) {
        inlet.arrived.append(&mut self.requests);
        inlet.finished.extend(self.running.drain(..).map(|finished| Finished { at: now, ..finished }));
    }

    fn start(&mut self, now: Time, launch: &Launch, _: &[Request]) {
        let Launch { domain, gpu, batch, .. } = *launch;
        self.running.push(Finished { domain, gpu, batch, at: now });
        self.started += 1;
    }

    fn answer(&mut self, _: Time, _: ModelId, _: RequestId, _: Outcome) {}

    fn finish(&mut self, _: Time, _: &Request) {}
}

fn request(id: u64, model: u32, now: Time, within: Span) -> Request {
    let deadline = now + within;
    Request { id: RequestId(id), model: ModelId(model), deadline, priority: Priority(0), rows: 1 }
}

fn bytes() -> usize {
    dhat::HeapStats::get().curr_bytes
}

/// One test, because the allocator counts for the whole process.
#[test]
fn a_model_and_a_queued_request_cost_what_they_may() {
    let _counting = dhat::Profiler::builder().testing().build();
    let settings = |models| Settings { models, gpus: 64, ..Settings::default() };
    let without = {
        let before = bytes();
        let _empty = Ensemble::new(Rule::ADAPTIVE, &settings(1), vec![Prepared::default()]).unwrap();
        bytes() - before
    };
    let before = bytes();
    let mut ensemble = Ensemble::new(Rule::ADAPTIVE, &settings(MODELS), vec![Prepared::default()]).unwrap();
    let control = ensemble.control().clone();
    // As in the measurements of others: batches of up to 128.
    let profile = LatencyProfile::linear(1.082, 5.204, 128).unwrap();
    for model in (0..MODELS).map(ModelId) {
        let spec = ModelSpec::new([(CLASS, profile.clone())]);
        control.add_model(DOMAIN, model, spec, 0.0).unwrap();
    }
    for gpu in (0..64).map(GpuId) {
        control.join(DOMAIN, gpu, CLASS).unwrap();
    }
    // Each has had some traffic, and is idle again.
    let mut now = Time::ZERO;
    for model in 0..MODELS {
        let come = (0..4).map(|id| request(u64::from(model) * 4 + id, model, now, Span::from_millis(100)));
        ensemble.host(0).requests.extend(come);
        now = now + Span::from_millis(2);
        ensemble.settle(now);
    }
    for _ in 0..400 {
        now = now + Span::from_millis(50);
        ensemble.settle(now);
    }
    assert!(ensemble.host(0).started >= u64::from(MODELS) / 2, "there was traffic");
    let per_model = (bytes() - before - without) / MODELS as usize;
    assert!(per_model <= 4_096, "an idle model takes {per_model} bytes");

    // Devices leave, so that requests wait.
    for gpu in (0..64).map(GpuId) {
        control.leave(DOMAIN, gpu, || ()).unwrap();
    }
    ensemble.settle(now);
    let before = bytes();
    let count = 20_000;
    let mut requests: Vec<_> =
        (0..count).map(|id| request((1 << 30) + id, 0, now, Span::from_millis(3_600_000))).collect();
    ensemble.host(0).requests.append(&mut requests);
    drop(requests);
    ensemble.settle(now);
    ensemble.host(0).requests = Vec::new();
    let queued = (bytes() - before) / count as usize;
    println!("an idle model takes {per_model} bytes, a queued request {queued}");
    assert!(queued <= 64, "a queued request takes {queued} bytes");
}
