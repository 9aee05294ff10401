//! A stage: an shadow for each rule, all of whom hear the same requests at the same times.

use std::collections::BTreeMap;

use super::loss_history::RULE_COUNT;
use crate::{Delays, Event, ModelId, Request, Rule, Span, Time};

use super::per_model_counts::PerModelCounts;
use super::shadow::ShadowScheduler;

/// By less than this the requests of a model are heard later than they come: long beside most bursts and batches, short
/// beside what is remembered.
const DELAY_MOST: Span = Span::from_millis(500);

/// An shadow for each rule.
///
/// On the first stage requests come as they do to the one that serves. On each of the others every model's requests
/// come later by a time of its own. They are the same requests, with the same bursts; but whose bursts meet whose, and
/// which batch finds all devices busy, is another matter on each stage. That is what most losses depend on, so that
/// several stages tell in a few seconds what else would take several times as long.
#[derive(Clone, Debug)]
pub(crate) struct ShadowReplica {
    number: u32,
    /// By the number of the rule.
    cast: [ShadowScheduler; RULE_COUNT],
    /// By when they are heard, and which came first.
    to_come: BTreeMap<(Time, u64), Request>,
    arrived: u64,
}

impl ShadowReplica {
    /// The stage of this number; the first one is 0.
    pub(crate) fn new<I>(
        rules: &[Rule; RULE_COUNT],
        number: u32,
        delays: Delays,
        now: Time,
        introductions: impl Fn() -> I,
    ) -> ShadowReplica
    where
        I: Iterator<Item = Event>,
    {
        let cast = rules.map(|rule| ShadowScheduler::new(rule, delays, now, introductions()));
        ShadowReplica { number, cast, to_come: BTreeMap::new(), arrived: 0 }
    }

    /// How much later a model's requests are heard here. What matters is by how much two models differ: multiples of
    /// the golden ratio, of which only what is behind the point counts, are spread evenly, whichever model's number and
    /// stage's number they are multiples of.
    fn delay(&self, model: ModelId) -> Span {
        const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;
        let part = u64::from(self.number).wrapping_mul(u64::from(model.0)).wrapping_mul(GOLDEN);
        Span::from_nanos(((u128::from(part) * u128::from(DELAY_MOST.as_nanos())) >> 64) as u64)
    }

    /// A request comes in to the one that serves.
    pub(crate) fn arrive(&mut self, now: Time, request: &Request) {
        let delay = self.delay(request.model);
        let heard = Request { deadline: request.deadline + delay, ..*request };
        self.to_come.insert((now + delay, self.arrived), heard);
        self.arrived += 1;
        self.catch_up(now);
    }

    /// Something else happens.
    pub(crate) fn hear(&mut self, now: Time, event: &Event) {
        self.catch_up(now);
        self.cast.iter_mut().for_each(|shadow| shadow.hear(now, event.clone()));
    }

    /// Lets everybody hear what is due.
    fn catch_up(&mut self, now: Time) {
        while let Some(first) = self.to_come.first_entry()
            && first.key().0 <= now
        {
            let ((at, _), request) = first.remove_entry();
            self.cast.iter_mut().for_each(|shadow| shadow.arrive(at, &request));
        }
    }

    /// What is lost by a rule of what came to be heard since this was [cleared](Self::clear_lost).
    pub(crate) fn lost_by(&self, rule: usize) -> &PerModelCounts {
        &self.cast[rule].lost
    }

    pub(crate) fn clear_lost(&mut self) {
        self.cast.iter_mut().for_each(|shadow| shadow.lost.clear());
    }

    /// Forgets a model.
    pub(crate) fn strike(&mut self, model: ModelId) {
        self.to_come.retain(|_, request| request.model != model);
        self.cast.iter_mut().for_each(|shadow| shadow.lost.strike(model));
    }
}

#[cfg(test)]
mod tests {
    use crate::{
        ClassId, Delays, Event, GpuId, LatencyProfile, ModelId, ModelSpec, Priority, Request, RequestId,
        Span, Time,
    };

    use super::super::RULES;
    use super::{DELAY_MOST, ShadowReplica};

    const CLASS: ClassId = ClassId(0);

    /// Two models on one device, which a request of either holds for 10 ms.
    fn stage(number: u32) -> ShadowReplica {
        let model = |model| Event::ModelAdded {
            model: ModelId(model),
            spec: ModelSpec::new([(CLASS, LatencyProfile::linear(1.0, 9.0, 1).unwrap())]),
        };
        let introductions =
            || [model(0), model(1), Event::GpuJoined { gpu: GpuId(0), class: CLASS }].into_iter();
        ShadowReplica::new(&RULES, number, Delays::default(), Time::ZERO, introductions)
    }

    fn at(ms: u64) -> Time {
        Time::ZERO + Span::from_millis(ms)
    }

    /// A request that has 15 ms, which is not enough for another one before it.
    fn arrive(stage: &mut ShadowReplica, model: u32, ms: u64) {
        let (id, model, deadline, priority) = (RequestId(0), ModelId(model), at(ms + 15), Priority(1));
        stage.arrive(at(ms), &Request { id, model, deadline, priority, rows: 1 });
    }

    fn lost(stage: &ShadowReplica) -> [u32; 2] {
        [0, 1].map(|model| stage.lost_by(6).of(ModelId(model)))
    }

    /// Of two that come at the same time one is lost on the first stage, and none on the others; of two of the same
    /// model one is lost on each.
    #[test]
    fn who_meets_whom_is_another_matter_on_each_stage_but_for_those_of_the_same_model() {
        let after = |models: [u32; 2], number| {
            let mut stage = stage(number);
            for ms in (0..1_000).step_by(100) {
                models.into_iter().for_each(|model| arrive(&mut stage, model, ms));
            }
            stage.hear(at(2_000), &Event::Timer);
            lost(&stage).into_iter().sum::<u32>()
        };
        assert_eq!([0, 1, 2, 3].map(|number| after([0, 1], number)), [10, 0, 0, 0]);
        assert_eq!([0, 1, 2, 3].map(|number| after([1, 1], number)), [10; 4]);
    }

    #[test]
    fn no_two_of_a_few_models_are_delayed_alike_and_none_for_long() {
        for number in 1..8 {
            let stage = stage(number);
            let mut delays: Vec<Span> = (0..20).map(|model| stage.delay(ModelId(model))).collect();
            delays.sort_unstable();
            assert!(delays.iter().all(|delay| *delay < DELAY_MOST));
            let close = delays.windows(2).filter(|pair| pair[1] - pair[0] < Span::from_millis(2)).count();
            assert_eq!(close, 0, "on stage {number}: {delays:?}");
        }
        assert!((0..20).all(|model| stage(0).delay(ModelId(model)) == Span::ZERO));
    }

    /// The second of two at once is lost, whenever it comes to be heard, unless its model's number is another's by
    /// then.
    #[test]
    fn what_is_still_to_come_is_struck_too() {
        for struck in [false, true] {
            let mut stage = stage(1);
            (0..2).for_each(|_| arrive(&mut stage, 1, 0));
            if struck {
                stage.strike(ModelId(1));
            }
            stage.hear(at(1_000), &Event::Timer);
            assert_eq!(lost(&stage), [0, u32::from(!struck)]);
            stage.clear_lost();
            assert_eq!(lost(&stage), [0, 0]);
        }
    }
}
