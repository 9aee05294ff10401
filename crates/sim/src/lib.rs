//! A cluster in virtual time around Downbeat's scheduler and its rivals.

mod policy;
mod report;
mod rivals;

pub use policy::{Cluster, ModelFacts, Outbox, Policy};
pub use report::{
    Execution, GoodputReport, GpuReport, LoadPoint, ModelReport, PolicyGoodput, RunDetail, RunReport,
};
pub use rivals::{
    BatchCap, Clockwork, ClockworkSettings, Delayed, DelayedSettings, Headroom, Nexus, NexusError,
    NexusSettings, QueueTimeout, Shepherd, ShepherdSettings, Sizes, SloSpan,
};
