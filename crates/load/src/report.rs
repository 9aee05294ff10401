//! What a run found out, as data: printed as JSON, as a table, or drawn as a page.

use std::collections::BTreeMap;

use serde::Serialize;

/// One run. Requests of the warm-up are in none of the numbers.
#[derive(Clone, Debug, Default, Serialize)]
pub struct LoadReport {
    /// The server.
    pub url: String,
    /// The process of arrivals.
    pub arrival: String,
    /// What the arrivals and the content of requests grew from.
    pub seed: u64,
    /// Seconds that were measured.
    pub duration_s: f64,
    /// The rate that was asked for.
    pub rate_rps: f64,
    /// Requests that were due.
    pub offered: u64,
    /// Requests that were due per second.
    pub offered_rps: f64,
    /// Requests that were answered with a result, in time or not.
    pub completed: u64,
    /// Requests that were answered with a result in time.
    pub in_slo: u64,
    /// The share of the requests that were in time, of models that have an SLO; none without such requests.
    pub in_slo_share: Option<f64>,
    /// The smallest share of any model that has an SLO and had requests.
    pub in_slo_share_worst: Option<f64>,
    /// Requests answered in time per second; of a search, the highest rate that passed.
    pub goodput_rps: f64,
    /// What became of the requests: every one is counted once.
    pub outcomes: BTreeMap<&'static str, u64>,
    /// From when a request should have been sent to its result.
    pub latency_ms: Quantiles,
    /// By how much the client sent requests too late: one in 100 was later.
    pub client_lag_ms_p99: f64,
    /// By how much the client sent requests too late.
    pub client_lag_ms: Quantiles,
    /// Whether the client was punctual enough for the numbers to be the server's.
    pub client_kept_up: bool,
    /// Where the time went, where the server says so in its answers (Downbeat does).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server_ms: Option<ServerTimes>,
    /// Each model, in the order given.
    pub models: Vec<ModelReport>,
    /// Whether it was stopped before its end.
    pub interrupted: bool,
    /// What is to be known before the numbers are believed, in sentences.
    pub notes: Vec<String>,
    /// The search, where there was one; the numbers beside it are of the run at the rate it found.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub search: Option<SearchReport>,
    /// What pictures are drawn from.
    #[serde(flatten)]
    pub detail: Detail,
}

/// One model in a run.
#[derive(Clone, Debug, Default, Serialize)]
pub struct ModelReport {
    /// Its name.
    pub name: String,
    /// Its objective.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slo_ms: Option<f64>,
    /// Requests that were due.
    pub offered: u64,
    /// Requests that were answered with a result in time.
    pub in_slo: u64,
    /// `in_slo` / `offered`; none where there is no SLO, or were no requests.
    pub in_slo_share: Option<f64>,
    /// What became of the requests.
    pub outcomes: BTreeMap<&'static str, u64>,
    /// From when a request should have been sent to its result.
    pub latency_ms: Quantiles,
    /// The first message of each kind of failure.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub errors: BTreeMap<&'static str, String>,
}

/// A distribution of times, of requests with a result. All 0 where there is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Quantiles {
    /// The median.
    pub p50: f64,
    /// One in 10 takes longer.
    pub p90: f64,
    /// One in 100 takes longer.
    pub p99: f64,
    /// One in 1000 takes longer.
    pub p999: f64,
    /// The longest.
    pub max: f64,
    /// The mean.
    pub mean: f64,
}

/// Where the time of a request went.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ServerTimes {
    /// Waiting for its batch to start.
    pub queue: Quantiles,
    /// On the device.
    pub compute: Quantiles,
    /// The rest of the way from client to client: network, codecs, scheduling.
    pub overhead: Quantiles,
}

/// A search for the goodput.
#[derive(Clone, Debug, Default, Serialize)]
pub struct SearchReport {
    /// The share of each model's requests that must be in SLO.
    pub in_slo_share_min: f64,
    /// How far apart the highest rate that passed and the lowest that failed may be.
    pub precision: f64,
    /// The highest rate that the search was allowed to try passed: the goodput is this or more.
    pub capped: bool,
    /// Some rate failed while the client was not punctual: the server may do better.
    pub client_limited: bool,
    /// Every run, in the order made.
    pub probes: Vec<Probe>,
}

/// One run of a search.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Probe {
    /// The rate.
    pub rate_rps: f64,
    /// Whether every model had its share in SLO.
    pub passed: bool,
    /// The smallest share of any model; of a run that was given up early, until then.
    pub in_slo_share_worst: f64,
    /// By how much the client sent requests too late.
    pub client_lag_ms_p99: f64,
    /// The machine stood still for a moment: the client was late by a large part of the tightest SLO.
    pub stalled: bool,
    /// The run was given up when it was sure to fail.
    pub given_up: bool,
}

/// What the page shows of a run beyond its numbers.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Detail {
    /// The run in slices, by when requests were due.
    #[serde(rename = "over_time")]
    pub slices: Vec<SliceReport>,
    /// Per model: (latency in ms, share of the results that took at most that long), rising.
    #[serde(skip)]
    pub latency_cdf: Vec<Vec<(f64, f64)>>,
}

/// A stretch of a run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct SliceReport {
    /// Its middle, in seconds from the end of warm-up.
    pub at_s: f64,
    /// Requests due per second.
    pub offered_rps: f64,
    /// Requests answered in time, per second.
    pub in_slo_rps: f64,
    /// Median latency in ms; not a number where there was no result.
    pub p50_ms: f64,
    /// 99th percentile in ms; not a number where there was no result.
    pub p99_ms: f64,
    /// The longest in ms; not a number where there was no result.
    pub max_ms: f64,
}
