//! A scheduler and its understudies on one thread.

use downbeat_sched::{Action, Actions, Adaptive, Delays, Event, Outcome, Scheduler, Time};

use crate::{Passed, Understudies};

/// A scheduler that follows [`Adaptive`], with its understudies, as one state machine: for virtual time.
#[derive(Clone, Debug)]
pub struct Company {
    lead: Scheduler<Adaptive>,
    understudies: Understudies,
}

impl Company {
    /// Without models and devices.
    pub fn new(delays: Delays) -> Company {
        Company { lead: Scheduler::new(Adaptive, delays), understudies: Understudies::new(delays) }
    }

    /// As [`Scheduler::handle`].
    pub fn handle(&mut self, now: Time, event: Event, out: &mut Actions) {
        let Company { lead, understudies } = self;
        understudies.hear(now, &event);
        let mut passed = Passed::default();
        if let Event::Arrived(request) = &event {
            (passed.arrived, passed.levels) = (1, Passed::level(request.priority));
        }
        let before = out.list().len();
        lead.handle(now, event, out);
        for action in &out.list()[before..] {
            if let Action::Answer { outcome: Outcome::Expired | Outcome::Overloaded, .. } = action {
                passed.lost += 1;
            }
        }
        understudies.count(passed);
        // Where nothing comes in there is nothing to decide by.
        if passed.arrived > 0 {
            understudies.decide(now, |class, stance| {
                lead.handle(now, Event::StanceChanged { class, stance }, out);
            });
        }
    }
}
