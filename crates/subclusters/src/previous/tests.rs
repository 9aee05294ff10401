use super::{Previous, PreviousError};

#[test]
fn a_plan_of_the_last_epoch_is_read_whatever_else_it_says() {
    let text = r#"{ "gpus": 3, "subclusters": [{ "name": "s1", "count": 3, "models": ["a", "b"] }] }"#;
    let previous = Previous::parse(text).unwrap();
    assert_eq!((previous.subclusters[0].name.as_str(), previous.subclusters[0].models.len()), ("s1", 2));
}

#[test]
fn what_is_no_plan_is_refused_in_one_line() {
    let twice = r#"{ "subclusters": [{ "name": "x", "models": ["a"] }, { "name": "y", "models": ["a"] }] }"#;
    let said = Previous::parse(twice).unwrap_err().to_string();
    assert_eq!(said, r#"model "a" is in two sub-clusters, "x" and "y""#);
    let same = r#"{ "subclusters": [{ "name": "x", "models": [] }, { "name": "x", "models": [] }] }"#;
    assert_eq!(Previous::parse(same).unwrap_err(), PreviousError::SameName("x".to_owned()));
    assert!(Previous::parse("[]").unwrap_err().to_string().starts_with("this is not a plan of sub-clusters"));
}
