//! A cluster in virtual time around Downbeat's scheduler and its rivals.

mod account;
mod autoscale;
mod clairvoyant;
mod devices;
mod domains;
mod fluid;
mod goodput;
pub mod html;
mod in_flight;
mod live;
mod policies;
mod policy;
mod quantiles;
mod report;
mod rivals;
mod scenario;
mod simulation;
mod workload;

pub use autoscale::{
    Change, Excuse, MinuteReport, Replay, ReplayError, ReplayReport, ScaledRun, Tally, rises,
};
pub use clairvoyant::{Served, SmallCase};
pub use downbeat_sched::Span;
pub use fluid::{fluid_bound_rps, fluid_first_shortage_rps, fluid_need_gpus};
pub use goodput::{BAD_RATE_MAX, GoodputSearch};
pub use html::{goodput_page, replay_page, run_page};
pub use live::{LiveCluster, LiveOutcome, ModelOutcome};
pub use policies::{PolicyError, PolicySpec};
pub use policy::{Cluster, ModelFacts, Outbox, Policy};
pub use quantiles::Quantiles;
pub use report::{
    Execution, GoodputReport, GpuReport, LoadPoint, ModelReport, PolicyGoodput, RunDetail, RunReport,
};
pub use rivals::{
    BatchCap, Clockwork, ClockworkSettings, Delayed, DelayedSettings, Headroom, Nexus, NexusError,
    NexusSettings, QueueTimeout, Shepherd, ShepherdSettings, Sizes, SloSpan, TurnBatch,
};
pub use scenario::{
    Arrival, Autoscale, Fault, GpuClass, Jitter, Model, Part, RatePiece, RateTrace, Scenario, ScenarioError,
    Subcluster, TraceError,
};
pub use simulation::{Until, simulate};
pub use workload::Arrivals;
