//! Each algorithm's guarantee against the exact optimum, on random small instances.

use downbeat_milp::Backend;
use proptest::prelude::*;

use super::*;
use crate::solvers::Exact;
use crate::testing::run_by;

/// Whole demands up to 30, whole values up to 12, two or three block types, a few configurations of at most five
/// blocks.
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
    let problem = Cms::parse(text).ok()?.problem("random");
    assert!(infeasible::unservable(&problem).is_none(), "such a job is refused when it is read");
    Some(problem)
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

/// HiGHS with tighter tolerances found three machines here, and called that the optimum.
#[test]
fn two_machines_are_found_where_two_do() {
    let text = r#"{ "blocks": ["b0", "b1", "b2"], "configurations": [[1, 1, 1], [1, 0, 2], [2, 2, 0]],
                    "jobs": [{ "demand": 6, "values": [1, 2, 7] }, { "demand": 6, "values": [4, 3, 3] },
                             { "demand": 12, "values": [8, 1, 0] }, { "demand": 15, "values": [10, 2, 5] }] }"#;
    let problem = Cms::parse(text).unwrap().problem("two");
    let backend = Backend::best(None).unwrap();
    assert_eq!(schedule(&problem, &CmsFixed, &run_by(&backend)).unwrap().machines, 2);
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

#[test]
fn jobs_and_blocks_that_cannot_be_told_apart_or_served_are_refused() {
    let said = |blocks: &str, configurations: &str, jobs: &str| {
        let text = format!(r#"{{ "blocks": {blocks}, "configurations": {configurations}, "jobs": {jobs} }}"#);
        Cms::parse(&text).unwrap_err()
    };
    let job = r#"[{"demand": 1, "values": [1, 1]}]"#;
    assert!(said(r#"["a", "a"]"#, "[[1, 1]]", job).contains(r#"blocks has "a" twice"#));
    let twice = r#"[{"demand": 1, "values": [1]}, {"name": "job-1", "demand": 1, "values": [1]}]"#;
    assert!(said(r#"["a"]"#, "[[1]]", twice).contains(r#"jobs has "job-1" twice"#));
    let useless = r#"[{"name": "j", "demand": 1, "values": [0, 5]}]"#;
    assert_eq!(
        said(r#"["a", "b"]"#, "[[1, 0]]", useless),
        r#"no schedule exists: job "j": no block of any configuration is of use to it"#
    );
    let large = r#"[{"name": "j", "demand": 4e9, "values": [1]}]"#;
    assert_eq!(
        said(r#"["a"]"#, "[[1]]", large),
        r#"the jobs up to job "j" need at least 4000000000 blocks, more than the 1000000 that can be scheduled"#
    );
}

#[test]
fn large_capacities_are_refused_or_enumerated_without_a_deep_stack() {
    let with = |sizes: &str, blocks: &str, capacity: u32| {
        let values: Vec<u32> = vec![1; blocks.matches(',').count() + 1];
        Cms::parse(&format!(
            r#"{{ "blocks": {blocks}, "configurations": {{ "sizes": {sizes}, "capacity": {capacity} }},
                  "jobs": [{{ "demand": 8, "values": {values:?} }}] }}"#
        ))
    };
    let six = r#"["a", "b", "c", "d", "e", "f"]"#;
    assert!(with("[1, 1, 1, 1, 1, 1]", six, 1_000_000).unwrap_err().contains("more than 100000"));
    assert_eq!(with("[1, 500000]", r#"["a", "b"]"#, 1_000_000).unwrap().problem("p").configurations.len(), 3);
}

proptest! {
    #[test]
    fn configurations_up_to_a_size_are_those_that_no_block_fits_beside(
        sizes in prop::collection::vec(1u32..5, 1..4),
        more in 0u32..7,
    ) {
        let capacity = sizes.iter().copied().max().unwrap_or(1) + more;
        let blocks: Vec<String> = (0..sizes.len()).map(|index| format!("b{index}")).collect();
        let text = serde_json::json!({
            "blocks": blocks, "configurations": { "sizes": sizes, "capacity": capacity },
            "jobs": [{ "demand": 1, "values": vec![1; sizes.len()] }],
        });
        let problem = Cms::parse(&text.to_string()).unwrap().problem("sizes");
        let mut found: Vec<Vec<u32>> =
            problem.configurations.into_iter().map(|configuration| configuration.slices).collect();
        found.sort();
        // By brute force: every vector of counts up to the capacity.
        let each = capacity as usize + 1;
        let all = (0..each.pow(sizes.len() as u32)).map(|code| -> Vec<u32> {
            (0..sizes.len()).map(|block| (code / each.pow(block as u32) % each) as u32).collect()
        });
        let size = |counts: &Vec<u32>| -> u32 { counts.iter().zip(&sizes).map(|(a, b)| a * b).sum() };
        let smallest = sizes.iter().copied().min().unwrap_or(1);
        let fits = |counts: &Vec<u32>| size(counts) <= capacity && capacity - size(counts) < smallest;
        let mut expected: Vec<Vec<u32>> = all.filter(fits).collect();
        expected.sort();
        prop_assert_eq!(found, expected);
    }
}
