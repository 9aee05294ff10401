//! One shadow: a scheduler that follows one rule throughout.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::{
    Action, Actions, BatchId, Delays, Event, GpuId, ID_LIMIT, ModelId, Outcome, Request, RequestId, Rule,
    Scheduler, Time,
};

use super::RULES;
use super::per_model_counts::PerModelCounts;

/// Every so many requests one comes twice to whoever follows [`RULES[2]`].
///
/// That rule keeps heads that make batches too small to keep up. Close to what the devices can take it loses fewest for
/// a while, until a queue grows and it loses nearly everything from one moment to the next; nothing that it lost before
/// says so. With a hundredth more to do it breaks down sooner than the one that serves, which leaves it then, mostly
/// before it has lost much itself.
const TWICE_IF_LENIENT: u64 = 100;

/// A bit in the number of a request that came for the second time, which is not counted if it is lost.
const COPY: u64 = 1 << 63;

/// A scheduler that follows one rule throughout, on devices that take as long as their profiles say.
#[derive(Clone, Debug)]
pub(crate) struct ShadowScheduler {
    rule: Rule,
    scheduler: Scheduler,
    finishes: BinaryHeap<Reverse<(Time, GpuId, BatchId)>>,
    timer: Time,
    out: Actions,
    arrived: u64,
    /// Requests that it lost. What it starts is in time: it starts nothing else, and its devices are never late.
    pub(crate) lost: PerModelCounts,
}

impl ShadowScheduler {
    pub(crate) fn new(
        rule: Rule,
        delays: Delays,
        now: Time,
        introductions: impl Iterator<Item = Event>,
    ) -> ShadowScheduler {
        let mut shadow = ShadowScheduler {
            rule,
            scheduler: Scheduler::new(rule, delays),
            finishes: BinaryHeap::new(),
            timer: Time::NEVER,
            out: Actions::new(),
            arrived: 0,
            lost: PerModelCounts::default(),
        };
        introductions.for_each(|event| shadow.hear(now, event));
        shadow
    }

    /// A request comes in, as it does to the one that serves, or twice.
    pub(crate) fn arrive(&mut self, now: Time, request: &Request) {
        // By its number it is known whose it was, if it is lost.
        let number = self.arrived * u64::from(ID_LIMIT) + u64::from(request.model.0);
        self.arrived += 1;
        self.hear(now, Event::Arrived(Request { id: RequestId(number), ..*request }));
        if self.rule == RULES[2] && self.arrived.is_multiple_of(TWICE_IF_LENIENT) {
            self.hear(now, Event::Arrived(Request { id: RequestId(number | COPY), ..*request }));
        }
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
                Action::Answer { request, outcome: Outcome::Expired | Outcome::Overloaded, .. }
                    if request.0 & COPY == 0 =>
                {
                    self.lost.count(ModelId((request.0 % u64::from(ID_LIMIT)) as u32));
                }
                // What could not have been served by any rule is not lost by this one, and nobody waits for a copy.
                Action::Answer { .. } => {}
                Action::ArmTimer { at } => self.timer = (*at).max(now),
            }
        }
        self.out.clear();
    }
}

#[cfg(test)]
mod tests {
    use crate::{
        ClassId, Delays, Event, GpuId, LatencyProfile, ModelId, ModelSpec, Priority, Request, RequestId,
        Rule, Span, Time,
    };

    use rand::SeedableRng;
    use rand_distr::{Distribution, Exp};
    use rand_xoshiro::Xoshiro256PlusPlus;

    use super::{RULES, ShadowScheduler};

    const CLASS: ClassId = ClassId(0);

    /// What an shadow loses of so many requests a second that come at random, for a hundred seconds, on a device
    /// that takes 100 of them a second, one at a time.
    fn lost(rule: Rule, rate: u64) -> u32 {
        let spec = ModelSpec::new([(CLASS, LatencyProfile::linear(5.0, 5.0, 1).unwrap())]);
        let introductions =
            [Event::ModelAdded { model: ModelId(0), spec }, Event::GpuJoined { gpu: GpuId(0), class: CLASS }];
        let mut shadow = ShadowScheduler::new(rule, Delays::default(), Time::ZERO, introductions.into_iter());
        let mut random = Xoshiro256PlusPlus::seed_from_u64(7);
        let gap = Exp::new(rate as f64).unwrap();
        let mut now = Time::ZERO;
        for _ in 0..100 * rate {
            now = now + Span::from_secs_f64(gap.sample(&mut random));
            let deadline = now + Span::from_millis(40);
            let (id, model, priority) = (RequestId(0), ModelId(0), Priority(1));
            shadow.arrive(now, &Request { id, model, deadline, priority, rows: 1 });
        }
        shadow.lost.of(ModelId(0))
    }

    /// Of batches of one request both rules give up the same ones.
    #[test]
    fn the_rule_that_breaks_down_without_warning_has_a_hundredth_more_to_do() {
        let [deferred, lenient] = [RULES[1], RULES[2]].map(|rule| lost(rule, 90));
        assert!(deferred > 200 && lenient > deferred + deferred / 50, "{lenient}, and {deferred}");
        assert!(lenient < deferred + deferred / 5, "{lenient}, and {deferred}");
    }

    /// At ten times what the device can take, it takes 10,000 of 100,000. Of the thousand copies nearly all are lost:
    /// with them it would be 91,000.
    #[test]
    fn a_copy_that_is_lost_is_not_counted() {
        let lenient = lost(RULES[2], 1_000);
        assert!((89_500..=90_500).contains(&lenient), "{lenient}");
    }
}
