use super::super::per_model_counts::PerModelCounts;
use super::{ALTERNATIVES, LossCounts, MEMORY, RULES, RuleSelector};
use crate::{
    ClassId, Delays, Event, GpuId, LatencyProfile, ModelId, ModelSpec, Priority, Request, RequestId, Rule,
    Span, Time,
};

const CLASS: ClassId = ClassId(0);

fn at(ms: u64) -> Time {
    Time::ZERO + Span::from_millis(ms)
}

/// A model of which a request holds a device for 10 ms, one at a time.
fn added(model: u32) -> Event {
    let spec = ModelSpec::new([(CLASS, LatencyProfile::linear(1.0, 9.0, 1).unwrap())]);
    Event::ModelAdded { model: ModelId(model), spec }
}

fn selector() -> RuleSelector {
    let mut selector = RuleSelector::new(Rule::ADAPTIVE, Delays::default());
    (0..2).for_each(|model| selector.observe(Time::ZERO, &added(model)));
    selector.observe(Time::ZERO, &Event::GpuJoined { gpu: GpuId(0), class: CLASS });
    selector
}

/// A round in which so many requests come, all of which are lost, is decided on.
fn decide(selector: &mut RuleSelector, ms: u64, arrived: u64) {
    selector.count(LossCounts { arrived, lost: arrived, priorities: LossCounts::priority(Priority(1)) });
    selector.decide(at(ms), |_, _| ());
}

/// Whether it was remembered, or was just counted.
#[test]
fn nothing_is_held_against_a_model_that_another_one_with_its_number_lost() {
    for readded_ms in [1_101, 1_900] {
        let mut selector = selector();
        (0..5).for_each(|round| decide(&mut selector, 250 * round, 10));
        for id in 0..3 {
            let (model, deadline) = (ModelId(1), at(1_100 + 15));
            let request = Request { id: RequestId(id), model, deadline, priority: Priority(1), rows: 1 };
            selector.observe(at(1_100), &Event::Arrived(request));
        }
        if readded_ms > 1_500 {
            selector.observe(at(1_400), &Event::GpuLeft { gpu: GpuId(1) });
            decide(&mut selector, 1_500, 3);
            assert!(selector.history.of_models([ModelId(1)].into_iter()).badness(RULES - 1) > 0.0);
        }
        selector.observe(at(readded_ms), &Event::ModelRemoved { model: ModelId(1) });
        selector.observe(at(readded_ms), &added(1));
        assert_eq!(selector.arrived.of(ModelId(1)), 0);
        decide(&mut selector, 2_400, 1);
        let second = selector.history.of_models([ModelId(1)].into_iter());
        assert!(second.badness(RULES - 1).abs() < 1e-12, "added again at {readded_ms} ms");
    }
}

/// A round of a hundred requests of a model, of which each rule loses so many, but for one rule.
fn remember(selector: &mut RuleSelector, most: u32, (one, few): (usize, u32)) {
    let counts = |count: u32| {
        let mut counts = PerModelCounts::default();
        (0..count).for_each(|_| counts.count(ModelId(0)));
        counts
    };
    let lost: [PerModelCounts; RULES] =
        std::array::from_fn(|rule| counts(if rule == one { few } else { most }));
    selector.history.add(&counts(100), &lost.iter());
    selector.reconsider(&mut |_, _| ());
}

/// After as long as is remembered, in which deferral alone lost nothing.
fn following_deferral() -> RuleSelector {
    let mut selector = selector();
    (0..MEMORY).for_each(|_| remember(&mut selector, 10, (1, 0)));
    assert_eq!(selector.followed_on(CLASS), 1);
    selector
}

#[test]
fn another_rule_is_followed_by_the_time_that_the_old_losses_are_forgotten() {
    for best in [0, RULES - 1] {
        let mut selector = following_deferral();
        (0..MEMORY).for_each(|_| remember(&mut selector, 10, (best, 2)));
        assert_eq!(selector.followed_on(CLASS), best);
    }
}

/// For ten seconds deferral loses a little more than others: too little to be told from chance.
#[test]
fn a_difference_within_chance_changes_nothing() {
    let mut selector = following_deferral();
    (0..MEMORY / 2).for_each(|round| remember(&mut selector, 10, (1, 9 + 3 * (round as u32 % 2))));
    assert_eq!(selector.followed_on(CLASS), 1);
}

#[test]
fn shadows_stop_and_the_own_rule_is_followed_after_ten_calm_seconds() {
    let mut selector = selector();
    (0..5).for_each(|round| decide(&mut selector, 250 * round, 10));
    (0..MEMORY).for_each(|_| remember(&mut selector, 10, (1, 0)));
    let mut followed = Vec::new();
    for round in 5..60 {
        selector.count(LossCounts { arrived: 100, lost: 0, priorities: LossCounts::priority(Priority(1)) });
        selector.decide(at(250 * round), |class, rule| followed.push((class, rule)));
    }
    assert!(!selector.is_active());
    assert_eq!(followed.last(), Some(&(CLASS, Rule::ADAPTIVE)));
    assert!(!ALTERNATIVES.contains(&Rule::ADAPTIVE));
}
