//! The schedulers that Downbeat is measured against, each as its authors meant it.
//!
//! Every file names its source, lists its settings with their defaults, and says where it departs from what was
//! published. Where a departure was unavoidable it is in the rival's favour: a rival that loses because it was built
//! badly proves nothing.
//!
//! All of them are work-conserving at the device: a batch is sent with the earliest start the network allows and the
//! device begins it as soon as it is through with what it was sent before. Only the decision what to send, and when,
//! differs.

mod alarm;
mod clockwork;
mod delayed;
mod devices;
mod nexus;
mod queue;
pub(crate) mod setting;
mod shepherd;
#[cfg(test)]
mod tests;

pub use clockwork::{Clockwork, ClockworkSettings, Sizes};
pub use delayed::{BatchCap, Delayed, DelayedSettings, QueueTimeout};
pub use nexus::{Headroom, Nexus, NexusError, NexusSettings, TurnBatch};
pub use setting::SloSpan;
pub use shepherd::{Shepherd, ShepherdSettings};
