//! Downbeat's scheduler on threads: models on shards, devices with matchmakers.
//!
//! ```text
//!   requests -> Shard (some models each)  --candidates: a latest-wins mailbox for each model-->  Matchmaker (devices)
//!               one thread each           --reports: a bounded queue------------------------->   one thread for
//!                                         <-grants: a bounded queue---------------------------   each domain
//! ```
//!
//! The same [`Shard`](downbeat_sched::Shard) and [`Matchmaker`](downbeat_sched::Matchmaker) as in the single-threaded
//! [`Scheduler`](downbeat_sched::Scheduler), in another composition. Requests never touch a matchmaker, so that its
//! work follows the number of batches; models that have nothing to say cost it nothing.
//!
//! [`Runtime`] starts the threads. Where requests come from and batches go to is a [`Host`] for each shard, on the
//! shard's thread. [`Load`] is one that makes up its requests and emulates the devices: the benchmark.
//!
//! Nothing here is unsafe code: what threads share is words, and the words are atomics. The three ways in which they
//! are shared (`ring`, `mailbox`, `bell`) are model-checked with loom.

mod bell;
mod mailbox;
mod ring;
mod sync;

#[cfg(not(loom))]
mod assembly;
#[cfg(not(loom))]
mod balance;
#[cfg(not(loom))]
mod clock;
#[cfg(not(loom))]
mod control;
#[cfg(not(loom))]
mod desk;
#[cfg(not(loom))]
mod ensemble;
#[cfg(not(loom))]
mod host;
#[cfg(not(loom))]
mod load;
#[cfg(not(loom))]
mod matchmaking;
#[cfg(not(loom))]
mod message;
#[cfg(not(loom))]
mod pin;
#[cfg(not(loom))]
mod posting;
#[cfg(not(loom))]
mod pressure_table;
#[cfg(not(loom))]
mod rhythm;
#[cfg(not(loom))]
mod runtime;
#[cfg(not(loom))]
mod seat;
#[cfg(not(loom))]
mod settings;

#[cfg(not(loom))]
pub use clock::Clock;
#[cfg(not(loom))]
pub use control::Control;
#[cfg(not(loom))]
pub use ensemble::Ensemble;
#[cfg(not(loom))]
pub use host::{DomainId, Finished, Host, Inlet, Launch};
#[cfg(not(loom))]
pub use load::{EmulatedDevices, LagReport, Load, LoadError, LoadReport};
#[cfg(not(loom))]
pub use posting::CLASSES_PER_MODEL;
#[cfg(not(loom))]
pub use rhythm::{forgiven, wake_up_on_time};
#[cfg(not(loom))]
pub use runtime::Runtime;
#[cfg(not(loom))]
pub use settings::{MOST_THREADS, RuntimeError, Settings};
