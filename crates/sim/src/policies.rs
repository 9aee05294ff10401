//! Policies by name: `guarded:k=2:drop=window`.

use std::fmt;
use std::str::FromStr;

use downbeat_sched::{
    Deferred, Delays, DropRule, Eager, EarliestFree, GpuOrder, Guarded, Scheduler, SmallestId, TimeoutDrop,
    WindowDrop,
};

use crate::report::RunReport;
use crate::scenario::Scenario;
use crate::simulation::{Until, simulate};

/// A policy with its settings, as people write it: a name, then `:key=value` for each setting that is not the default.
#[derive(Clone, Debug, PartialEq)]
pub struct PolicySpec {
    text: String,
    kind: Kind,
}

#[derive(Clone, Debug, PartialEq)]
enum Kind {
    Core { rule: Rule, drop: Drop, order: Order },
}

/// When a window opens.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Rule {
    Deferred,
    Guarded { k: f64 },
    Eager,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Drop {
    Window,
    Timeout,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Order {
    SmallestId,
    EarliestFree,
}

/// Why a policy cannot be had.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("policy {text:?}: {reason}")]
pub struct PolicyError {
    text: String,
    reason: String,
}

impl PolicySpec {
    /// Every policy with its settings and defaults, for help texts.
    pub fn catalogue() -> String {
        String::new()
    }

    /// The settings to try where the policy leaves them open, to be told which are best; else the policy alone.
    pub fn variants(&self, _scenario: &Scenario) -> Vec<PolicySpec> {
        vec![self.clone()]
    }

    /// Runs the policy on a scenario.
    pub fn run(&self, scenario: &Scenario, seed: u64, until: Until) -> Result<RunReport, PolicyError> {
        match self.kind {
            Kind::Core { rule, drop: Drop::Window, order } => {
                Ok(self.run_with_drop::<WindowDrop>(rule, order, scenario, seed, until))
            }
            Kind::Core { rule, drop: Drop::Timeout, order } => {
                Ok(self.run_with_drop::<TimeoutDrop>(rule, order, scenario, seed, until))
            }
        }
    }

    fn run_with_drop<D: DropRule>(
        &self,
        rule: Rule,
        order: Order,
        scenario: &Scenario,
        seed: u64,
        until: Until,
    ) -> RunReport {
        match order {
            Order::SmallestId => self.run_with_order::<D, SmallestId>(rule, scenario, seed, until),
            Order::EarliestFree => self.run_with_order::<D, EarliestFree>(rule, scenario, seed, until),
        }
    }

    fn run_with_order<D: DropRule, O: GpuOrder>(
        &self,
        rule: Rule,
        scenario: &Scenario,
        seed: u64,
        until: Until,
    ) -> RunReport {
        match rule {
            Rule::Deferred => self.run_core(Deferred::<D, O>::new(), scenario, seed, until),
            Rule::Guarded { k } => self.run_core(Guarded::<D, O>::new(k), scenario, seed, until),
            Rule::Eager => self.run_core(Eager::<D, O>::new(), scenario, seed, until),
        }
    }

    fn run_core<P: downbeat_sched::Policy>(
        &self,
        policy: P,
        scenario: &Scenario,
        seed: u64,
        until: Until,
    ) -> RunReport {
        let delays: Delays = scenario.delays;
        simulate(scenario, seed, self.text.clone(), &mut Scheduler::new(policy, delays), until)
    }
}

impl fmt::Display for PolicySpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl FromStr for PolicySpec {
    type Err = PolicyError;

    fn from_str(text: &str) -> Result<PolicySpec, PolicyError> {
        let fail = |reason: String| PolicyError { text: text.to_owned(), reason };
        let mut parts = text.split(':');
        let name = parts.next().unwrap_or_default();
        let (mut rule, mut drop, mut order) = match name {
            "deferred" => (Rule::Deferred, Drop::Window, Order::SmallestId),
            "guarded" => (Rule::Guarded { k: 2.0 }, Drop::Window, Order::SmallestId),
            "eager" => (Rule::Eager, Drop::Timeout, Order::SmallestId),
            _ => return Err(fail("unknown".into())),
        };
        for part in parts {
            match (part.split_once('='), &mut rule) {
                (Some(("drop", "window")), _) => drop = Drop::Window,
                (Some(("drop", "timeout")), _) => drop = Drop::Timeout,
                (Some(("order", "smallest-id")), _) => order = Order::SmallestId,
                (Some(("order", "earliest-free")), _) => order = Order::EarliestFree,
                (Some(("k", value)), Rule::Guarded { k }) => {
                    *k = value.parse().map_err(|_| fail("k".into()))?;
                }
                _ => return Err(fail(part.to_owned())),
            }
        }
        Ok(PolicySpec { text: text.to_owned(), kind: Kind::Core { rule, drop, order } })
    }
}
