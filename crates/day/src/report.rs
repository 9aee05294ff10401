//! What a day gave, as data.

use serde::Serialize;

/// One simulated day.
#[derive(Clone, Debug, Serialize)]
pub struct DayReport {
    /// The scenario's name.
    pub day: String,
    /// The seed of the arrivals.
    pub seed: u64,
    /// Its length.
    pub duration_s: f64,
    /// How often the layout was looked at as a whole.
    pub epoch_s: f64,
    /// What changed the GPUs' slices.
    pub driver: String,
    /// How long a GPU takes to come.
    pub provision_s: f64,
    /// GPU time paid for, from when a GPU is asked for to when it is given back.
    pub gpu_hours: f64,
    /// The fewest GPUs that were there at the end of any minute, and the most.
    pub gpus_least: u32,
    /// The most.
    pub gpus_most: u32,
    /// GPUs of the one layout that serves every service's peak, planned with the same headroom.
    pub fixed_gpus: u32,
    /// What that would cost over the day.
    pub fixed_gpu_hours: f64,
    /// The share of that which was saved.
    pub saved: f64,
    /// Requests that came in.
    pub requests: u64,
    /// Those that were never answered: none, unless there is a mistake in Downbeat.
    pub lost: u64,
    /// Those that were late, or answered that they cannot be served in time.
    pub bad: u64,
    /// The share of requests in SLO.
    pub in_slo: f64,
    /// Service-minutes of at least 1,000 requests.
    pub service_minutes: u64,
    /// Those of them with less than 99 % in SLO...
    pub missed: u64,
    /// ...and those of these that are in no allowed window.
    pub missed_unexcused: u64,
    /// After a surge or a failure: until GPUs and instances can have come.
    pub windows: Vec<Window>,
    /// The services, in the problem's order.
    pub services: Vec<ServiceDay>,
    /// Each minute.
    pub minutes: Vec<DayMinute>,
    /// Each change of the layout.
    pub changes: Vec<ChangeReport>,
    /// Epochs that left the layout as it was, and orders to stop.
    pub log: Vec<LogLine>,
    /// Each instance from its start to its end.
    pub instances: Vec<InstanceLife>,
    /// Each GPU from when it was asked for to when it was given back.
    pub gpus: Vec<GpuStay>,
    /// What was promised and not kept at some moment: none, unless there is a mistake in Downbeat.
    pub violations: Vec<String>,
    /// What is to be known before the numbers are believed.
    pub notes: Vec<String>,
    /// Seconds it took on this machine; 0 until whoever holds a clock fills it in.
    pub wall_s: f64,
}

/// A time for which too little is excused.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Window {
    /// What began it.
    pub why: String,
    /// When.
    pub from_s: f64,
    /// When it is over.
    pub until_s: f64,
}

/// A service over the day.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ServiceDay {
    /// Its name.
    pub name: String,
    /// Its model.
    pub model: String,
    /// Its objective.
    pub slo_ms: f64,
    /// Requests that came in.
    pub requests: u64,
    /// The share of them in SLO.
    pub in_slo: f64,
    /// The worst minute of at least 1,000 requests; 1 where there is none.
    pub in_slo_worst_minute: f64,
    /// The fewest instances at the end of any minute.
    pub instances_least: u32,
    /// The most.
    pub instances_most: u32,
}

/// One minute of the day.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DayMinute {
    /// GPUs that were there, at its end.
    pub gpus: u32,
    /// GPUs that were asked for and not there yet.
    pub coming: u32,
    /// Requests a second, by service.
    pub rate_rps: Vec<f64>,
    /// What the instances that serve are counted to serve, by service.
    pub capacity_rps: Vec<f64>,
    /// The share of requests in SLO, by service.
    pub in_slo: Vec<f64>,
    /// Instances that serve, by service.
    pub instances: Vec<u32>,
}

/// A change of the layout.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ChangeReport {
    /// When it was decided.
    pub at_s: f64,
    /// When its last step ended; `None` where the day ended before.
    pub ended_s: Option<f64>,
    /// What asked for it.
    pub cause: String,
    /// In words and numbers.
    pub why: String,
    /// What each service was planned for.
    pub demand_rps: Vec<f64>,
    /// GPUs of the new layout.
    pub gpus: u32,
    /// Whether no layout with fewer GPUs exists for that demand.
    pub proved_optimal: bool,
    /// How long it was expected to take, GPUs being there.
    pub expected_s: f64,
    /// GPUs on the way only.
    pub spares: usize,
    /// How many steps were planned.
    pub planned_steps: usize,
    /// The steps that were begun.
    pub steps: Vec<StepRun>,
    /// What is to be known of plan and transition.
    pub notes: Vec<String>,
}

/// A step as it was carried out.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StepRun {
    /// Its number in the transition.
    pub id: u32,
    /// create, delete, migrate or repartition.
    pub kind: String,
    /// The GPU.
    pub gpu: u32,
    /// What it does, in words.
    pub what: String,
    /// When it began.
    pub from_s: f64,
    /// When it ended; `None` where the day ended before.
    pub until_s: Option<f64>,
    /// Whether its GPU failed meanwhile.
    pub failed: bool,
}

/// Something that was decided without a change.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LogLine {
    /// When.
    pub at_s: f64,
    /// What was decided, and why.
    pub what: String,
}

/// An instance from its start to its end.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct InstanceLife {
    /// The GPU.
    pub gpu: u32,
    /// The memory unit that its slice begins at.
    pub start: u8,
    /// How many units its slice has.
    pub size: u8,
    /// How many units the GPU has.
    pub units: u8,
    /// The slice profile.
    pub profile: String,
    /// The service.
    pub service: String,
    /// When its start began.
    pub asked_s: f64,
    /// When it began to serve; `None` where it never did.
    pub from_s: Option<f64>,
    /// When it stopped; `None` where it did not.
    pub until_s: Option<f64>,
}

/// A GPU from when it was asked for to when it was given back or failed.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct GpuStay {
    /// Its number.
    pub gpu: u32,
    /// When it was asked for.
    pub from_s: f64,
    /// When it was given back; `None` where it was not.
    pub until_s: Option<f64>,
}
