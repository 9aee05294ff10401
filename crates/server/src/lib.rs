//! The inference server: frontends, the scheduler's runtime, links to workers, metrics.
//!
//! ```text
//!   client -> frontend -> Service (answers) -> Dispatcher -> shards, matchmaker -> Switchboard -> Hub -> worker process
//!                                                                                                          Engine
//!   client <- frontend <- oneshot           <- Dispatcher                                      <- Hub <-
//! ```
//!
//! [`server::serve`] puts it all together. What runs where: the frontends and the `control` task on tokio, the
//! scheduler on threads of its own, two threads for each connection to a worker. The dispatcher is where they meet.

#![allow(clippy::disallowed_types, reason = "this is where real time begins")]
#![allow(clippy::disallowed_methods, reason = "this is where real time begins")]

mod admission;
mod answers;
mod catalogue;
mod clock;
mod control;
mod device;
mod dispatch;
mod files;
pub mod frontend;
#[doc(hidden)]
pub mod fuzzing;
mod intake;
mod link;
mod metrics;
pub mod profiler;
mod profiles;
#[cfg(test)]
mod rehearsal;
pub mod server;
pub mod service;
pub mod settings;
pub mod subcluster;
mod supervisor;
mod vital;
pub mod worker;

pub use admission::{Admission, Permit};
pub use device::{DeviceKind, DeviceSpec, DeviceSpecError};
