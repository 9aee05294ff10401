//! A scheduler with its shadows on one thread.

use super::{LossCounts, RuleSelector};
use crate::{Action, Actions, ClassId, Delays, Event, ModelId, Need, Outcome, Rule, Scheduler, Time};

/// A scheduler with its shadows, as one state machine.
#[derive(Clone, Debug)]
pub struct PortfolioScheduler {
    scheduler: Scheduler,
    selector: RuleSelector,
}

impl PortfolioScheduler {
    /// A scheduler without models and devices, whose own rule is `rule`.
    pub fn new(rule: Rule, delays: Delays) -> PortfolioScheduler {
        PortfolioScheduler {
            scheduler: Scheduler::new(rule, delays),
            selector: RuleSelector::new(rule, delays),
        }
    }

    /// As [`Scheduler::handle`].
    pub fn handle(&mut self, now: Time, event: Event, out: &mut Actions) {
        let PortfolioScheduler { scheduler, selector } = self;
        selector.observe(now, &event);
        let mut counts = LossCounts::default();
        if let Event::Arrived(request) = &event {
            (counts.arrived, counts.priorities) = (1, LossCounts::priority(request.priority));
        }
        let before = out.list().len();
        scheduler.handle(now, event, out);
        for action in &out.list()[before..] {
            if let Action::Answer { outcome: Outcome::Expired | Outcome::Overloaded, .. } = action {
                counts.lost += 1;
            }
        }
        selector.count(counts);
        // Where nothing comes in there is nothing to decide by.
        if counts.arrived > 0 {
            selector.decide(now, |class, rule| {
                scheduler.handle(now, Event::RuleChanged { class, rule }, out);
            });
        }
    }

    /// As [`Scheduler::waiting`].
    pub fn waiting(&self, model: ModelId) -> usize {
        self.scheduler.waiting(model)
    }

    /// As [`Scheduler::need`].
    pub fn need(&self, class: ClassId) -> Need {
        self.scheduler.need(class)
    }
}
