//! One understudy: a scheduler that follows one rule throughout.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use downbeat_sched::{
    Action, Actions, Adaptive, BatchId, ClassId, Delays, Event, GpuId, ID_LIMIT, ModelId, Request, RequestId,
    Scheduler, Stance, Time,
};

use crate::tally::Tally;

/// A scheduler that follows one rule throughout, on devices that take as long as their profiles say.
#[derive(Clone, Debug)]
pub(crate) struct Understudy {
    scheduler: Scheduler<Adaptive>,
    finishes: BinaryHeap<Reverse<(Time, GpuId, BatchId)>>,
    timer: Time,
    out: Actions,
    requests: u64,
    /// Requests that it lost. What it starts is in time: it starts nothing else, and its devices are never late.
    pub(crate) lost: Tally,
}

impl Understudy {
    pub(crate) fn new(
        stance: Stance,
        delays: Delays,
        classes: &[ClassId],
        now: Time,
        introductions: impl Iterator<Item = Event>,
    ) -> Understudy {
        let mut understudy = Understudy {
            scheduler: Scheduler::new(Adaptive, delays),
            finishes: BinaryHeap::new(),
            timer: Time::NEVER,
            out: Actions::new(),
            requests: 0,
            lost: Tally::default(),
        };
        let follow = classes.iter().map(|&class| Event::StanceChanged { class, stance });
        introductions.chain(follow).for_each(|event| understudy.tell(now, event));
        understudy
    }

    /// A request comes in, as it does to the one that serves.
    pub(crate) fn arrive(&mut self, now: Time, request: &Request) {
        // By its number it is known whose it was, if it is lost.
        let id = RequestId(self.requests * u64::from(ID_LIMIT) + u64::from(request.model.0));
        self.requests += 1;
        self.hear(now, Event::Arrived(Request { id, ..*request }));
    }

    /// Something happens, after all that was due before.
    pub(crate) fn hear(&mut self, now: Time, event: Event) {
        loop {
            let finish = self.finishes.peek().map_or(Time::NEVER, |&Reverse((at, ..))| at);
            if finish.min(self.timer) > now {
                break;
            }
            // At one instant: what finishes first, so that its device can be used.
            if finish <= self.timer {
                let Some(Reverse((at, gpu, batch))) = self.finishes.pop() else { break };
                self.tell(at, Event::BatchFinished { gpu, batch });
            } else {
                let at = std::mem::replace(&mut self.timer, Time::NEVER);
                self.tell(at, Event::Timer);
            }
        }
        self.tell(now, event);
    }

    fn tell(&mut self, now: Time, event: Event) {
        self.scheduler.handle(now, event, &mut self.out);
        for action in self.out.list() {
            match action {
                Action::Start(start) => {
                    self.finishes.push(Reverse((start.finish_at, start.gpu, start.batch)));
                }
                Action::Answer { request, .. } => {
                    self.lost.count(ModelId((request.0 % u64::from(ID_LIMIT)) as u32));
                }
                Action::ArmTimer { at } => self.timer = (*at).max(now),
            }
        }
        self.out.clear();
    }
}
