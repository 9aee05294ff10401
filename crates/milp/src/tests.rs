//! Both backends on the same programs, against brute force. HiGHS is tested where set-up has put it.

use proptest::prelude::*;

use super::*;

fn backends() -> Vec<Backend> {
    let best = Backend::best(None).unwrap();
    if best.is_strong() { vec![best, Backend::microlp()] } else { vec![best] }
}

/// The least objective over all whole points of a box, or none.
fn brute_force(program: &Program) -> Option<f64> {
    let mut best = None;
    let mut point: Vec<f64> = program.columns.iter().map(|column| column.lower).collect();
    loop {
        if program.is_met(&point, 1e-9) {
            let here = program.objective(&point);
            best = Some(best.map_or(here, |best: f64| best.min(here)));
        }
        let mut at = 0;
        loop {
            let Some(column) = program.columns.get(at) else { return best };
            point[at] += 1.0;
            if point[at] <= column.upper {
                break;
            }
            point[at] = column.lower;
            at += 1;
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn whole_programs_are_solved_as_by_brute_force(
        costs in prop::collection::vec(0u8..10, 2..4),
        rows in prop::collection::vec((prop::collection::vec(0u8..7, 4), 0u8..25), 1..4),
    ) {
        let mut program = Program::default();
        let variables: Vec<_> = costs.iter().map(|&cost| program.integer(cost.into(), 0.0, 4.0)).collect();
        for (weights, least) in rows {
            let terms: Vec<_> = variables.iter().zip(weights).map(|(&v, w)| (v, w.into())).collect();
            program.at_least(&terms, least.into());
        }
        let expected = brute_force(&program);
        for backend in backends() {
            let answer = backend.solve(&program, &Limits::none()).unwrap();
            match expected {
                None => prop_assert_eq!(answer.status, Status::Infeasible, "{}", backend.name()),
                Some(expected) => {
                    prop_assert_eq!(answer.status, Status::Optimal, "{}", backend.name());
                    prop_assert!((answer.objective - expected).abs() < 1e-6, "{}: {}", backend.name(), answer.objective);
                    prop_assert!(answer.bound <= expected + 1e-6);
                    prop_assert!(program.is_met(&answer.values.unwrap(), 1e-6));
                }
            }
        }
    }
}

#[test]
fn continuous_programs_have_the_optimum_of_their_vertices() {
    // min -x - y with x + 2y <= 4 and 3x + y <= 6: the vertex (1.6, 1.2).
    let mut program = Program::default();
    let (x, y) = (program.continuous(-1.0, 0.0, f64::INFINITY), program.continuous(-1.0, 0.0, f64::INFINITY));
    program.at_most(&[(x, 1.0), (y, 2.0)], 4.0);
    program.at_most(&[(x, 3.0), (y, 1.0)], 6.0);
    for backend in backends() {
        let answer = backend.solve(&program, &Limits::none()).unwrap();
        assert!((answer.objective + 2.8).abs() < 1e-7, "{}", backend.name());
        assert!((answer.bound + 2.8).abs() < 1e-7, "{}", backend.name());
    }
}

/// A knapsack that takes long: many items of almost the same worth.
fn hard() -> Program {
    let mut program = Program::default();
    let weights = |i: usize| 1000.0 + ((i * 7919) % 997) as f64;
    let items: Vec<_> = (0..60).map(|i| program.integer(weights(i) + 0.5, 0.0, 1.0)).collect();
    for shift in 0..3 {
        let terms: Vec<_> = items.iter().enumerate().map(|(i, &v)| (v, weights(i + shift * 13))).collect();
        program.at_least(&terms, 40_001.0 + shift as f64);
    }
    program
}

#[test]
fn a_search_that_is_stopped_answers_with_what_it_has() {
    let program = hard();
    let start = vec![1.0; program.columns.len()];
    for backend in backends() {
        let limits = Limits { stop: &|| true, start: Some(&start), absolute_gap: 0.0 };
        let answer = backend.solve(&program, &limits).unwrap();
        if let Some(values) = &answer.values {
            assert!(program.is_met(values, 1e-6), "{}", backend.name());
            assert!(answer.bound <= answer.objective + 1e-6);
        }
        assert!(answer.status != Status::Infeasible, "{}", backend.name());
    }
}
