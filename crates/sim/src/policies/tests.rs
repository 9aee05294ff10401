use super::{ENTRIES, PolicySpec};

fn parse(text: &str) -> Result<PolicySpec, String> {
    text.parse().map_err(|error: super::PolicyError| error.to_string())
}

#[test]
fn every_policy_is_found_by_its_name_and_by_the_settings_it_prints() {
    for entry in &ENTRIES {
        let spec = parse(entry.name).unwrap();
        let printed = format!("{}:{}", entry.name, spec.kind);
        assert_eq!(parse(&printed).unwrap().kind, spec.kind, "{printed}");
    }
}

#[test]
fn settings_to_try_are_all_different_and_can_be_asked_for_by_name() {
    for entry in &ENTRIES {
        let variants = parse(entry.name).unwrap().variants();
        assert!(!variants.is_empty());
        for (index, variant) in variants.iter().enumerate() {
            assert_eq!(parse(&variant.to_string()).unwrap(), *variant);
            assert!(!variants[..index].contains(variant), "{variant} twice");
        }
    }
}

#[test]
fn a_policy_with_settings_is_not_tuned() {
    let spec = parse("delayed:delay=2ms").unwrap();
    assert_eq!(spec.variants(), [spec]);
}

#[test]
fn a_wrong_policy_is_refused_with_what_to_write_instead() {
    for (text, message) in [
        ("gaurded", "there is no policy \"gaurded\" (did you mean \"guarded\"?); known are guarded,"),
        ("guarded:k=-1", "policy \"guarded\": k: '-1' is not a number of 0 or more"),
        ("guarded:k", "policy \"guarded\": 'k' is not a setting; write KEY=VALUE"),
        ("deferred:k=1", "policy \"deferred\": there is no setting 'k'; known are drop, order"),
        ("deferred:drop=never", "policy \"deferred\": 'never' is not a drop rule; write window or timeout"),
        (
            "eager:order=random",
            "policy \"eager\": 'random' is not an order; write smallest-id or earliest-free",
        ),
    ] {
        let error = parse(text).unwrap_err();
        assert!(error.starts_with(message), "{text}: {error}");
    }
}
