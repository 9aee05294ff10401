use downbeat_sched::{
    ClassId, Delays, Event, GpuId, LatencyProfile, ModelId, ModelSpec, Priority, Request, RequestId, Span,
    Stance, Time,
};

use super::{LATELY, MEMORY, Passed, Understudies};
use crate::tally::Tally;

const CLASS: ClassId = ClassId(0);

fn at(ms: u64) -> Time {
    Time::ZERO + Span::from_millis(ms)
}

/// A model of which a request holds a device for 10 ms, one at a time.
fn added(model: u32) -> Event {
    let spec = ModelSpec::new([(CLASS, LatencyProfile::linear(1.0, 9.0, 1).unwrap())]);
    Event::ModelAdded { model: ModelId(model), spec }
}

fn with(models: u32) -> Understudies {
    let mut understudies = Understudies::new(Delays::default());
    (0..models).for_each(|model| understudies.hear(Time::ZERO, &added(model)));
    understudies.hear(Time::ZERO, &Event::GpuJoined { gpu: GpuId(0), class: CLASS });
    understudies
}

/// A round in which so many requests come, all of which are lost, is decided on.
fn decide(understudies: &mut Understudies, ms: u64, arrived: u64) {
    understudies.count(Passed { arrived, lost: arrived, levels: Passed::level(Priority(1)) });
    understudies.decide(at(ms), |_, _| ());
}

/// How many stages there are after each of these rounds, the ends of which are so many milliseconds apart.
fn stages(models: u32, rounds: &[(u64, u64)]) -> Vec<usize> {
    let mut understudies = with(models);
    let mut now = 0;
    let after = |&(ms, arrived): &(u64, u64)| {
        now += ms;
        decide(&mut understudies, now, arrived);
        understudies.stages.len()
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
fn with_two_to_come() -> Understudies {
    let mut understudies = with(2);
    for round in 0..5 {
        decide(&mut understudies, 250 * round, 10);
    }
    assert_eq!(understudies.stages.len(), 4);
    for model in [0, 1, 1] {
        let (id, model, deadline) = (RequestId(0), ModelId(model), at(1_100 + 15));
        let request = Request { id, model, deadline, priority: Priority(1), rows: 1 };
        understudies.hear(at(1_100), &Event::Arrived(request));
    }
    understudies
}

/// Of three at once on the first stage two are lost; on each of the others, where the two models are apart, one of the
/// second's.
#[test]
fn what_is_lost_on_all_stages_is_remembered() {
    let mut understudies = with_two_to_come();
    understudies.hear(at(2_000), &Event::GpuLeft { gpu: GpuId(1) });
    decide(&mut understudies, 2_000, 3);
    let models = || [0, 1].into_iter().map(ModelId);
    let bad = understudies.record.about(models()).bad(Stance::Eager);
    let shares = [0.0, (2.0 + 3.0) / (4.0 * 2.0 + 20.0)];
    let expected = shares.map(|share: f64| share.powi(4)).iter().sum::<f64>().sqrt().sqrt();
    assert!((bad - expected).abs() < 1e-9, "{bad}, not {expected}");
}

/// Whether it was remembered, was just counted, or is still to be heard.
#[test]
fn nothing_is_held_against_a_model_that_another_one_with_its_number_lost() {
    for (readded_ms, decided_ms) in [(1_101, 2_000), (1_900, 2_000), (2_100, 2_000)] {
        let mut understudies = with_two_to_come();
        let mut steps = [(readded_ms, true), (decided_ms, false)];
        steps.sort_unstable();
        for (ms, readded) in steps {
            if readded {
                understudies.hear(at(ms), &Event::ModelRemoved { model: ModelId(1) });
                understudies.hear(at(ms), &added(1));
                assert_eq!(understudies.arrived.of(ModelId(1)), 0);
            } else {
                understudies.hear(at(ms), &Event::GpuLeft { gpu: GpuId(1) });
                decide(&mut understudies, ms, 3);
            }
        }
        decide(&mut understudies, 2_400, 1);
        let second = understudies.record.about([ModelId(1)].into_iter());
        assert!(second.bad(Stance::Eager).abs() < 1e-12, "added again at {readded_ms} ms");
    }
}

/// What each rule loses of a hundred requests of the only model in a round: so many, but for these.
type Losses = (u32, &'static [(Stance, u32)]);

fn remember(understudies: &mut Understudies, (most, few): Losses) {
    let tally = |count| {
        let mut tally = Tally::default();
        (0..count).for_each(|_| tally.count(ModelId(0)));
        tally
    };
    let lost = |stance| tally(few.iter().find(|(of, _)| *of == stance).map_or(most, |(_, lost)| *lost));
    understudies.record.add(&tally(100), 1, lost);
    understudies.reconsider(|_, _| ());
}

/// After a minute in which deferral alone lost nothing.
fn who_follows_deferral() -> Understudies {
    let mut understudies = with(1);
    (0..MEMORY).for_each(|_| remember(&mut understudies, (10, &[(Stance::Deferred, 0)])));
    assert_eq!(understudies.followed_on(CLASS), Stance::Deferred);
    understudies
}

/// After how many rounds of such losses deferral is not followed any more, and what is.
fn next_followed(losses: Losses) -> (usize, Stance) {
    let mut understudies = who_follows_deferral();
    for round in 1..2 * MEMORY {
        remember(&mut understudies, losses);
        let followed = understudies.followed_on(CLASS);
        if followed != Stance::Deferred {
            return (round, followed);
        }
    }
    panic!("it was still followed after two minutes");
}

#[test]
fn what_the_last_seconds_contradict_is_forgotten() {
    for best in [Stance::Own, Stance::Eager] {
        let losses: Losses =
            if best == Stance::Own { (10, &[(Stance::Own, 2)]) } else { (10, &[(Stance::Eager, 2)]) };
        let (rounds, followed) = next_followed(losses);
        assert_eq!(followed, best);
        assert!(rounds <= LATELY, "{rounds} rounds until {best} is followed");
    }
}

#[test]
fn once_the_own_rule_loses_nothing_it_is_followed_in_seconds() {
    let (rounds, followed) = next_followed((0, &[]));
    assert_eq!(followed, Stance::Own);
    assert!(rounds <= LATELY, "{rounds}");
}

/// For ten seconds deferral loses a little more than others: too little to be told from chance.
#[test]
fn what_happens_by_chance_is_no_contradiction() {
    let mut understudies = who_follows_deferral();
    for _ in 0..LATELY {
        remember(&mut understudies, (10, &[(Stance::Deferred, 9)]));
        remember(&mut understudies, (10, &[(Stance::Deferred, 12)]));
    }
    let lately = understudies.record.about_last(LATELY, [ModelId(0)].into_iter());
    assert!(lately.bad(Stance::Deferred) > lately.bad(Stance::Own));
    assert_eq!(understudies.followed_on(CLASS), Stance::Deferred);
}
