//! Each algorithm's guarantee against the exact optimum, on random small instances.

use downbeat_milp::Backend;
use proptest::prelude::*;

use super::*;
use crate::solvers::Exact;
use crate::testing::run_by;

/// Whole demands up to 30, whole values up to 12, two or three block types, a few configurations of at most five blocks.
fn instances() -> impl Strategy<Value = String> {
    let configuration = |types| prop::collection::vec(0u32..4, types);
    let job = |types| (1u32..30, prop::collection::vec(0u32..12, types));
    (2usize..4)
        .prop_flat_map(move |types| {
            (
                prop::collection::vec(configuration(types), 1..5),
                prop::collection::vec(job(types), 1..6),
                Just(types),
            )
        })
        .prop_map(|(configurations, jobs, types)| {
            let blocks: Vec<String> = (0..types).map(|index| format!("b{index}")).collect();
            let jobs: Vec<serde_json::Value> = jobs
                .iter()
                .map(|(demand, values)| serde_json::json!({ "demand": demand, "values": values }))
                .collect();
            serde_json::json!({ "blocks": blocks, "configurations": configurations, "jobs": jobs })
                .to_string()
        })
}

/// The instance as a problem, if every job can be served.
fn problem(text: &str) -> Option<Problem> {
    let problem = Cms::parse(text).unwrap().problem("random");
    infeasible::unservable(&problem).is_none().then_some(problem)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(120))]
    #[test]
    fn every_algorithm_keeps_its_guarantee(text in instances()) {
        let Some(problem) = problem(&text) else { return Ok(()) };
        let backend = Backend::best(None).unwrap();
        let run = run_by(&backend);
        let exact = schedule(&problem, &Exact, &run).unwrap();
        prop_assert!(exact.proved_optimal, "{exact:?}");
        let optimum = f64::from(exact.machines);

        let fixed = schedule(&problem, &CmsFixed, &run).unwrap();
        prop_assert_eq!(fixed.machines, exact.machines, "cms-fixed is exact");

        let log = schedule(&problem, &CmsLog, &run).unwrap();
        let jobs = problem.services.len() as f64;
        let largest = problem.services.iter().map(|service| service.rate_rps).fold(0.0, f64::max);
        let limit = 1.0 + 2.0 * optimum * (jobs * largest).ln();
        prop_assert!(f64::from(log.machines) <= limit + 1e-9, "cms-log: {} > {limit}", log.machines);

        let rounded = schedule(&problem, &CmsLpRound, &run).unwrap();
        let relaxed = crate::bound::relaxation(&problem, &run).unwrap().cost;
        let configurations = problem.configurations.len() as f64;
        let limit = 2.0 * relaxed + 2.0 * configurations;
        prop_assert!(f64::from(rounded.machines) <= limit.max(3.0 * optimum) + 1e-9, "cms-lp-round: {} > {limit}", rounded.machines);

        let ptas = schedule(&problem, &CmsPtas, &run).unwrap();
        prop_assert!(f64::from(ptas.machines) <= (1.0 + ptas::EPSILON) * optimum + 1e-9, "cms-ptas: {} of {optimum}", ptas.machines);

        for schedule in [&log, &rounded, &ptas, &fixed] {
            prop_assert!(schedule.lower_bound <= optimum + 1e-9, "{} bounds by {}", schedule.algorithm, schedule.lower_bound);
            prop_assert!(f64::from(schedule.machines) >= optimum);
        }
    }
}

#[test]
fn every_configuration_up_to_a_size_is_enumerated() {
    let text = r#"{ "blocks": ["1", "2", "3"], "configurations": { "sizes": [1, 2, 3], "capacity": 4 },
                    "jobs": [{ "demand": 8, "values": [1, 2, 3] }] }"#;
    let problem = Cms::parse(text).unwrap().problem("sizes");
    assert_eq!(problem.configurations.len(), 4, "1111, 211, 22, 31");
    let backend = Backend::microlp();
    let exact = schedule(&problem, &CmsFixed, &run_by(&backend)).unwrap();
    assert_eq!(exact.machines, 2);
    assert_eq!(exact.schedule.iter().map(|machine| machine.count).sum::<u32>(), 2);
}

#[test]
fn bad_instances_are_refused_in_words() {
    let said = |text: &str| Cms::parse(text).unwrap_err();
    let with = |jobs: &str| format!(r#"{{ "blocks": ["a"], "configurations": [[1]], "jobs": {jobs} }}"#);
    assert!(said("{").contains("line 1"));
    assert_eq!(said(&with("[]")), "jobs must have at least one");
    assert!(said(&with(r#"[{"demand": 0, "values": [1]}]"#)).contains("demand must be a number above 0"));
    assert!(said(&with(r#"[{"demand": 1, "values": [1, 2]}]"#)).contains("one number for each of 1 blocks"));
    assert!(said(&with(r#"[{"demand": 1, "values": [-1]}]"#)).contains("at least 0"));
    assert!(
        said(r#"{ "blocks": ["a"], "configurations": [[1, 2]], "jobs": [{"demand": 1, "values": [1]}] }"#)
            .contains("1 counts")
    );
}
