use downbeat_milp::Backend;
use proptest::prelude::*;

use super::prove;
use crate::heuristic::{Search, search};
use crate::need::Needs;
use crate::previous::Homes;
use crate::testing::problems;

/// The cheapest division of all: every model in every old place, every group so far, or a new one.
fn brute_force(needs: &Needs, homes: &Homes) -> Option<u64> {
    fn go(
        needs: &Needs,
        homes: &Homes,
        model: usize,
        groups: &mut Vec<Vec<usize>>,
        moves: usize,
        best: &mut Option<u64>,
    ) {
        if moves > homes.most_moves {
            return;
        }
        if model == needs.models() {
            let used = groups.iter().filter(|group| !group.is_empty());
            let cost: Option<u64> = used.map(|group| Some(needs.of_set(group)?.cost)).sum();
            if let Some(cost) = cost {
                *best = Some(best.map_or(cost, |best| best.min(cost)));
            }
            return;
        }
        for group in 0..=groups.len() {
            let grown = group == groups.len();
            if grown {
                groups.push(Vec::new());
            }
            groups[group].push(model);
            go(needs, homes, model + 1, groups, moves + usize::from(homes.is_move(model, group)), best);
            groups[group].pop();
            if grown {
                groups.pop();
            }
        }
    }
    let mut best = None;
    go(needs, homes, 0, &mut vec![Vec::new(); homes.count], 0, &mut best);
    best
}

fn quietly() -> Search<'static> {
    Search { stop: &|| false, enough: 0, seed: 1, on_better: &|_| {} }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(40) })]

    /// Also from a bad division: each model alone.
    #[test]
    fn the_exact_solver_finds_the_best_of_all_divisions(problem in problems(1..=7)) {
        let needs = Needs::of(&problem);
        let homes = Homes::none(needs.models());
        let best = brute_force(&needs, &homes).unwrap();
        let mut alone = crate::division::Division::new(&needs, &homes);
        (0..needs.models()).for_each(|model| alone.insert(model, model));
        let proof = prove(&needs, &homes, alone, 0, &Backend::microlp(), &|| false).unwrap();
        prop_assert_eq!((proof.division.cost, proof.bound), (best, best));
        let found = search(&needs, &homes, &quietly()).unwrap();
        prop_assert_eq!(found.cost, best, "the heuristic, on so few models");
    }

    #[test]
    fn so_it_does_when_few_models_may_move(
        problem in problems(2..=6),
        places in prop::collection::vec(prop::option::of(0usize..2), 6),
        most_moves in 0usize..4,
    ) {
        let needs = Needs::of(&problem);
        let homes = Homes { of: places[..needs.models()].to_vec(), count: 2, most_moves };
        let best = brute_force(&needs, &homes);
        match search(&needs, &homes, &quietly()) {
            None => {}
            Some(found) => {
                prop_assert!(found.moves <= most_moves);
                prop_assert!(found.cost >= best.unwrap());
                let proof = prove(&needs, &homes, found, 0, &Backend::microlp(), &|| false).unwrap();
                prop_assert!(proof.division.moves <= most_moves);
                prop_assert_eq!((proof.division.cost, proof.bound), (best.unwrap(), best.unwrap()));
            }
        }
    }
}
