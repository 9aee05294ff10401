use super::{Search, search};
use crate::need::Needs;
use crate::previous::Homes;
use crate::testing::{model, problem};

fn quietly() -> Search<'static> {
    Search { stop: &|| false, enough: 0, seed: 1, on_better: &|_| {} }
}

/// Weights of 6, 5, 4, 3 and 2 thousandths of 10: two devices hold them as 6 + 4 and 5 + 3 + 2, and in hardly any other
/// way.
#[test]
fn models_are_packed_into_memory() {
    let weights = [5_000.0, 2_000.0, 6_000.0, 3_000.0, 4_000.0];
    let mut models: Vec<_> =
        weights.iter().enumerate().map(|(i, &w)| model(&format!("m{i}"), 1.0, 100.0, w, 0.1, 1.0)).collect();
    models.iter_mut().for_each(|model| model.activation_mib = 0.0);
    let problem = problem(10_000.0, models);
    let needs = Needs::of(&problem);
    let homes = Homes::none(5);
    assert_eq!(search(&needs, &homes, &quietly()).unwrap().cost, 2);
}

/// All that is at home fits: nothing needs to move, and nothing does, although there is as good a division elsewhere.
#[test]
fn nothing_moves_without_need() {
    let models = (0..6).map(|i| model(&format!("m{i}"), 50.0, 100.0, 3_000.0, 0.1, 1.0)).collect();
    let problem = problem(10_000.0, models);
    let needs = Needs::of(&problem);
    let homes = Homes {
        of: vec![Some(0), Some(1), Some(0), Some(1), Some(0), Some(1)],
        count: 2,
        most_moves: usize::MAX,
    };
    let found = search(&needs, &homes, &quietly()).unwrap();
    assert_eq!((found.cost, found.moves), (2, 0));
}

/// The second sub-cluster has grown out of its memory by one model; one must move, into the first or a new one.
#[test]
fn what_no_longer_fits_moves_and_nothing_else() {
    let models = (0..6).map(|i| model(&format!("m{i}"), 50.0, 100.0, 2_900.0, 0.1, 1.0)).collect();
    let problem = problem(10_000.0, models);
    let needs = Needs::of(&problem);
    let of = vec![Some(0), Some(0), Some(1), Some(1), Some(1), Some(1)];
    let homes = |most_moves| Homes { of: of.clone(), count: 2, most_moves };
    let one = homes(1);
    let found = search(&needs, &one, &quietly()).unwrap();
    assert_eq!((found.cost, found.moves), (2, 1));
    assert!(search(&needs, &homes(0), &quietly()).is_none());
}

#[test]
fn the_same_seed_gives_the_same_division() {
    let models = (0..40)
        .map(|i| {
            model(&format!("m{i}"), 30.0 + 40.0 * f64::from(i), 100.0, 300.0 * f64::from(i % 7 + 1), 0.2, 2.0)
        })
        .collect();
    let problem = problem(10_000.0, models);
    let needs = Needs::of(&problem);
    let homes = Homes::none(40);
    let run = || search(&needs, &homes, &quietly()).unwrap().group_of;
    assert_eq!(run(), run());
}
