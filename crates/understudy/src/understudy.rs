//! One understudy: a scheduler that follows one rule throughout.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use downbeat_sched::{
    Action, Actions, Adaptive, BatchId, Delays, Event, GpuId, ID_LIMIT, ModelId, Outcome, Request, RequestId,
    Scheduler, Stance, Time,
};

use crate::tally::Tally;

/// Every so many requests one comes twice to whoever follows [`Stance::Lenient`].
///
/// That rule keeps heads that make batches too small to keep up. Close to what the devices can take it loses fewest for a while, until a queue grows and it
/// loses nearly everything from one moment to the next; nothing that it lost before says so. With a hundredth more to do it breaks down first, and is left
/// before those whom it serves notice.
const TWICE_IF_LENIENT: u64 = 100;

/// A scheduler that follows one rule throughout, on devices that take as long as their profiles say.
#[derive(Clone, Debug)]
pub(crate) struct Understudy {
    stance: Stance,
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
        now: Time,
        introductions: impl Iterator<Item = Event>,
    ) -> Understudy {
        let mut understudy = Understudy {
            stance,
            scheduler: Scheduler::new(Adaptive, delays),
            finishes: BinaryHeap::new(),
            timer: Time::NEVER,
            out: Actions::new(),
            requests: 0,
            lost: Tally::default(),
        };
        introductions.for_each(|event| understudy.hear(now, event));
        understudy
    }

    /// A request comes in, as it does to the one that serves.
    pub(crate) fn arrive(&mut self, now: Time, request: &Request) {
        self.take(now, request);
        if self.stance == Stance::Lenient && self.requests.is_multiple_of(TWICE_IF_LENIENT) {
            self.take(now, request);
        }
    }

    fn take(&mut self, now: Time, request: &Request) {
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
        // The first device of a class may come at any time.
        if let Event::GpuJoined { class, .. } = event {
            self.tell(now, Event::StanceChanged { class, stance: self.stance });
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
                Action::Answer { request, outcome: Outcome::Expired | Outcome::Overloaded } => {
                    self.lost.count(ModelId((request.0 % u64::from(ID_LIMIT)) as u32));
                }
                // What could not have been served by any rule is not lost by this one.
                Action::Answer { .. } => {}
                Action::ArmTimer { at } => self.timer = (*at).max(now),
            }
        }
        self.out.clear();
    }
}

#[cfg(test)]
mod tests {
    use downbeat_sched::{Delays, ModelId, Priority, Request, RequestId, Stance, Time};

    use super::Understudy;

    #[test]
    fn to_the_one_that_breaks_down_without_warning_one_in_a_hundred_comes_twice() {
        let request = Request {
            id: RequestId(0),
            model: ModelId(0),
            deadline: Time::NEVER,
            priority: Priority::default(),
            rows: 1,
        };
        let taken = |stance| {
            let mut understudy = Understudy::new(stance, Delays::default(), Time::ZERO, std::iter::empty());
            (0..1_000).for_each(|_| understudy.arrive(Time::ZERO, &request));
            understudy.requests
        };
        let lenient = |stance| stance == Stance::Lenient;
        assert_eq!(
            Stance::ALL.map(taken),
            Stance::ALL.map(|stance| if lenient(stance) { 1_010 } else { 1_000 })
        );
    }
}
