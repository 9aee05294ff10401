use crate::{
    ClassId, Delays, Event, GpuId, LatencyProfile, ModelId, ModelSpec, Priority, Request, RequestId, Rule,
    Span, Time,
};

use super::super::per_model_counts::PerModelCounts;
use super::{LATELY, LossCounts, MEMORY, RuleSelector};

const CLASS: ClassId = ClassId(0);

fn at(ms: u64) -> Time {
    Time::ZERO + Span::from_millis(ms)
}

/// A model of which a request holds a device for 10 ms, one at a time.
fn added(model: u32) -> Event {
    let spec = ModelSpec::new([(CLASS, LatencyProfile::linear(1.0, 9.0, 1).unwrap())]);
    Event::ModelAdded { model: ModelId(model), spec }
}

fn with(models: u32) -> RuleSelector {
    let mut selector = RuleSelector::new(Rule::ADAPTIVE, Delays::default());
    (0..models).for_each(|model| selector.hear(Time::ZERO, &added(model)));
    selector.hear(Time::ZERO, &Event::GpuJoined { gpu: GpuId(0), class: CLASS });
    selector
}

/// A round in which so many requests come, all of which are lost, is decided on.
fn decide(selector: &mut RuleSelector, ms: u64, arrived: u64) {
    selector.count(LossCounts { arrived, lost: arrived, levels: LossCounts::level(Priority(1)) });
    selector.decide(at(ms), |_, _| ());
}

/// How many stages there are after each of these rounds, the ends of which are so many milliseconds apart.
fn stages(models: u32, rounds: &[(u64, u64)]) -> Vec<usize> {
    let mut selector = with(models);
    let mut now = 0;
    let after = |&(ms, arrived): &(u64, u64)| {
        now += ms;
        decide(&mut selector, now, arrived);
        selector.stages.len()
    };
    rounds.iter().map(after).collect()
}

#[test]
fn the_more_there_is_to_hear_the_fewer_stages_there_are() {
    let at_first = |models, arrived| stages(models, &[(0, arrived)])[0];
    assert_eq!(
        [10, 1_000, 1_001, 2_000, 2_001, 50_000].map(|arrived| at_first(5, arrived)),
        [4, 4, 3, 2, 1, 1]
    );
    assert_eq!([1, 2, 1_000, 1_500, 2_500].map(|models| at_first(models, 10)), [1, 4, 4, 2, 1]);
}

/// Who has not heard a model from the first is no help before it has heard as much as the others.
#[test]
fn in_a_surge_stages_go_and_none_comes_until_they_have_slept() {
    let rounds = [100, 1_500, 100, 10_000, 100].map(|arrived| (250, arrived));
    assert_eq!(stages(5, &rounds), [4, 2, 2, 1, 1]);
}

#[test]
fn what_came_in_until_a_late_decision_is_no_surge() {
    assert_eq!(stages(5, &[(0, 300), (250, 300), (4_000, 4_700), (250, 300)]), [4, 4, 4, 4]);
}

/// Awake on four stages, with one request of a model and two of another that come at once, of which only one can be in
/// time where they are heard at once: that is so for both models on the first stage only.
fn with_two_to_come() -> RuleSelector {
    let mut selector = with(2);
    for round in 0..5 {
        decide(&mut selector, 250 * round, 10);
    }
    assert_eq!(selector.stages.len(), 4);
    for model in [0, 1, 1] {
        let (id, model, deadline) = (RequestId(0), ModelId(model), at(1_100 + 15));
        let request = Request { id, model, deadline, priority: Priority(1), rows: 1 };
        selector.hear(at(1_100), &Event::Arrived(request));
    }
    selector
}

/// Of three at once on the first stage two are lost; on each of the others, where the two models are apart, one of the
/// second's.
#[test]
fn what_is_lost_on_all_stages_is_remembered() {
    let mut selector = with_two_to_come();
    selector.hear(at(2_000), &Event::GpuLeft { gpu: GpuId(1) });
    decide(&mut selector, 2_000, 3);
    let models = || [0, 1].into_iter().map(ModelId);
    let bad = selector.record.about(models()).bad(6);
    let shares = [0.0, (2.0 + 3.0) / (4.0 * 2.0 + 20.0)];
    let expected = shares.map(|share: f64| share.powi(4)).iter().sum::<f64>().sqrt().sqrt();
    assert!((bad - expected).abs() < 1e-9, "{bad}, not {expected}");
}

/// Whether it was remembered, was just counted, or is still to be heard.
#[test]
fn nothing_is_held_against_a_model_that_another_one_with_its_number_lost() {
    for (readded_ms, decided_ms) in [(1_101, 2_000), (1_900, 2_000), (2_100, 2_000)] {
        let mut selector = with_two_to_come();
        let mut steps = [(readded_ms, true), (decided_ms, false)];
        steps.sort_unstable();
        for (ms, readded) in steps {
            if readded {
                selector.hear(at(ms), &Event::ModelRemoved { model: ModelId(1) });
                selector.hear(at(ms), &added(1));
                assert_eq!(selector.arrived.of(ModelId(1)), 0);
            } else {
                selector.hear(at(ms), &Event::GpuLeft { gpu: GpuId(1) });
                decide(&mut selector, ms, 3);
            }
        }
        decide(&mut selector, 2_400, 1);
        let second = selector.record.about([ModelId(1)].into_iter());
        assert!(second.bad(6).abs() < 1e-12, "added again at {readded_ms} ms");
    }
}

/// What each rule loses of a hundred requests of the only model in a round: so many, but for these.
type Losses = (u32, &'static [(usize, u32)]);

fn remember(selector: &mut RuleSelector, (most, few): Losses) {
    let counts = |count| {
        let mut counts = PerModelCounts::default();
        (0..count).for_each(|_| counts.count(ModelId(0)));
        counts
    };
    let lost = |rule| counts(few.iter().find(|(of, _)| *of == rule).map_or(most, |(_, lost)| *lost));
    selector.record.add(&counts(100), 1, lost);
    selector.reconsider(|_, _| ());
}

/// After a minute in which deferral alone lost nothing.
fn who_follows_deferral() -> RuleSelector {
    let mut selector = with(1);
    (0..MEMORY).for_each(|_| remember(&mut selector, (10, &[(1, 0)])));
    assert_eq!(selector.followed_on(CLASS), 1);
    selector
}

/// After how many rounds of such losses deferral is not followed any more, and what is.
fn next_followed(losses: Losses) -> (usize, usize) {
    let mut selector = who_follows_deferral();
    for round in 1..2 * MEMORY {
        remember(&mut selector, losses);
        let followed = selector.followed_on(CLASS);
        if followed != 1 {
            return (round, followed);
        }
    }
    panic!("it was still followed after two minutes");
}

#[test]
fn what_the_last_seconds_contradict_is_forgotten() {
    for best in [0, 6] {
        let losses: Losses = if best == 0 { (10, &[(0, 2)]) } else { (10, &[(6, 2)]) };
        let (rounds, followed) = next_followed(losses);
        assert_eq!(followed, best);
        assert!(rounds <= LATELY, "{rounds} rounds until {best} is followed");
    }
}

#[test]
fn once_the_own_rule_loses_nothing_it_is_followed_in_seconds() {
    let (rounds, followed) = next_followed((0, &[]));
    assert_eq!(followed, 0);
    assert!(rounds <= LATELY, "{rounds}");
}

/// For ten seconds deferral loses a little more than others: too little to be told from chance.
#[test]
fn what_happens_by_chance_is_no_contradiction() {
    let mut selector = who_follows_deferral();
    for _ in 0..LATELY {
        remember(&mut selector, (10, &[(1, 9)]));
        remember(&mut selector, (10, &[(1, 12)]));
    }
    let lately = selector.record.about_last(LATELY, [ModelId(0)].into_iter());
    assert!(lately.bad(1) > lately.bad(0));
    assert_eq!(selector.followed_on(CLASS), 1);
}

#[test]
fn the_own_rule_that_is_followed_again_is_the_one_of_the_scheduler() {
    let own = Rule::ADAPTIVE.without_early_starts();
    let mut selector = RuleSelector::new(own, Delays::default());
    selector.followed.push((CLASS, 1));
    let mut followed = Vec::new();
    selector.rest(at(0), |class, rule| followed.push((class, rule)));
    assert_eq!(followed, [(CLASS, own)]);
}
