//! What a simulation found out, as data: printed as JSON, as a table, or drawn as a page.

use std::collections::BTreeMap;

use serde::Serialize;

/// One simulated run of one policy.
#[derive(Clone, Debug, Serialize)]
pub struct RunReport {
    /// The policy, with its settings.
    pub policy: String,
    /// The seed of the arrivals and of the jitter.
    pub seed: u64,
    /// Requests that arrived per second, after warm-up.
    pub offered_rps: f64,
    /// Requests that finished inside their SLO per second.
    pub in_slo_rps: f64,
    /// The largest share of late, dropped or unfinished requests of any model.
    pub bad_rate_worst: f64,
    /// Each model, in the scenario's order.
    pub models: Vec<ModelReport>,
    /// The devices.
    pub gpus: GpuReport,
    /// Batches started after warm-up.
    pub batches: u64,
    /// Requests simulated, warm-up included.
    pub requests_simulated: u64,
    /// Seconds the run took on this machine; 0 until whoever holds a clock fills it in.
    pub wall_s: f64,
    /// What only pictures need.
    #[serde(skip)]
    pub detail: RunDetail,
}

/// One model in one run. Counts are of requests that arrived after warm-up.
#[derive(Clone, Debug, Serialize)]
pub struct ModelReport {
    /// Its name.
    pub name: String,
    /// Requests that arrived.
    pub offered: u64,
    /// Requests that finished inside the SLO.
    pub in_slo: u64,
    /// Requests that finished too late.
    pub late: u64,
    /// Requests answered without running, or still unanswered when the run ended.
    pub expired: u64,
    /// (late + expired) / offered.
    pub bad_rate: f64,
    /// Median latency of the requests that ran.
    pub p50_ms: f64,
    /// 99th percentile latency of the requests that ran.
    pub p99_ms: f64,
    /// Requests per batch.
    pub mean_batch: f64,
}

/// The devices in one run.
#[derive(Clone, Debug, Serialize)]
pub struct GpuReport {
    /// How many there are.
    pub count: usize,
    /// How many carry 99 % of the busy time, the busiest first.
    pub used: usize,
    /// The share of the measured time each was busy, by id.
    pub busy_fraction: Vec<f64>,
}

/// What the page shows of a run beyond its numbers.
#[derive(Clone, Debug, Default)]
pub struct RunDetail {
    /// Per model: how many batches had each size; index 0 is size 1.
    pub batch_sizes: Vec<Vec<u64>>,
    /// Per model: (latency in ms, share of the requests that ran at most that long), rising.
    pub latency_cdf: Vec<Vec<(f64, f64)>>,
    /// Per model: its SLO in ms.
    pub slo_ms: Vec<f64>,
    /// Who ran what when, in a short stretch from the end of warm-up on; what began before and goes on is there too.
    pub timeline: Vec<Execution>,
    /// When warm-up ended, in ms of virtual time.
    pub from_ms: f64,
    /// What is to be known before the numbers are believed, in sentences.
    pub notes: Vec<String>,
}

/// One batch on the timeline.
#[derive(Clone, Copy, Debug)]
pub struct Execution {
    /// The device's id.
    pub gpu: u32,
    /// The model's index.
    pub model: u32,
    /// Requests in the batch.
    pub batch: u32,
    /// When it started, in ms of virtual time.
    pub start_ms: f64,
    /// When it finished, in ms of virtual time.
    pub end_ms: f64,
}

/// The goodput of several policies on one scenario.
#[derive(Clone, Debug, Serialize)]
pub struct GoodputReport {
    /// The scenario's name.
    pub scenario: String,
    /// The rate at which GPU time runs out when every model fills the largest batch its deadline allows.
    pub fluid_bound_rps: f64,
    /// Requests of the rarest model in each run, at least and in the mean: with fewer than some thousands, whether 1 %
    /// are bad is chance.
    pub rarest_requests: u64,
    /// What is to be known before the numbers are believed, in sentences: models that no rate suits, and the like.
    pub notes: Vec<String>,
    /// By policy name, as it was asked for.
    pub policies: BTreeMap<String, PolicyGoodput>,
}

/// The goodput of one policy.
#[derive(Clone, Debug, Serialize)]
pub struct PolicyGoodput {
    /// Mean over the seeds.
    pub goodput_rps: f64,
    /// Largest less smallest over the seeds.
    pub spread_rps: f64,
    /// `goodput_rps` / `fluid_bound_rps`.
    pub ratio_to_bound: f64,
    /// One goodput per seed, in seed order, so that policies can be compared pairwise.
    pub by_seed_rps: Vec<f64>,
    /// With some seed no rate failed up to the end of the search: the goodput is this or more.
    pub capped: bool,
    /// The settings that were best, where the policy was tuned.
    pub settings: String,
    /// The rates that were tried with the first seed, rising.
    pub curve: Vec<LoadPoint>,
    /// A full run at the goodput, first seed.
    #[serde(skip)]
    pub at_goodput: Option<RunReport>,
}

/// What happened at one offered rate.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct LoadPoint {
    /// The offered rate, as it was measured.
    pub offered_rps: f64,
    /// The largest bad rate of any model.
    pub bad_rate_worst: f64,
    /// Requests in SLO per second.
    pub in_slo_rps: f64,
    /// Devices that carry 99 % of the busy time.
    pub gpus_used: usize,
}
