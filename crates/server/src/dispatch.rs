//! Between the frontends and the scheduler: who waits for what, on which device it runs, who gets which answer.
//!
//! [`Dispatcher`] holds the tensors and the clients' ends of all requests, and turns what happens into the scheduler's
//! events and its actions into deeds. Like the scheduler it is told what time it is, so that tests run it in virtual
//! time; [`Runtime`] gives it a thread and a clock.

mod correction;
mod device;
mod dispatcher;
mod instance;
mod job;
mod runtime;
mod scaling;

pub(crate) use dispatcher::{Command, Dispatcher, Outbox};
pub(crate) use instance::{InstanceId, InstanceSpec};
pub(crate) use job::{Batch, Completed, Job, Outputs};
pub(crate) use runtime::Runtime;
#[cfg(test)]
pub(crate) use runtime::forgiven;
