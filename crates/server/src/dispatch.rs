//! Between the frontends and the scheduler: who waits for what, on which device it runs, who gets which answer.
//!
//! ```text
//!   frontends --submit, cancel--> Dispatcher --requests--> EventLoop --> Scheduler                 on one thread
//!   links     --finished------->  Instance (a lock each):  Counter: a shard's host --> shards and matchmaker
//!                                 its requests, its streams       <--start, answer--               on several
//! ```
//!
//! [`Dispatcher`] holds the tensors and the clients' ends of all requests, by the model that they are for. Whoever has
//! to say something does it on their own thread; the scheduler's threads only decide. Like the scheduler, all of it is
//! told what time it is, so that tests run it in virtual time; [`Runtime`] gives it threads and a clock.

mod correction;
mod departure;
mod devices;
mod direct;
mod dispatcher;
mod handle;
mod host;
mod instance;
mod job;
mod numbers;
#[cfg(test)]
mod rehearsed;
mod runtime;
mod scaling;
mod shadow_feed;
mod stream;
mod streams;

pub(crate) use dispatcher::{Command, Dispatcher, Outbox};
pub(crate) use instance::{InstanceId, InstanceSpec};
pub(crate) use job::{Batch, Completed, Job, Outputs};
#[cfg(test)]
pub(crate) use rehearsed::Rehearsed;
#[cfg(test)]
pub(crate) use runtime::GRACE;
pub(crate) use runtime::{Runtime, SchedulerSettings};
