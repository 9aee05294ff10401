use super::check;
use crate::previous::Previous;
use crate::solve::{Epoch, Solution, Subcluster};
use crate::testing::{model, problem};

fn subcluster(name: &str, count: u32, models: &[usize]) -> Subcluster {
    Subcluster { name: name.to_owned(), device: 0, count, models: models.to_vec() }
}

fn said(subclusters: Vec<Subcluster>, moved: Vec<usize>, max_moves: Option<usize>) -> Result<(), String> {
    let models = (0..3).map(|i| model(&format!("m{i}"), 500.0, 100.0, 4_000.0, 0.5, 1.0)).collect();
    let problem = problem(10_000.0, models);
    let old = Previous::parse(r#"{ "subclusters": [{ "name": "x", "models": ["m0", "m1"] }] }"#).unwrap();
    let solution = Solution { subclusters, units: 2, bound_units: 2, bound_name: "", algorithm: "", moved };
    check(&problem, Epoch { previous: Some(&old), max_moves }, &solution)
}

#[test]
fn a_good_division_passes_and_each_fault_is_found() {
    let good = || vec![subcluster("x", 1, &[0, 1]), subcluster("s1", 1, &[2])];
    assert_eq!(said(good(), vec![], Some(0)), Ok(()));
    let twice = vec![subcluster("x", 1, &[0, 1]), subcluster("s1", 1, &[1, 2])];
    assert!(said(twice, vec![], None).unwrap_err().contains("in two"));
    assert!(said(vec![subcluster("x", 1, &[0, 1])], vec![], None).unwrap_err().contains("in no"));
    assert!(said(vec![subcluster("x", 3, &[0, 1, 2])], vec![], None).unwrap_err().contains("memory"));
    let moved = || vec![subcluster("x", 1, &[0]), subcluster("s1", 1, &[1, 2])];
    assert_eq!(said(moved(), vec![1], Some(1)), Ok(()));
    assert!(said(moved(), vec![1], Some(0)).unwrap_err().contains("moved"));
    assert!(said(moved(), vec![], None).unwrap_err().contains("moved"));
}

/// 20,000 requests of half a millisecond each keep ten devices busy.
#[test]
fn too_few_devices_are_found() {
    let problem = problem(10_000.0, vec![model("m", 20_000.0, 100.0, 10.0, 0.5, 1.0)]);
    let solution = |count| Solution {
        subclusters: vec![subcluster("s1", count, &[0])],
        units: 0,
        bound_units: 0,
        bound_name: "",
        algorithm: "",
        moved: vec![],
    };
    assert!(check(&problem, Epoch::default(), &solution(10)).is_err());
    assert_eq!(check(&problem, Epoch::default(), &solution(13)), Ok(()));
}
