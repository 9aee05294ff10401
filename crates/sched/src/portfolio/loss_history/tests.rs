use super::{LossHistory, PerModelCounts, RULES};
use crate::ModelId;

const OWN: usize = 0;
const LAST: usize = RULES - 1;

fn counts(each: [u32; 2]) -> PerModelCounts {
    let mut counts = PerModelCounts::default();
    for (model, count) in (0..).map(ModelId).zip(each) {
        (0..count).for_each(|_| counts.count(model));
    }
    counts
}

/// Adds a round of 49 requests for each of two models, of which the own rule and the last one lose so many, and the
/// others none.
fn add(history: &mut LossHistory, own: [u32; 2], last: [u32; 2]) {
    let none = PerModelCounts::default();
    let lost: [PerModelCounts; RULES] = std::array::from_fn(|rule| match rule {
        OWN => counts(own),
        LAST => counts(last),
        _ => none.clone(),
    });
    history.add(&counts([49, 49]), &lost.iter());
}

fn history(rounds: &[([u32; 2], [u32; 2])]) -> LossHistory {
    let mut history = LossHistory::of_the_last(20);
    rounds.iter().for_each(|(own, last)| add(&mut history, *own, *last));
    history
}

fn both() -> impl Iterator<Item = ModelId> {
    [ModelId(0), ModelId(1)].into_iter()
}

/// 20 rounds of 49 requests, and 20 that never were: 1000.
#[test]
fn a_rule_is_as_bad_as_for_the_model_that_loses_most_and_a_little_worse_if_others_lose_too() {
    let badness = |lost| history(&[(lost, [0, 0]); 20]).of_models(both()).badness(OWN);
    assert!((badness([3, 0]) - 0.06).abs() < 1e-12);
    assert!((badness([4, 2]) / 0.08 - 1.0).abs() < 0.02);
    assert!((badness([3, 3]) / 0.06 - 2f64.powf(0.25)).abs() < 1e-9);
    assert!(badness([0, 0]).abs() < 1e-12);
}

#[test]
fn only_the_models_that_are_asked_for_and_the_last_rounds_count() {
    let lately = [[([40, 0], [0, 0]); 5], [([0, 1], [0, 0]); 5]].concat().repeat(2);
    let history = history(&[vec![([0, 49], [49, 49]); 20], lately].concat());
    assert!((history.of_models(both()).badness(OWN) - 0.4).abs() < 1e-3);
    let second = history.of_models([ModelId(1)].into_iter());
    assert!((second.badness(OWN) - 0.01).abs() < 1e-12);
    assert!(second.badness(LAST).abs() < 1e-12);
}

#[test]
fn three_rounds_are_too_few_to_tell_and_a_number_that_was_another_models_is_forgotten() {
    let mut history = history(&[([9, 1], [0, 0]); 3]);
    let deviation = |history: &LossHistory| history.of_models(both()).deviation_of_difference(OWN, LAST);
    assert!(deviation(&history).is_infinite());
    add(&mut history, [0, 0], [0, 0]);
    assert!(deviation(&history).is_finite());
    history.forget(ModelId(0));
    let badness = history.of_models(both()).badness(OWN);
    assert!((badness - 3.0 / (4.0 * 49.0 + 20.0)).abs() < 1e-12, "{badness}");
}

/// However much is lost, and however much that varies: where both lose the same, nothing but five requests are in
/// doubt.
#[test]
fn losses_that_both_rules_share_are_no_reason_for_doubt() {
    let rounds: Vec<_> = (0..20).map(|round| ([round % 7, 0], [round % 7, 0])).collect();
    let deviation = history(&rounds).of_models(both()).deviation_of_difference(OWN, LAST);
    assert!((deviation - 0.005).abs() < 1e-12, "{deviation}");
}

/// In every other round one of them loses two more: 20 more of 1000 in all, give or take sqrt(20 * 20 / 19).
#[test]
fn the_deviation_is_that_of_the_difference_from_round_to_round() {
    let rounds: Vec<_> = (0..20).map(|round| ([5 + 2 * (round % 2), 0], [5, 0])).collect();
    let history = history(&rounds);
    let comparison = history.of_models(both());
    let deviation = comparison.deviation_of_difference(OWN, LAST);
    let expected = (20.0 * 20.0 / 19.0 + 25.0_f64).sqrt() / 1_000.0;
    assert!((deviation - expected).abs() < 1e-9, "{deviation}, not {expected}");
    assert!((comparison.badness(OWN) - comparison.badness(LAST) - 0.02).abs() < 1e-12);
    assert!(comparison.is_better(LAST, OWN, 2.9) && !comparison.is_better(LAST, OWN, 3.0));
}

/// A model that is forgotten leaves its place in the rounds; sums are subtracted when a round goes.
#[test]
fn sums_are_those_of_the_rounds_that_are_left() {
    let mut history = LossHistory::of_the_last(5);
    for round in 0..30 {
        add(&mut history, [round % 4, round % 3], [round % 5, 0]);
        if round % 7 == 3 {
            history.forget(ModelId(round % 2));
        }
        for model in [0, 1] {
            let entries = || history.rounds.iter().flatten().filter(|entry| entry.model == ModelId(model));
            let sum = history.sums[model as usize];
            assert_eq!(sum.arrived, entries().map(|entry| entry.arrived).sum::<u32>(), "round {round}");
            for rule in 0..RULES {
                assert_eq!(sum.lost[rule], entries().map(|entry| entry.lost[rule]).sum::<u32>());
            }
        }
    }
}
