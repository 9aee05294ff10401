//! Understudies: schedulers that rehearse the part of the one that serves, each by another rule, and say which of them
//! to follow.
//!
//! Whether it is right to hurry, or to give up a request for others, depends on what follows from it, and no rule that
//! decides by what it sees now is the best everywhere. But what follows can be tried: the same requests, at the same
//! times, given to a scheduler that follows another [`Stance`](downbeat_sched::Stance), with devices that take as long
//! as their profiles say. The requests that each would have lost are compared, as a paired experiment: what the traffic
//! does by chance it does to all of them. (To one of them a hundredth of the requests come twice: see `understudy.rs`.)
//! They rehearse on several stages, on each of which the requests of different models meet at other moments, so that
//! they need less time to know: see `stage.rs`.
//!
//! Until something is lost, nobody rehearses, and `adaptive` follows its own rule. [`Understudies`] are woken by
//! losses, and go to sleep when it is calm and the own rule is followed.
//!
//! Pure, like the scheduler: no clock, no I/O; the same events give the same decisions. [`Company`] is a scheduler with
//! its understudies on one thread, for virtual time; a server lets them rehearse on a thread of their own.

mod company;
mod record;
mod roster;
mod stage;
mod tally;
mod understudies;
mod understudy;

pub use company::Company;
pub use understudies::{Passed, Understudies};
