use super::{ENTRIES, PolicySpec};

fn parse(text: &str) -> Result<PolicySpec, String> {
    text.parse().map_err(|error: super::PolicyError| error.to_string())
}

#[test]
fn every_policy_is_found_by_its_name_and_by_the_settings_it_prints() {
    for entry in &ENTRIES {
        let spec = parse(entry.name).unwrap();
        let printed = spec.kind.spelled_out(entry.name);
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
        ("gaurded", "there is no policy \"gaurded\" (did you mean \"guarded\"?); known are adaptive,"),
        ("guarded:k=-1", "policy \"guarded\": k: '-1' is not a number of 0 or more"),
        ("guarded:k", "policy \"guarded\": 'k' is not a setting; write KEY=VALUE"),
        ("deferred:k=1", "policy \"deferred\": there is no setting 'k'; known are drop, order"),
        ("adaptive:k=1", "policy \"adaptive\": there is no setting 'k'; this policy has none"),
        ("delayed:dely=1ms", "policy \"delayed\": there is no setting 'dely'; known are delay, cap,"),
        ("deferred:drop=never", "policy \"deferred\": 'never' is not a drop rule; write window, timeout or"),
        (
            "eager:order=random",
            "policy \"eager\": 'random' is not an order; write smallest-id or earliest-free",
        ),
    ] {
        let error = parse(text).unwrap_err();
        assert!(error.starts_with(message), "{text}: {error}");
    }
}

#[test]
fn help_lists_every_setting_with_its_default_on_lines_that_do_not_wrap() {
    let help = PolicySpec::catalogue();
    for line in help.lines() {
        assert!(line.chars().count() <= 96, "{} characters: {line}", line.chars().count());
    }
    for entry in &ENTRIES {
        let (kind, own) = ((entry.default)(), entry.help());
        assert!(help.contains(&own));
        for setting in kind.table() {
            let (key, default) = (setting.key, kind.get(setting.key));
            let line = own.lines().find(|line| line.trim_start().starts_with(&format!("{key} "))).unwrap();
            assert!(line.ends_with(&format!("{} (default {default})", setting.values)), "{line}");
            let mut again = kind.clone();
            again.set(key, &default).unwrap();
            assert_eq!(again, kind, "{}: {key}={default} is not the default", entry.name);
        }
    }
    assert!(help.contains("no settings\n"));
}

#[test]
fn settings_that_would_plan_without_end_are_refused() {
    for (text, message) in [
        ("nexus:epoch=0", "policy \"nexus\": '0' is too short for an epoch; write 100ms or more"),
        ("nexus:min_epoch=0", "policy \"nexus\": '0' is too short for an epoch; write 100ms or more"),
        ("nexus:min_epoch=1us", "policy \"nexus\": '1us' is too short for an epoch; write 100ms or more"),
        ("nexus:headroom=1e300", "policy \"nexus\": headroom: '1e300' is neither a factor from 0.001 to 100"),
        ("nexus:batch=0.5", "policy \"nexus\": batch: '0.5' is neither a factor from 1 up"),
    ] {
        let error = parse(text).unwrap_err();
        assert!(error.starts_with(message), "{text}: {error}");
    }
}
