//! A cluster in virtual time around Downbeat's scheduler and its rivals.

mod html;
mod policy;
mod report;

pub use html::{goodput_page, run_page};
pub use policy::{Cluster, ModelFacts, Outbox, Policy};
pub use report::{
    Execution, GoodputReport, GpuReport, LoadPoint, ModelReport, PolicyGoodput, RunDetail, RunReport,
};
