//! When no rule that does not know the future can have enough: after a surge or a failure, until new GPUs are there.

use downbeat_sched::Span;

use super::report::Excuse;
use crate::scenario::{Arrival, Model, Scenario};

/// A rise of the total rate by this share from one second to the next is a surge.
const SURGE: f64 = 0.05;

/// How long after the GPUs that it takes can be there a surge is over.
const GRACE: Span = Span::from_millis(30_000);

/// The times after surges and failures for which too few GPUs are excused.
pub(super) fn excuses(scenario: &Scenario, provision: Span) -> Vec<Excuse> {
    let surges = rises(scenario).into_iter().map(|at| (at, "surge"));
    let failures = scenario.faults.iter().map(|fault| (fault.at, "failure"));
    let mut excuses: Vec<Excuse> = surges
        .chain(failures)
        .filter(|&(at, _)| at < scenario.duration)
        .map(|(at, why)| Excuse {
            why: why.to_owned(),
            from_s: at.as_secs_f64(),
            until_s: (at + provision + GRACE).as_secs_f64(),
        })
        .collect();
    excuses.sort_by(|a, b| a.from_s.total_cmp(&b.from_s));
    excuses
}

/// When the total rate that a scenario's traces tell rises by more than 5 % at once.
pub fn rises(scenario: &Scenario) -> Vec<Span> {
    let second = Span::from_millis(1_000);
    let mut steps: Vec<Span> =
        scenario.models.iter().flat_map(|model| steps(model, scenario.duration)).collect();
    steps.sort_unstable();
    steps.dedup();
    let risen = |&at: &Span| {
        at > second && {
            let (before, after) = (rate_at(scenario, at - second), rate_at(scenario, at + second));
            after > before * (1.0 + SURGE)
        }
    };
    steps.into_iter().filter(risen).collect()
}

/// When the rate of a model changes.
fn steps(model: &Model, until: Span) -> Vec<Span> {
    let Arrival::Trace(trace) = &model.arrival else { return Vec::new() };
    let passes = until.as_nanos() / trace.length().as_nanos().max(1);
    let pass = |number: u64| trace.pieces().iter().map(move |piece| trace.length() * number + piece.end);
    (0..=passes.min(1_000)).flat_map(pass).collect()
}

/// The total rate that is to be expected, in requests a second.
pub(super) fn rate_at(scenario: &Scenario, at: Span) -> f64 {
    let rate = |model: &Model| {
        let mean = model.share * scenario.total_rps;
        let Arrival::Trace(trace) = &model.arrival else { return mean };
        let offset = at.as_nanos() % trace.length().as_nanos().max(1);
        let piece = trace.pieces().iter().find(|piece| offset < piece.end.as_nanos());
        mean * piece.map_or(0.0, |piece| piece.rate) / trace.mean_rate()
    };
    scenario.models.iter().map(rate).sum()
}
