//! Downbeat's own policies: from settings that people write to types that the scheduler is compiled for.

use std::convert::Infallible;
use std::fmt;

use downbeat_sched::{
    Deferred, Delays, DropRule, Eager, EarliestFree, GpuOrder, Guarded, Scheduler, SmallestId, TimeoutDrop,
    WindowDrop,
};

use downbeat_understudy::Company;

use crate::domains;
use crate::policy::{Cluster, Policy};
use crate::report::RunReport;
use crate::rivals::setting::{Setting, unknown};
use crate::scenario::Scenario;
use crate::simulation::Until;

/// All there are; `k` is `guarded`'s alone.
const TABLE: [Setting; 3] = [
    Setting { key: "k", values: "a number of 0 or more" },
    Setting { key: "drop", values: "window or timeout" },
    Setting { key: "order", values: "smallest-id or earliest-free" },
];

/// A policy of the scheduler core.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct CoreSettings {
    rule: Rule,
    drop: Drop,
    order: Order,
}

/// When a window opens.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Rule {
    /// Brings its own drop rule and order.
    Adaptive,
    Deferred,
    Guarded {
        k: f64,
    },
    Eager,
}

/// Which requests are given up.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Drop {
    Window,
    Timeout,
}

/// Which idle device is taken.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Order {
    SmallestId,
    EarliestFree,
}

/// What a run needs besides the policy.
struct Job<'a> {
    name: String,
    scenario: &'a Scenario,
    seed: u64,
    until: Until,
}

impl CoreSettings {
    /// The rule with its usual drop rule: without waiting, giving up heads for larger batches only makes them smaller.
    pub(super) fn new(rule: Rule) -> CoreSettings {
        let drop = if rule == Rule::Eager { Drop::Timeout } else { Drop::Window };
        CoreSettings { rule, drop, order: Order::SmallestId }
    }

    /// The settings that its rule has.
    pub(super) fn table(&self) -> &'static [Setting] {
        match self.rule {
            Rule::Adaptive => &[],
            Rule::Deferred | Rule::Eager => &TABLE[1..],
            Rule::Guarded { .. } => &TABLE,
        }
    }

    /// A setting's value, as [`set`](CoreSettings::set) takes it; empty for a key that is not in the table.
    pub(super) fn get(&self, key: &str) -> String {
        match (key, self.rule) {
            ("k", Rule::Guarded { k }) => k.to_string(),
            ("drop", _) => match self.drop {
                Drop::Window => "window".to_owned(),
                Drop::Timeout => "timeout".to_owned(),
            },
            ("order", _) => match self.order {
                Order::SmallestId => "smallest-id".to_owned(),
                Order::EarliestFree => "earliest-free".to_owned(),
            },
            _ => String::new(),
        }
    }

    pub(super) fn set(&mut self, key: &str, value: &str) -> Result<(), String> {
        match (key, value, &mut self.rule) {
            (_, _, Rule::Adaptive) => return Err(unknown(key, self.table())),
            ("drop", "window", _) => self.drop = Drop::Window,
            ("drop", "timeout", _) => self.drop = Drop::Timeout,
            ("drop", ..) => return Err(format!("'{value}' is not a drop rule; write window or timeout")),
            ("order", "smallest-id", _) => self.order = Order::SmallestId,
            ("order", "earliest-free", _) => self.order = Order::EarliestFree,
            ("order", ..) => {
                return Err(format!("'{value}' is not an order; write smallest-id or earliest-free"));
            }
            ("k", _, Rule::Guarded { k }) => {
                let number = value.parse().ok().filter(|k: &f64| k.is_finite() && *k >= 0.0);
                *k = number.ok_or_else(|| format!("k: '{value}' is not a number of 0 or more"))?;
            }
            _ => return Err(unknown(key, self.table())),
        }
        Ok(())
    }

    /// Runs the policy: the one place where names become types.
    pub(super) fn run(&self, name: String, scenario: &Scenario, seed: u64, until: Until) -> RunReport {
        let job = Job { name, scenario, seed, until };
        if self.rule == Rule::Adaptive {
            return job.run_with(Company::new);
        }
        match self.drop {
            Drop::Window => self.run_with_drop::<WindowDrop>(job),
            Drop::Timeout => self.run_with_drop::<TimeoutDrop>(job),
        }
    }

    fn run_with_drop<D: DropRule>(&self, job: Job<'_>) -> RunReport {
        match self.order {
            Order::SmallestId => self.run_with_order::<D, SmallestId>(job),
            Order::EarliestFree => self.run_with_order::<D, EarliestFree>(job),
        }
    }

    fn run_with_order<D: DropRule, O: GpuOrder>(&self, job: Job<'_>) -> RunReport {
        match self.rule {
            Rule::Adaptive => job.run_with(Company::new),
            Rule::Deferred => job.run(&Deferred::<D, O>::new()),
            Rule::Guarded { k } => job.run(&Guarded::<D, O>::new(k)),
            Rule::Eager => job.run(&Eager::<D, O>::new()),
        }
    }
}

impl Job<'_> {
    fn run<P: downbeat_sched::Policy>(self, policy: &P) -> RunReport {
        self.run_with(|delays| Scheduler::new(policy.clone(), delays))
    }

    fn run_with<P: Policy>(self, new: impl Fn(Delays) -> P) -> RunReport {
        let build = |_: &Cluster| Ok::<_, Infallible>(new(self.scenario.delays));
        let Ok(report) = domains::run(self.scenario, self.seed, self.name, self.until, build);
        report
    }
}

impl fmt::Display for CoreSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let written: Vec<String> =
            self.table().iter().map(|it| format!("{}={}", it.key, self.get(it.key))).collect();
        f.write_str(&written.join(":"))
    }
}
