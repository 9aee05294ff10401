//! A scheduler and its selector on one thread.

use super::{LossCounts, RuleSelector};
use crate::{Action, Actions, Delays, Event, Outcome, Rule, Scheduler, Time};

/// A scheduler that follows [`Adaptive`], with its selector, as one state machine: for virtual time.
#[derive(Clone, Debug)]
pub struct PortfolioScheduler {
    lead: Scheduler,
    selector: RuleSelector,
}

impl PortfolioScheduler {
    /// Without models and devices.
    pub fn new(delays: Delays) -> PortfolioScheduler {
        PortfolioScheduler {
            lead: Scheduler::new(Rule::ADAPTIVE, delays),
            selector: RuleSelector::new(delays),
        }
    }

    /// As [`Scheduler::handle`].
    pub fn handle(&mut self, now: Time, event: Event, out: &mut Actions) {
        let PortfolioScheduler { lead, selector } = self;
        selector.hear(now, &event);
        let mut counts = LossCounts::default();
        if let Event::Arrived(request) = &event {
            (counts.arrived, counts.levels) = (1, LossCounts::level(request.priority));
        }
        let before = out.list().len();
        lead.handle(now, event, out);
        for action in &out.list()[before..] {
            if let Action::Answer { outcome: Outcome::Expired | Outcome::Overloaded, .. } = action {
                counts.lost += 1;
            }
        }
        selector.count(counts);
        // Where nothing comes in there is nothing to decide by.
        if counts.arrived > 0 {
            selector.decide(now, |class, rule| {
                lead.handle(now, Event::RuleChanged { class, rule }, out);
            });
        }
    }
}
