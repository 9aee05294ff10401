//! Rules: when a window opens, which requests are given up, which idle device is taken.
//!
//! A rule is data. The policies of the literature are values of it with names; what serves can change its rule while it
//! runs, one class of devices at a time.

mod guard;

use std::fmt;

pub use guard::Guard;

/// A scheduling rule.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rule {
    /// How early windows open.
    pub head_start: HeadStart,
    /// Which requests are given up for others.
    pub drop: DropRule,
    /// Which idle device is taken first.
    pub order: GpuOrder,
    /// A batch starts early, before its window opens, as long as more than so many devices of the class stay idle; where
    /// there are fewer devices than that, as long as one is idle. `None`: devices are left idle until windows open.
    ///
    /// Trunk reservation: traffic that can wait is let in only while some trunks are free, for the sake of traffic that
    /// cannot. P. Key, "Optimal control and trunk reservation in loss networks", Probability in the Engineering and
    /// Informational Sciences 4, 1990: a small number is nearly optimal, whatever the load.
    pub reserve: Option<u32>,
    /// Whether deadlines are kept with a margin for batches that take longer than their profile, learned from those
    /// that did.
    pub margin: bool,
}

/// How long before its frontrun a batch may start.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum HeadStart {
    /// So many times the work that waits per device: none for 0, all the time for infinity.
    Backlog(f64),
    /// The time for which a batch waits for a device where others want one too: see [`Guard`].
    Wait,
}

/// Which requests are given up so that those behind them can run in a larger batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DropRule {
    /// Only requests that could not finish even alone.
    Timeout,
    /// Heads that stand in the way of the largest batch that the traffic can sustain.
    ///
    /// Holds the throughput when there is more load than devices, where [`Timeout`](DropRule::Timeout) spends every
    /// batch on requests that are nearly dead; gives up too much when there is less.
    Window,
    /// Heads that stand in the way of the smallest batch that keeps up with the traffic.
    ///
    /// A batch smaller than the one that is gathered costs more device time per row. With headroom h that is affordable
    /// up to h times the cost of the gathered batch: the queue gets shorter all the same, and no request is given up for
    /// nothing. Below that size the queue would grow, every batch would be spent on requests that are nearly dead, and
    /// it would not recover. Without headroom this is [`Window`](DropRule::Window), with plenty
    /// [`Timeout`](DropRule::Timeout).
    SmallestStable,
}

/// Which of several idle devices is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GpuOrder {
    /// The device with the smallest id: load gathers on few devices, and what is too much is whole idle ones.
    SmallestId,
    /// The device that has been idle for longest: load goes round, as in the public code of Symphony's authors.
    EarliestFree,
}

impl Rule {
    /// Downbeat's own: deferral with a guard for the time that a device is waited for.
    pub const ADAPTIVE: Rule = Rule {
        head_start: HeadStart::Wait,
        drop: DropRule::SmallestStable,
        order: GpuOrder::SmallestId,
        reserve: Some(1),
        margin: true,
    };

    /// Symphony's: a batch waits until one more request could no longer join it for free.
    ///
    /// Lequn Chen et al., "Symphony: Optimized DNN Model Serving using Deferred Batch Scheduling", arXiv 2308.07470.
    pub const DEFERRED: Rule = Rule::guarded(0.0);

    /// Work-conserving dispatch: whenever a device is idle, it takes the most urgent batch at once.
    ///
    /// The rule that most serving systems follow in some form; here with the same batches and device orders as the
    /// others, so that nothing but the waiting differs. Without waiting, to give up heads for larger batches only makes
    /// them smaller.
    pub const EAGER: Rule = Rule::guarded(f64::INFINITY).with_drop(DropRule::Timeout);

    /// Deferral guarded by the backlog: windows open earlier by `k` times the work that waits per device.
    ///
    /// With little waiting this is nearly Symphony's rule; under contention it turns into eager dispatch. Pure deferral
    /// loses there, because a window of microseconds passes before a device is found.
    pub const fn guarded(k: f64) -> Rule {
        Rule {
            head_start: HeadStart::Backlog(k),
            drop: DropRule::Window,
            order: GpuOrder::SmallestId,
            reserve: None,
            margin: false,
        }
    }

    /// The same rule, with spare devices left idle.
    pub const fn without_early_starts(self) -> Rule {
        Rule { reserve: None, ..self }
    }

    /// The same rule with another drop rule.
    pub const fn with_drop(self, drop: DropRule) -> Rule {
        Rule { drop, ..self }
    }

    /// The same rule with another order of devices.
    pub const fn with_order(self, order: GpuOrder) -> Rule {
        Rule { order, ..self }
    }

    /// Whether a batch never waits while a device is idle.
    pub fn is_eager(&self) -> bool {
        self.head_start == HeadStart::Backlog(f64::INFINITY)
    }
}

impl Default for Rule {
    fn default() -> Self {
        Rule::ADAPTIVE
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let usual = match self.head_start {
            HeadStart::Wait => return f.write_str("own"),
            HeadStart::Backlog(0.0) => {
                f.write_str("deferred")?;
                DropRule::Window
            }
            HeadStart::Backlog(f64::INFINITY) => {
                f.write_str("eager")?;
                DropRule::Timeout
            }
            HeadStart::Backlog(k) => {
                write!(f, "guarded:k={k}")?;
                DropRule::Window
            }
        };
        match self.drop {
            drop if drop == usual => Ok(()),
            DropRule::Window => f.write_str(":drop=window"),
            DropRule::Timeout => f.write_str(":drop=timeout"),
            DropRule::SmallestStable => f.write_str(":drop=smallest-stable"),
        }
    }
}
