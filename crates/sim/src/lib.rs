//! A cluster in virtual time around Downbeat's scheduler and its rivals.

mod policy;

pub use policy::{Cluster, ModelFacts, Outbox, Policy};
