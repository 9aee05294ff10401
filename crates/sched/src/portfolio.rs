//! Portfolio scheduling: shadow schedulers on the same arrivals choose among a handful of rules.
//!
//! Whether it is right to hurry, or to give up a request for others, depends on what follows from it, and no rule that
//! decides by what it sees now is the best everywhere. But what follows can be tried: the same requests, at the same
//! times, given to a scheduler that follows another [`Rule`], with devices that take as long as their profiles say. The
//! requests that each would have lost are compared, as a paired experiment: what the traffic does by chance it does to
//! all of them. K. Deng, J. Song, K. Ren, A. Iosup, "Exploring Portfolio Scheduling for Long-term Execution of
//! Scientific Workloads in IaaS Clouds", SC 2013.
//!
//! Until something is lost no shadow runs, and Downbeat's own rule is followed.
//!
//! Pure, like the scheduler: no clock, no I/O; the same events give the same decisions. [`PortfolioScheduler`] is a
//! scheduler with its shadows on one thread; a server runs a [`RuleSelector`] on a thread of its own.

mod cluster_snapshot;
mod loss_history;
mod per_model_counts;
mod portfolio_scheduler;
mod replica;
mod selector;
mod shadow;

pub use portfolio_scheduler::PortfolioScheduler;
pub use selector::{LossCounts, RuleSelector};

use crate::{DropRule, Rule};

/// The rules to choose from, Downbeat's own first.
pub const RULES: [Rule; 7] = portfolio_of(Rule::ADAPTIVE);

/// The rules to choose from where `own` is the one that serves while nothing is lost.
const fn portfolio_of(own: Rule) -> [Rule; 7] {
    [
        own,
        Rule::DEFERRED,
        Rule::DEFERRED.with_drop(DropRule::Timeout),
        Rule::guarded(1.0),
        Rule::guarded(2.0),
        Rule::guarded(4.0),
        Rule::EAGER.with_drop(DropRule::Window),
    ]
}
