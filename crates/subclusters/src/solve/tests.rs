use downbeat_milp::Backend;

use super::{Epoch, Method, Run, Solution, solve};
use crate::infeasible::Unsolved;
use crate::plan::Plan;
use crate::previous::Previous;
use crate::problem::Problem;
use crate::testing::{model, problem};

fn solved(problem: &Problem, epoch: Epoch<'_>) -> Result<Solution, Unsolved> {
    let run = Run { stop: &|| false, backend: &Backend::microlp(), seed: 1, on_progress: &|_, _, _| {} };
    solve(problem, epoch, Method::Auto, &run)
}

fn several(count: u32) -> Problem {
    let models = (0..count).map(|i| {
        model(
            &format!("m{i}"),
            100.0 + 150.0 * f64::from(i),
            100.0,
            500.0 + 450.0 * f64::from(i % 5),
            0.4,
            2.0,
        )
    });
    problem(6_000.0, models.collect())
}

fn written(problem: &Problem, solution: &Solution, previous: Option<&Previous>) -> Plan {
    let counts: Vec<u32> = solution.subclusters.iter().map(|subcluster| subcluster.count).collect();
    Plan::new(problem, solution, previous, &counts, &Backend::microlp()).unwrap()
}

#[test]
fn a_plan_says_who_shares_what_and_how_much_each_may_grow() {
    let problem = several(16);
    let solution = solved(&problem, Epoch::default()).unwrap();
    assert!(solution.bound_units <= solution.units);
    let plan = written(&problem, &solution, None);
    assert_eq!(u64::from(plan.gpus), solution.units);
    assert_eq!(plan.models.len(), 16);
    for subcluster in &plan.subclusters {
        assert!(subcluster.load <= 1.0 + 1e-6 && subcluster.memory_mib <= subcluster.device_memory_mib);
    }
    // A model that grows by less than its headroom still fits where it is; by more, it does not.
    for (index, model) in plan.models.iter().enumerate().filter(|(_, model)| model.headroom < 50.0) {
        assert!(model.headroom >= 0.99, "{model:?}");
        let home = solution.subclusters.iter().find(|subcluster| subcluster.models.contains(&index)).unwrap();
        let count_at = |factor: f64| {
            let mut grown = problem.clone();
            grown.models[index].rate_rps *= factor;
            crate::need::Needs::of(&grown).of_set(&home.models).unwrap().count
        };
        assert!(count_at(model.headroom * 1.1) > home.count);
    }
}

#[test]
fn the_next_epoch_begins_with_the_last() {
    let mut problem = several(16);
    let first = written(&problem, &solved(&problem, Epoch::default()).unwrap(), None);
    let previous = Previous::parse(&serde_json::to_string(&first).unwrap()).unwrap();
    let same = solved(&problem, Epoch { previous: Some(&previous), max_moves: Some(0) }).unwrap();
    assert_eq!((same.units, same.moved.len()), (u64::from(first.gpus), 0));
    // Another day, other rates: with more moves, never more GPUs.
    for (index, model) in problem.models.iter_mut().enumerate() {
        model.rate_rps *= if index % 2 == 0 { 1.9 } else { 0.6 };
    }
    let mut last = u64::MAX;
    for max_moves in [0, 2, 4, 16] {
        let epoch = Epoch { previous: Some(&previous), max_moves: Some(max_moves) };
        let solution = solved(&problem, epoch).unwrap();
        assert!(solution.moved.len() <= max_moves && solution.units <= last, "{max_moves}");
        let plan = written(&problem, &solution, Some(&previous));
        assert_eq!(plan.moved.len(), solution.moved.len());
        last = solution.units;
    }
}

#[test]
fn what_cannot_be_is_said_with_the_reason() {
    let said = |problem: &Problem, epoch: Epoch<'_>| solved(problem, epoch).unwrap_err().to_string();
    let large = problem(1_000.0, vec![model("m", 10.0, 100.0, 1_000.0, 0.1, 1.0)]);
    assert_eq!(
        said(&large, Epoch::default()),
        r#"model "m" takes 1100 MiB (weights and activation), and the largest device has 1000"#
    );
    let slow = problem(1_000.0, vec![model("m", 10.0, 10.0, 100.0, 1.0, 12.0)]);
    assert_eq!(
        said(&slow, Epoch::default()),
        r#"model "m" cannot meet its SLO of 10 ms on any device that it fits: a request alone takes 13.000 ms"#
    );
    let few = Problem { gpus: Some(2), ..several(16) };
    let message = said(&few, Epoch::default());
    assert!(message.contains("GPUs are needed, and there are 2 (no division needs fewer than"), "{message}");
}

/// Each old sub-cluster holds one model that is now as large as its device: somebody must go.
#[test]
fn too_few_moves_are_said_with_the_number_that_would_do() {
    let models = (0..6).map(|i| model(&format!("m{i}"), 50.0, 100.0, 2_900.0, 0.1, 1.0)).collect();
    let problem = problem(10_000.0, models);
    let text = r#"{ "subclusters": [{ "name": "x", "models": ["m0", "m1", "m2", "m3", "m4", "m5"] }] }"#;
    let previous = Previous::parse(text).unwrap();
    let epoch = |max_moves| Epoch { previous: Some(&previous), max_moves: Some(max_moves) };
    let error = solved(&problem, epoch(1)).unwrap_err();
    assert_eq!(error, Unsolved::TooFewMoves { max_moves: 1, would_do: Some(3) });
    assert!(error.to_string().ends_with("--max-moves 3 would do"), "{error}");
    assert_eq!(solved(&problem, epoch(3)).unwrap().moved.len(), 3);
}

/// As they are the models need two GPUs, of which there is one; gathered, one.
#[test]
fn gpus_that_would_do_with_more_moves_are_said_to() {
    let models = (0..4).map(|i| model(&format!("m{i}"), 10.0, 100.0, 1_000.0, 0.1, 1.0)).collect();
    let problem = Problem { gpus: Some(1), ..problem(10_000.0, models) };
    let text = r#"{ "subclusters": [{ "name": "x", "models": ["m0", "m1"] }, { "name": "y", "models": ["m2", "m3"] }] }"#;
    let previous = Previous::parse(text).unwrap();
    let epoch = |max_moves| Epoch { previous: Some(&previous), max_moves: Some(max_moves) };
    let error = solved(&problem, epoch(1)).unwrap_err().to_string();
    assert_eq!(error, "2 GPUs are needed, and there are 1; with --max-moves 2 they would do");
    assert_eq!(solved(&problem, epoch(2)).unwrap().units, 1);
}
