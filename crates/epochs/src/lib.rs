//! The loop over hours: what comes in is watched, what will come is forecast, GPUs are partitioned for it, and the way
//! there is planned.
//!
//! A [`Conductor`] is told every few seconds what the scheduler saw of each service ([`Signals`]) and what
//! runs where, and answers with an [`Order`]:
//!
//! - *change*: at the end of an epoch where the layout no longer serves what is expected, or where a GPU can be saved; and
//!   at once where a service outgrows what it has, loses requests, or has lost a GPU. A [`Change`] is a plan
//!   ([`downbeat_plan`]) and the steps to it ([`downbeat_transition`]), both checked.
//! - *stop*: a change that is under way was not meant for the load that there is now; let steps that run end, and begin no more.
//! - *stay*.
//!
//! An [`Undertaking`] is a change that is being carried out: which steps may begin now, which run, what there is in
//! between.
//!
//! Pure: no clock, no I/O. The simulated day and the cluster's controller drive the same code; what is left to them is
//! to carry out steps.

mod conductor;
mod demand;
mod order;
mod settings;
mod supply;
mod undertaking;

pub use conductor::{Conductor, Seen};
pub use downbeat_scale::Signals;
pub use order::{Cause, Change, Order};
pub use settings::Settings;
pub use supply::{Supply, kind};
pub use undertaking::Undertaking;
