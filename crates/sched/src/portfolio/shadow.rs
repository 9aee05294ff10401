//! A scheduler in shadow mode: it follows one rule, and nothing that it starts runs anywhere.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::per_model_counts::PerModelCounts;
use crate::{Action, Actions, BatchId, Delays, Event, GpuId, Outcome, Request, Rule, Scheduler, Time};

/// A scheduler that follows one rule throughout, on devices that take as long as their profiles say.
#[derive(Clone, Debug)]
pub(super) struct ShadowScheduler {
    scheduler: Scheduler,
    finishes: BinaryHeap<Reverse<(Time, GpuId, BatchId)>>,
    timer: Time,
    out: Actions,
    /// Requests that it lost. What it starts is in time: it starts nothing else, and its devices are never late.
    pub(super) lost: PerModelCounts,
}

impl ShadowScheduler {
    /// A shadow that begins with the models and devices that `introductions` announce.
    pub(super) fn new(
        rule: Rule,
        delays: Delays,
        now: Time,
        introductions: impl Iterator<Item = Event>,
    ) -> ShadowScheduler {
        let mut shadow = ShadowScheduler {
            scheduler: Scheduler::new(rule, delays),
            finishes: BinaryHeap::new(),
            timer: Time::NEVER,
            out: Actions::new(),
            lost: PerModelCounts::default(),
        };
        introductions.for_each(|event| shadow.observe(now, event));
        shadow
    }

    /// A request comes in, as it does to the scheduler that serves.
    pub(super) fn arrive(&mut self, now: Time, request: &Request) {
        self.observe(now, Event::Arrived(*request));
    }

    /// Something happens, after all that was due before.
    pub(super) fn observe(&mut self, now: Time, event: Event) {
        loop {
            let finish = self.finishes.peek().map_or(Time::NEVER, |&Reverse((at, ..))| at);
            if finish.min(self.timer) > now {
                break;
            }
            // At one instant: what finishes first, so that its device can be used.
            if finish <= self.timer {
                let Some(Reverse((at, gpu, batch))) = self.finishes.pop() else { break };
                self.handle(at, Event::BatchFinished { gpu, batch });
            } else {
                let at = std::mem::replace(&mut self.timer, Time::NEVER);
                self.handle(at, Event::Timer);
            }
        }
        self.handle(now, event);
    }

    fn handle(&mut self, now: Time, event: Event) {
        self.scheduler.handle(now, event, &mut self.out);
        for action in self.out.list() {
            match action {
                Action::Start(start) => {
                    self.finishes.push(Reverse((start.finish_at, start.gpu, start.batch)));
                }
                Action::Answer { model, outcome: Outcome::Expired | Outcome::Overloaded, .. } => {
                    self.lost.count(*model);
                }
                // What could not have been served by any rule is not lost by this one.
                Action::Answer { .. } => {}
                Action::ArmTimer { at } => self.timer = (*at).max(now),
            }
        }
        self.out.clear();
    }
}
