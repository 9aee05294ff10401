//! Autoscaling in virtual time: a scenario is run while its GPUs come and go, by Downbeat's autoscaler and by others.
//!
//! [`Replay`] runs them all on the same arrivals and compares: what each paid for, and which requests were bad. Every
//! cluster is run by Downbeat's own scheduler; only the number of GPUs differs.

mod compare;
mod elastic;
mod foresight;
mod ledger;
mod outcome;
mod report;
mod rules;
mod surges;

#[cfg(test)]
mod tests;

pub use compare::{Replay, ReplayError};
pub(crate) use ledger::Ledger;
pub use ledger::Tally;
pub use report::{Change, Excuse, MinuteReport, ReplayReport, ScaledRun};
pub use surges::rises;
