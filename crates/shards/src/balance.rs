//! Which shard a model is on.

use downbeat_sched::ModelId;

/// A model, the shard that it is on, and its load: the rows that come for it in a second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Placed {
    pub(crate) model: ModelId,
    pub(crate) shard: u16,
    pub(crate) load: f64,
}

/// Loads that differ by less than this part of the mean are alike: moving a model is not free.
const DRIFT: f64 = 0.2;

/// Models moved at once at most.
const MOVES: usize = 64;

/// What to move where, so that no shard has far more load than others: from the shard with the most, the largest model
/// that fits into the gap to the shard with the least, until that helps no more.
pub(crate) fn moves(placed: &mut [Placed], shards: u16) -> Vec<(ModelId, u16)> {
    let mut loads = vec![0.0; usize::from(shards)];
    for model in placed.iter() {
        loads[usize::from(model.shard)] += model.load;
    }
    placed.sort_by(|a, b| b.load.total_cmp(&a.load).then(a.model.cmp(&b.model)));
    let mean = loads.iter().sum::<f64>() / f64::from(shards.max(1));
    let mut moves = Vec::new();
    while moves.len() < MOVES {
        let Some((most, least)) = extremes(&loads) else { break };
        let gap = loads[most] - loads[least];
        if gap <= DRIFT * mean {
            break;
        }
        // More than half of the gap would only turn it round.
        let fits = |model: &&mut Placed| {
            usize::from(model.shard) == most && model.load > 0.0 && model.load <= gap / 2.0
        };
        let Some(model) = placed.iter_mut().find(fits) else { break };
        loads[most] -= model.load;
        loads[least] += model.load;
        model.shard = least as u16;
        moves.push((model.model, model.shard));
    }
    moves
}

/// The shards with the most and the least load.
fn extremes(loads: &[f64]) -> Option<(usize, usize)> {
    let by_load = |a: &usize, b: &usize| loads[*a].total_cmp(&loads[*b]);
    Some(((0..loads.len()).max_by(by_load)?, (0..loads.len()).min_by(by_load)?))
}

#[cfg(all(test, not(loom)))]
mod tests {
    use downbeat_sched::ModelId;
    use proptest::prelude::*;

    use super::{MOVES, Placed, extremes, moves};

    fn placed(loads: &[(u16, f64)]) -> Vec<Placed> {
        (0..).map(ModelId).zip(loads).map(|(model, &(shard, load))| Placed { model, shard, load }).collect()
    }

    #[test]
    fn a_shard_with_too_much_gives_what_fits_into_the_gap() {
        let mut models = placed(&[(0, 50.0), (0, 30.0), (0, 20.0), (1, 10.0)]);
        assert_eq!(moves(&mut models, 2), [(ModelId(1), 1)], "70 and 40: 20 more would turn it round");
    }

    #[test]
    fn loads_that_are_nearly_alike_are_left_alone() {
        let mut models = placed(&[(0, 50.0), (0, 5.0), (1, 50.0)]);
        assert_eq!(moves(&mut models, 2), []);
        assert_eq!(moves(&mut [], 4), []);
    }

    proptest! {
        #[test]
        fn moving_never_makes_the_most_loaded_shard_worse(
            loads in prop::collection::vec((0u16..5, 0.0f64..1_000.0), 0..60)
        ) {
            let mut models = placed(&loads);
            let most = |models: &[Placed]| {
                let mut loads = [0.0; 5];
                models.iter().for_each(|model| loads[usize::from(model.shard)] += model.load);
                extremes(&loads).map_or(0.0, |(most, _)| loads[most])
            };
            let before = most(&models);
            let moved = moves(&mut models, 5);
            prop_assert!(moved.len() <= MOVES);
            prop_assert!(most(&models) <= before + 1e-6);
            for (model, shard) in moved {
                prop_assert!(models.iter().any(|placed| placed.model == model) && shard < 5);
            }
        }
    }
}
