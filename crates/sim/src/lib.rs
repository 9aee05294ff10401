//! A cluster in virtual time around Downbeat's scheduler and its rivals.

mod fluid;
mod policy;
mod report;
mod scenario;
mod workload;

pub use fluid::{fluid_bound_rps, fluid_first_shortage_rps};
pub use policy::{Cluster, ModelFacts, Outbox, Policy};
pub use report::{
    Execution, GoodputReport, GpuReport, LoadPoint, ModelReport, PolicyGoodput, RunDetail, RunReport,
};
pub use scenario::{
    Arrival, GpuClass, Jitter, Model, RatePiece, RateTrace, Scenario, ScenarioError, TraceError,
};
pub use workload::Arrivals;
