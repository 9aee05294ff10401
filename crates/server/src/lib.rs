//! The inference server: frontends, the scheduler's runtime, links to workers, metrics.

pub mod frontend;
pub mod service;
