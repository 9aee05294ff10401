//! Downbeat's own policies: from settings that people write to rules.

use std::convert::Infallible;
use std::fmt;

use downbeat_sched::{Delays, DropRule, GpuOrder, HeadStart, PortfolioScheduler, Rule, Scheduler};

use crate::domains;
use crate::policy::{Cluster, Policy};
use crate::report::RunReport;
use crate::rivals::setting::{Setting, unknown};
use crate::scenario::Scenario;
use crate::simulation::Until;

/// All there are; `k` is `guarded`'s alone.
const TABLE: [Setting; 4] = [
    Setting { key: "k", values: "a number of 0 or more" },
    Setting { key: "drop", values: "window, timeout or smallest-stable" },
    Setting { key: "order", values: "smallest-id or earliest-free" },
    Setting { key: "reserve", values: "none, or devices that early starts leave idle" },
];

/// A policy of the scheduler core.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum CoreSettings {
    /// The scheduler as it serves: the scenario's own rule with a portfolio of others. It has no settings.
    Portfolio,
    /// One rule throughout.
    Fixed(Rule),
}

/// What a run needs besides the policy.
struct Job<'a> {
    name: String,
    scenario: &'a Scenario,
    seed: u64,
    until: Until,
}

impl CoreSettings {
    /// The settings that its rule has.
    pub(super) fn table(&self) -> &'static [Setting] {
        match self {
            CoreSettings::Portfolio => &[],
            CoreSettings::Fixed(rule) if has_factor(rule) => &TABLE,
            CoreSettings::Fixed(_) => &TABLE[1..],
        }
    }

    /// A setting's value, as [`set`](CoreSettings::set) takes it; empty for a key that is not in the table.
    pub(super) fn get(&self, key: &str) -> String {
        let CoreSettings::Fixed(rule) = self else { return String::new() };
        match (key, rule.head_start) {
            ("k", HeadStart::Backlog(k)) if has_factor(rule) => k.to_string(),
            ("drop", _) => match rule.drop {
                DropRule::Window => "window".to_owned(),
                DropRule::Timeout => "timeout".to_owned(),
                DropRule::SmallestStable => "smallest-stable".to_owned(),
            },
            ("order", _) => match rule.order {
                GpuOrder::SmallestId => "smallest-id".to_owned(),
                GpuOrder::EarliestFree => "earliest-free".to_owned(),
            },
            ("reserve", _) => rule.reserve.map_or_else(|| "none".to_owned(), |devices| devices.to_string()),
            _ => String::new(),
        }
    }

    pub(super) fn set(&mut self, key: &str, value: &str) -> Result<(), String> {
        let table = self.table();
        let CoreSettings::Fixed(rule) = self else { return Err(unknown(key, table)) };
        match (key, value) {
            ("drop", "window") => rule.drop = DropRule::Window,
            ("drop", "timeout") => rule.drop = DropRule::Timeout,
            ("drop", "smallest-stable") => rule.drop = DropRule::SmallestStable,
            ("drop", _) => {
                return Err(format!(
                    "'{value}' is not a drop rule; write window, timeout or smallest-stable"
                ));
            }
            ("order", "smallest-id") => rule.order = GpuOrder::SmallestId,
            ("order", "earliest-free") => rule.order = GpuOrder::EarliestFree,
            ("order", _) => {
                return Err(format!("'{value}' is not an order; write smallest-id or earliest-free"));
            }
            ("reserve", "none") => rule.reserve = None,
            ("reserve", _) => {
                let devices =
                    value.parse().map_err(|_| format!("reserve: '{value}' is not a number of devices"))?;
                rule.reserve = Some(devices);
            }
            ("k", _) if has_factor(rule) => {
                let k = value.parse().ok().filter(|k: &f64| k.is_finite() && *k >= 0.0);
                let k = k.ok_or_else(|| format!("k: '{value}' is not a number of 0 or more"))?;
                rule.head_start = HeadStart::Backlog(k);
            }
            _ => return Err(unknown(key, table)),
        }
        Ok(())
    }

    /// Runs the policy.
    pub(super) fn run(&self, name: String, scenario: &Scenario, seed: u64, until: Until) -> RunReport {
        let job = Job { name, scenario, seed, until };
        match *self {
            CoreSettings::Portfolio => job.run(|delays| PortfolioScheduler::new(scenario.rule, delays)),
            CoreSettings::Fixed(rule) => job.run(|delays| Scheduler::new(rule, delays)),
        }
    }
}

/// Whether a rule is `guarded`, whose factor may be any, and not one of those that have theirs.
fn has_factor(rule: &Rule) -> bool {
    *rule != Rule { drop: rule.drop, order: rule.order, reserve: rule.reserve, ..Rule::DEFERRED }
        && !rule.is_eager()
}

impl Job<'_> {
    fn run<P: Policy>(self, new: impl Fn(Delays) -> P) -> RunReport {
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
