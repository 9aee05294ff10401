//! Who decides how many GPUs there are: Downbeat's autoscaler, and the rules that others use.

use std::collections::VecDeque;

use downbeat_scale::{Autoscaler, Signals};
use downbeat_sched::{Span, Time};

/// How many GPUs there should be, and why where that can be said.
pub(super) struct Ask {
    pub(super) wanted: u32,
    pub(super) reason: String,
    pub(super) explanation: String,
}

/// A rule for the number of GPUs.
pub(super) enum Rule {
    /// Downbeat's.
    Downbeat(Box<Autoscaler>),
    /// Always the same.
    Fixed(u32),
    /// In proportion to something that is measured, as Kubernetes' horizontal pod autoscaler does it.
    Proportional(Proportional),
}

/// What a proportional rule keeps near its target.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Measure {
    /// The share of the time that GPUs are busy.
    Utilisation,
    /// Requests that wait, per GPU.
    Waiting,
}

/// Kubernetes' rule: wanted = ceil(gpus * measured / target), no change within 10 % of the target, down only to the
/// most that was wanted in the last five minutes; every 15 s.
pub(super) struct Proportional {
    measure: Measure,
    target: f64,
    limits: (u32, u32),
    /// The time, and the sum of what was measured and over how long, since the last decision.
    since: Time,
    sum: f64,
    time_s: f64,
    /// What was wanted in the last five minutes.
    wanted: VecDeque<(Time, u32)>,
}

const TOLERANCE: f64 = 0.1;
const PERIOD: Span = Span::from_millis(15_000);
const STABILISATION: Span = Span::from_millis(300_000);

impl Rule {
    pub(super) fn proportional(measure: Measure, target: f64, limits: (u32, u32)) -> Rule {
        Rule::Proportional(Proportional {
            measure,
            target,
            limits,
            since: Time::ZERO,
            sum: 0.0,
            time_s: 0.0,
            wanted: VecDeque::new(),
        })
    }

    pub(super) fn ask(&mut self, signals: &Signals) -> Ask {
        match self {
            Rule::Downbeat(autoscaler) => {
                let decision = autoscaler.observe(signals);
                Ask {
                    wanted: decision.wanted,
                    reason: decision.reason.to_string(),
                    explanation: decision.explanation,
                }
            }
            Rule::Fixed(gpus) => Ask::plain(*gpus, ""),
            Rule::Proportional(rule) => rule.ask(signals),
        }
    }
}

impl Ask {
    fn plain(wanted: u32, reason: &str) -> Ask {
        Ask { wanted, reason: reason.to_owned(), explanation: String::new() }
    }
}

impl Proportional {
    fn ask(&mut self, signals: &Signals) -> Ask {
        let have = signals.gpus + signals.coming;
        let over_s = signals.over.as_secs_f64();
        let gpus = f64::from(signals.gpus.max(1));
        self.sum += over_s
            * match self.measure {
                Measure::Utilisation => signals.busy_gpus() / gpus,
                Measure::Waiting => signals.waiting as f64 / gpus,
            };
        self.time_s += over_s;
        if signals.now.since(self.since) < PERIOD {
            return Ask::plain(have, "");
        }
        let measured = self.sum / self.time_s.max(1e-9);
        (self.since, self.sum, self.time_s) = (signals.now, 0.0, 0.0);
        let ratio = measured / self.target;
        let (min, max) = self.limits;
        let now_wanted = if (ratio - 1.0).abs() <= TOLERANCE {
            signals.gpus
        } else {
            (gpus * ratio - 1e-9).ceil().clamp(0.0, f64::from(u32::MAX)) as u32
        };
        self.wanted.push_back((signals.now, now_wanted));
        while self.wanted.front().is_some_and(|&(at, _)| signals.now.since(at) > STABILISATION) {
            self.wanted.pop_front();
        }
        let most = self.wanted.iter().map(|&(_, wanted)| wanted).max().unwrap_or(now_wanted);
        let wanted = if now_wanted > have { now_wanted } else { most.min(have) };
        let reason = match self.measure {
            Measure::Utilisation => format!("GPUs were busy {:.0} % of the time", 100.0 * measured),
            Measure::Waiting => format!("{measured:.1} requests waited per GPU"),
        };
        Ask::plain(wanted.clamp(min, max), &reason)
    }
}
