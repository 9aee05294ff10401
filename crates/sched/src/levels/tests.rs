use proptest::prelude::*;

use super::*;

fn millionths(devices: f64) -> u64 {
    (devices * 1e6) as u64
}

#[test]
fn traffic_of_one_level_is_all_traffic() {
    let mut levels = Levels::default();
    levels.needs(0, 0, millionths(2.0));
    levels.started(0, Priority(1), millionths(2.0));
    levels.started(1, Priority(1), 0);
    levels.needs(1, 0, millionths(3.0));
    assert_eq!(levels.higher(), HigherNeeds::default());
    assert_eq!(levels.higher().of(Priority(1)), None);
}

/// Model 0 needs two devices at level 1, model 1 three at level 2, model 2 forty at level 7.
#[test]
fn a_level_shares_devices_with_those_above_it_and_not_with_those_below() {
    let mut levels = Levels::default();
    for (model, level, need) in [(0, 1, 2.0), (1, 2, 3.0), (2, 7, 40.0)] {
        levels.needs(model, 0, millionths(need));
        levels.started(model, Priority(level), millionths(need));
    }
    let higher = levels.higher();
    let needs = [1, 2, 3, 7, 9].map(|level| higher.of(Priority(level)));
    assert_eq!(needs, [Some(2.0), Some(5.0), None, None, None]);
    assert_eq!(HigherNeeds::from_numbers(higher.numbers()), higher);
    levels.needs(2, millionths(40.0), 0);
    assert_eq!(levels.higher().of(Priority(2)), None, "nothing comes below it any more");
}

proptest! {
    /// Whatever models start and need: of the levels that need any, all but the lowest are told, three at most, each
    /// with the sum over the models at it and above; and whoever asks again only when told to knows as much.
    #[test]
    fn needs_add_up(changes in prop::collection::vec((0u32..6, 1u8..7, prop_oneof![Just(0), 1u64..5_000_000]), 1..60)) {
        let mut levels = Levels::default();
        let mut models = [(0u8, 0u64); 6];
        let mut heard = HigherNeeds::default();
        for (model, level, need) in changes {
            let known = &mut models[model as usize];
            if levels.needs(model, known.1, need) {
                heard = levels.higher();
            }
            prop_assert_eq!(heard, levels.higher());
            if levels.started(model, Priority(level), need) {
                heard = levels.higher();
            }
            prop_assert_eq!(heard, levels.higher());
            *known = (level, need);
        }
        let mut there: Vec<u8> = models.iter().filter(|(_, need)| *need > 0).map(|(level, _)| *level).collect();
        there.sort_unstable();
        there.dedup();
        there.pop();
        there.truncate(LEVELS_TOLD);
        for level in 1..8u8 {
            let told = there.iter().find(|told| level <= **told);
            let sum = |told: &u8| models.iter().filter(|(of, _)| of <= told).map(|(_, need)| need).sum::<u64>();
            let expected = told.map(|told| sum(told) as f64 / 1e6);
            prop_assert_eq!(levels.higher().of(Priority(level)), expected, "level {} of {:?}", level, models);
        }
    }
}
