//! What a conductor answers.

use std::fmt;

use downbeat_plan::Plan;
use downbeat_transition::{Layout, Transition};
use serde::Serialize;

/// What is to be done.
#[derive(Clone, Debug)]
pub enum Order {
    /// Nothing; where the layout was looked at as a whole, with the reason to keep it.
    Stay(Option<String>),
    /// Let the steps that run end, and begin no more.
    Stop(String),
    /// Change the layout.
    Change(Box<Change>),
}

/// A layout that there is to be, and the way to it.
#[derive(Clone, Debug)]
pub struct Change {
    /// What asked for it.
    pub cause: Cause,
    /// The same in words and numbers.
    pub why: String,
    /// The share of what is expected that is planned for: less than 1 where GPUs are too few.
    pub share: f64,
    /// What each service is planned for, in requests per second.
    pub demand_rps: Vec<f64>,
    /// The layout that there is to be.
    pub plan: Plan,
    /// The same as a transition sees it, with what each instance is counted to serve among its new siblings.
    pub to: Layout,
    /// The steps to it.
    pub transition: Transition,
}

/// What asks for a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// An epoch is over.
    Epoch,
    /// A service outgrows what it has, or will have before it can have more.
    Surge,
    /// A service loses requests, though it has what was reckoned to be enough.
    Overload,
    /// What was there is there no more.
    Loss,
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Cause::Epoch => "epoch",
            Cause::Surge => "surge",
            Cause::Overload => "overload",
            Cause::Loss => "loss",
        })
    }
}
