//! How many GPUs are needed now, told from the scheduler's own signals, with the reason in words and numbers.
//!
//! The scheduler knows, from arrival rates and profiles, how many devices the traffic needs, before any request is late.
//! An [`Autoscaler`] takes that need and the requests that were lost, as [`Signals`], and answers with a [`Decision`]:
//!
//! - *up*, at once, when the traffic needs more than there is, or when requests are lost (a bad rate of rho on N devices
//!   asks for N * rho / (1 - rho) more);
//! - *down*, by whole devices, when fewer would have been enough at every moment of the last minutes;
//! - otherwise it stays. What was given back and had to be fetched again is not given back again at the same load, so
//!   that a constant load never makes it go to and fro.
//!
//! The time that devices were busy decides nothing: devices that the traffic does not need may be used to answer sooner,
//! and are then as busy as the others.
//!
//! With a [`Forecast`], what arrives only after minutes is asked for minutes ahead.
//!
//! Pure: no clock, no I/O; the same signals give the same decisions.
//!
//! ```
//! use downbeat_scale::*;
//! use downbeat_sched::{Span, Time};
//!
//! let mut autoscaler = Autoscaler::new(Settings::between(1, 16)?);
//! let signals = Signals {
//!     now: Time::ZERO + Span::from_millis(15_000),
//!     over: Span::from_millis(15_000),
//!     gpus: 4,
//!     coming: 0,
//!     arrivals: 15_000,
//!     answered: 15_000,
//!     bad: 0,
//!     batches: 1_500,
//!     rows: 15_000,
//!     waiting: 12,
//!     needed: 5.5,
//!     deviation: 0.0,
//!     busy: vec![1.0; 4],
//! };
//! let decision = autoscaler.observe(&signals);
//! assert_eq!((decision.wanted, decision.reason), (6, Reason::Need));
//! # Ok::<(), SettingsError>(())
//! ```

mod autoscaler;
mod decision;
mod forecast;
mod recent;
mod settings;
mod signals;
mod staffing;

pub use autoscaler::Autoscaler;
pub use decision::{Decision, Reason};
pub use forecast::Forecast;
pub use settings::{Settings, SettingsError};
pub use signals::Signals;
