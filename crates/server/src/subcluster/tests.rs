use super::*;

fn read(text: &str) -> Result<Assignment, String> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("plan.json");
    fs::write(&path, text).unwrap();
    read_assignment(&path).map_err(|error| error.to_string().replace(&*folder.path().to_string_lossy(), ""))
}

#[test]
fn a_plan_says_which_models_are_in_which_subcluster() {
    let assignment = read(
        r#"{ "gpus": 3, "subclusters": [
             { "name": "s1", "device": "gpu", "count": 2, "models": ["a", "b"] },
             { "name": "s2", "device": "gpu", "count": 1, "models": ["c"] } ] }"#,
    );
    let name = |name: &str| name.parse::<Subcluster>().unwrap();
    let expected = [("a", "s1"), ("b", "s1"), ("c", "s2")].map(|(model, of)| (model.to_owned(), name(of)));
    assert_eq!(assignment.unwrap(), Assignment::from(expected));
}

#[test]
fn what_is_no_plan_is_refused_with_what_to_write() {
    let error = read(r#"{ "subclusters": [{ "name": "a b", "models": [] }] }"#).unwrap_err();
    assert!(error.contains("\"a b\" is not a sub-cluster: use letters"), "{error}");
    let error = read("{}").unwrap_err();
    assert!(error.contains("downbeat plan subclusters --format json"), "{error}");
    let twice = r#"{ "subclusters": [{ "name": "a", "models": ["m"] }, { "name": "b", "models": ["m"] }] }"#;
    assert_eq!(read(twice).unwrap_err(), "/plan.json has the model \"m\" in two sub-clusters");
}
