//! A scheduler and its selector on one thread.

use super::{LossCounts, RuleSelector};
use crate::{Action, Actions, ClassId, Delays, Event, ModelId, Need, Outcome, Rule, Scheduler, Time};

/// A scheduler and the selector that chooses its rule, as one state machine: for virtual time.
#[derive(Clone, Debug)]
pub struct PortfolioScheduler {
    lead: Scheduler,
    selector: RuleSelector,
}

impl PortfolioScheduler {
    /// A scheduler without models and devices, which follows `rule` while nothing is lost.
    pub fn new(rule: Rule, delays: Delays) -> PortfolioScheduler {
        PortfolioScheduler { lead: Scheduler::new(rule, delays), selector: RuleSelector::new(rule, delays) }
    }

    /// As [`Scheduler::waiting`].
    pub fn waiting(&self, model: ModelId) -> usize {
        self.lead.waiting(model)
    }

    /// As [`Scheduler::need`].
    pub fn need(&self, class: ClassId) -> Need {
        self.lead.need(class)
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
