use super::{at_random, by_rate, one_per_model};
use crate::solve::Subcluster;
use crate::testing::{model, problem};

fn example() -> crate::problem::Problem {
    let models = (0..12).map(|i| model(&format!("m{i}"), 100.0 * f64::from(i + 1), 100.0, 2_000.0, 0.2, 1.0));
    problem(10_000.0, models.collect())
}

fn is_division(subclusters: &[Subcluster]) -> bool {
    let mut models: Vec<usize> =
        subclusters.iter().flat_map(|subcluster| subcluster.models.clone()).collect();
    models.sort_unstable();
    models == (0..12).collect::<Vec<_>>()
}

#[test]
fn rivals_divide_all_models_and_keep_to_memory() {
    let problem = example();
    let alone = one_per_model(&problem).unwrap();
    assert!(is_division(&alone) && alone.len() == 12);
    // Four models to a device: three sub-clusters at least, even where two are asked for.
    for rival in [at_random(&problem, 2, 7).unwrap(), by_rate(&problem, 2).unwrap()] {
        assert!(is_division(&rival));
        assert!(rival.len() >= 3 && rival.iter().all(|subcluster| subcluster.models.len() <= 4));
    }
}

#[test]
fn balanced_by_rate_means_that_rates_are_alike() {
    let problem = example();
    let rates: Vec<f64> = by_rate(&problem, 3)
        .unwrap()
        .iter()
        .map(|subcluster| subcluster.models.iter().map(|&model| problem.models[model].rate_rps).sum())
        .collect();
    assert!(rates.iter().all(|rate| (rate - 2_600.0f64).abs() <= 300.0), "{rates:?}");
}
