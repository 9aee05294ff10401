//! Every mistake gives one line that names the file, the line in it and the key.

use std::path::Path;

use super::Scenario;

/// A good scenario; each row below spoils one thing in it. gpus is on line 1, total_rps on line 2, model a on lines 3
/// to 6, model b on lines 7 to 10.
const GOOD: &str = "\
gpus = 8
total_rps = 100
[[model]]
name = \"a\"
slo_ms = 25
profile = { alpha_ms = 1, beta_ms = 5, max_batch = 8 }
[[model]]
name = \"b\"
slo_ms = 30
profile = { alpha_ms = 1, beta_ms = 5, max_batch = 8 }
";

const PROFILE: &str = "profile = { alpha_ms = 1, beta_ms = 5, max_batch = 8 }";

fn complaint(text: &str) -> String {
    match Scenario::parse(text, Path::new("bad.toml")) {
        Ok(_) => "no error".to_owned(),
        Err(error) => error.to_string(),
    }
}

/// Each row: what to replace in [`GOOD`] (its first occurrence), with what, and the message.
fn assert_complaints(rows: &[(&str, &str, &str)]) {
    assert_eq!(complaint(GOOD), "no error");
    let mut failures = String::new();
    for (good, bad, expected) in rows {
        assert!(GOOD.contains(good), "{good} is not in the good scenario");
        let said = complaint(&GOOD.replacen(good, bad, 1));
        if said != *expected {
            failures += &format!("{good:?} -> {bad:?}\n  says     {said}\n  expected {expected}\n");
        }
    }
    assert!(failures.is_empty(), "\n{failures}");
}

#[test]
fn text_of_the_wrong_shape_is_refused() {
    assert_complaints(&[
        ("gpus = 8", "gpu = 8", "bad.toml:1: unknown key `gpu`; did you mean `gpus`?"),
        ("slo_ms = 25", "slo = 25", "bad.toml:5: unknown key `slo`; did you mean `slo_ms`?"),
        ("alpha_ms", "alpha", "bad.toml:6: unknown key `alpha`; did you mean `alpha_ms`?"),
        (
            "max_batch = 8",
            "xyz = 8",
            "bad.toml:6: unknown key `xyz`; known here: alpha_ms, beta_ms, max_batch, csv, model, slice",
        ),
        ("gpus = 8", "gpus = 8.5", "bad.toml:1: gpus must be a whole number (is 8.5)"),
        ("gpus = 8", "gpus = [8]", "bad.toml:1: gpus must be a whole number (is a list)"),
        ("gpus = 8", "gpus = { n = 8 }", "bad.toml:1: gpus must be a whole number (is a table)"),
        (
            "gpus = 8",
            "gpus = 99999999999999999999",
            "bad.toml:1: gpus must be a smaller whole number (is 99999999999999999999)",
        ),
        (
            "gpus",
            "seed = 9999999999999999999\ngpus",
            "bad.toml:1: seed must be a smaller whole number (is 9999999999999999999)",
        ),
        ("gpus = 8", "gpu_class = 3", "bad.toml:1: gpu_class must be a list of tables (is 3)"),
        (
            "gpus = 8",
            "gpu_class = [3]",
            "bad.toml:1: what is listed here must be a table with name and count (is 3)",
        ),
        (
            "gpus",
            "arrival = [\"poisson\"]\ngpus",
            "bad.toml:1: arrival must be a table such as { kind = \"poisson\" } (is a list)",
        ),
        ("slo_ms = 25", "slo_ms = \"25\"", "bad.toml:5: slo_ms must be a number (is \"25\")"),
        ("name = \"a\"", "name = 5", "bad.toml:4: name must be text in quotes (is 5)"),
        ("beta_ms = 5", "beta_ms = true", "bad.toml:6: beta_ms must be a number (is true)"),
        (PROFILE, "profiles = 5", "bad.toml:6: profiles must be a table (is 5)"),
        (
            PROFILE,
            "profile = 5",
            "bad.toml:6: profile must be a table such as { alpha_ms = 1, beta_ms = 5, max_batch = 8 } (is 5)",
        ),
        ("slo_ms = 25\n", "", "bad.toml:3: slo_ms is missing"),
        ("gpus = 8", "gpus = 8\ngpus = 8", "bad.toml:2: gpus is given twice"),
        (
            "slo_ms = 25",
            "slo_ms = 99999999999999999999999999999999999999999999",
            "bad.toml:5: slo_ms: the number is too large",
        ),
        ("gpus = 8", "gpus = ", "bad.toml:1: gpus: string values must be quoted, expected literal string"),
    ]);
}

#[test]
fn devices_that_cannot_be_are_refused() {
    let class = |name: &str, count: &str| format!("[[gpu_class]]\nname = \"{name}\"\ncount = {count}\n");
    let with_classes = |classes: &str| GOOD.replace("gpus = 8\n", "") + classes;
    assert_complaints(&[
        ("gpus = 8", "gpus = 0", "bad.toml:1: gpus must be at least 1 (is 0)"),
        (
            "gpus = 8",
            "gpus = 8\nspare_devices = \"idel\"",
            "bad.toml:2: spare_devices \"idel\" is not known; did you mean `idle`?",
        ),
        (
            "gpus = 8",
            "gpus = 8\nspare_devices = true",
            "bad.toml:2: spare_devices must be text in quotes (is true)",
        ),
        (
            "gpus = 8",
            "gpus = 8\nfault = [{ gpu = 8, at_s = 1 }]",
            "bad.toml:2: fault.gpu must be at most 7 (is 8)",
        ),
        (
            "gpus = 8",
            "gpus = 8\nfault = [{ gpu = 0, at_s = -1 }]",
            "bad.toml:2: fault.at_s must be above 0 (is -1)",
        ),
        (
            "slo_ms = 25",
            "slo_ms = 25\npriority = 256",
            "bad.toml:6: model \"a\": priority must be at most 255 (is 256)",
        ),
        ("gpus = 8", "gpus = -2", "bad.toml:1: gpus must be at least 1 (is -2)"),
        ("gpus = 8", "gpus = 5_000_000", "bad.toml:1: gpus must be at most 1000000 (is 5000000)"),
        ("gpus = 8", "gpus = 9_000_000_000", "bad.toml:1: gpus must be at most 1000000 (is 9000000000)"),
        ("gpus = 8\n", "", "bad.toml: gpus is missing; give gpus = N, or [[gpu_class]]"),
        ("gpus = 8", "gpu_class = []", "bad.toml: gpus is missing; give gpus = N, or [[gpu_class]]"),
    ]);
    for (text, expected) in [
        (GOOD.to_owned() + &class("x", "1"), "bad.toml:1: gpus and [[gpu_class]] cannot both be given"),
        (with_classes(&class("x", "0")), "bad.toml:12: gpu_class \"x\": count must be at least 1 (is 0)"),
        (
            with_classes(&(class("x", "1") + &class("x", "2"))),
            "bad.toml:14: gpu_class \"x\": the name is given twice",
        ),
        (
            with_classes(&(class("x", "600_000") + &class("y", "600_000"))),
            "bad.toml:15: gpu_class \"y\": count must be at most 400000 (is 600000)",
        ),
        (
            with_classes(&class("x", "1")),
            "bad.toml:5: model \"a\": profile does not say for which class; with [[gpu_class]] give profiles = \
             { CLASS = {...} }",
        ),
    ] {
        assert_eq!(complaint(&text), expected);
    }
}

#[test]
fn times_that_cannot_be_are_refused() {
    assert_complaints(&[
        ("gpus", "duration_s = 0\ngpus", "bad.toml:1: duration_s must be above 0 (is 0)"),
        ("gpus", "duration_s = nan\ngpus", "bad.toml:1: duration_s must be above 0 (is NaN)"),
        ("gpus", "duration_s = 1e8\ngpus", "bad.toml:1: duration_s must be at most 10000000 (is 100000000)"),
        ("gpus", "duration_s = inf\ngpus", "bad.toml:1: duration_s must be at most 10000000 (is inf)"),
        ("gpus", "warmup_s = -1\ngpus", "bad.toml:1: warmup_s must be at least 0 (is -1)"),
        ("gpus", "warmup_s = 12\ngpus", "bad.toml:1: warmup_s must be below duration_s (12 is not below 12)"),
        (
            "gpus",
            "duration_s = 0.5\ngpus",
            "bad.toml:1: warmup_s must be below duration_s (1 is not below 0.5)",
        ),
        ("gpus", "seed = -1\ngpus", "bad.toml:1: seed must be at least 0 (is -1)"),
        ("gpus", "control_delay_us = -5\ngpus", "bad.toml:1: control_delay_us must be at least 0 (is -5)"),
        ("gpus", "data_delay_us = nan\ngpus", "bad.toml:1: data_delay_us must be at least 0 (is NaN)"),
        (
            "gpus",
            "response_reserve_us = -1\ngpus",
            "bad.toml:1: response_reserve_us must be at least 0 (is -1)",
        ),
        (
            "gpus",
            "response_reserve_us = 25000\ngpus",
            "bad.toml:6: model \"a\": slo_ms must be above response_reserve_us, which is 25 ms (is 25)",
        ),
        ("slo_ms = 25", "slo_ms = -3", "bad.toml:5: model \"a\": slo_ms must be above 0 (is -3)"),
        ("slo_ms = 25", "slo_ms = nan", "bad.toml:5: model \"a\": slo_ms must be above 0 (is NaN)"),
        (
            "slo_ms = 25",
            "slo_ms = 1e-7",
            "bad.toml:5: model \"a\": slo_ms must be at least a nanosecond (is 0.0000001)",
        ),
        (
            "gpus",
            "jitter = { kind = \"normal\" }\ngpus",
            "bad.toml:1: jitter kind \"normal\" is not known; did you mean `lognormal`?",
        ),
        (
            "gpus",
            "jitter = { kind = \"lognormal\" }\ngpus",
            "bad.toml:1: jitter.sigma is missing; jitter kind \"lognormal\" needs it",
        ),
        (
            "gpus",
            "jitter = { kind = \"lognormal\", sigma = -0.1 }\ngpus",
            "bad.toml:1: jitter.sigma must be at least 0 (is -0.1)",
        ),
        (
            "gpus",
            "jitter = { kind = \"none\", sigma = 1 }\ngpus",
            "bad.toml:1: jitter.sigma cannot be given with jitter kind \"none\"",
        ),
        (
            "gpus",
            "jitter = { kind = \"added\" }\ngpus",
            "bad.toml:1: jitter.added_us is missing; jitter kind \"added\" needs it",
        ),
        (
            "gpus",
            "jitter = { kind = \"lognormal\", sigma = 1, added_us = [[1, 5]] }\ngpus",
            "bad.toml:1: jitter.added_us cannot be given with jitter kind \"lognormal\"",
        ),
        (
            "gpus",
            "response_us = [[0.5, 20], [0.9, 10], [1, 30]]\ngpus",
            "bad.toml:1: response_us must be pairs of a share and microseconds, of which shares rise, the last one to 1, \
             and times do not fall, as in [[0.5, 20], [0.99, 300], [1, 4000]]",
        ),
    ]);
}

#[test]
fn rates_that_cannot_be_are_refused() {
    let zipf = |s: &str| format!("popularity = {{ kind = \"zipf\", s = {s} }}\ngpus");
    assert_complaints(&[
        ("total_rps = 100", "total_rps = -5", "bad.toml:2: total_rps must be above 0 (is -5)"),
        ("total_rps = 100", "total_rps = 0", "bad.toml:2: total_rps must be above 0 (is 0)"),
        ("total_rps = 100", "total_rps = nan", "bad.toml:2: total_rps must be above 0 (is NaN)"),
        ("total_rps = 100", "total_rps = inf", "bad.toml:2: total_rps must be at most 1000000000 (is inf)"),
        (
            "total_rps = 100\n",
            "",
            "bad.toml:2: model \"a\": rate_rps is missing; give it, or total_rps for all models",
        ),
        ("slo_ms = 25", "slo_ms = 25\nweight = 0", "bad.toml:6: model \"a\": weight must be above 0 (is 0)"),
        (
            "slo_ms = 25",
            "slo_ms = 25\nweight = -1",
            "bad.toml:6: model \"a\": weight must be above 0 (is -1)",
        ),
        (
            "slo_ms = 25",
            "slo_ms = 25\nrate_rps = 5",
            "bad.toml:6: model \"a\": rate_rps cannot be given with total_rps",
        ),
        ("gpus", &zipf("-1"), "bad.toml:1: popularity.s must be at least 0 (is -1)"),
        ("gpus", &zipf("nan"), "bad.toml:1: popularity.s must be at least 0 (is NaN)"),
        (
            "gpus",
            "popularity = { kind = \"zip\", s = 1 }\ngpus",
            "bad.toml:1: popularity kind \"zip\" is not known; did you mean `zipf`?",
        ),
        (
            "gpus",
            "popularity = { kind = \"zipf\" }\ngpus",
            "bad.toml:1: popularity.s is missing; popularity kind \"zipf\" needs it",
        ),
    ]);

    let own_rates = GOOD.replace("total_rps = 100\n", "").replace("slo_ms", "rate_rps = 5\nslo_ms");
    assert_eq!(complaint(&own_rates), "no error");
    for (good, bad, expected) in [
        ("rate_rps = 5", "rate_rps = -5", "bad.toml:4: model \"a\": rate_rps must be above 0 (is -5)"),
        (
            "rate_rps = 5",
            "rate_rps = inf",
            "bad.toml:4: model \"a\": rate_rps must be at most 1000000000 (is inf)",
        ),
        (
            "rate_rps = 5",
            "rate_rps = 5\nweight = 2",
            "bad.toml:5: model \"a\": weight cannot be given with rate_rps; it divides total_rps",
        ),
        (
            "gpus",
            &zipf("1"),
            "bad.toml:1: popularity cannot be given with rate_rps per model; it divides total_rps",
        ),
    ] {
        assert_eq!(complaint(&own_rates.replacen(good, bad, 1)), expected);
    }
    let weighted = GOOD.replacen("slo_ms", "weight = 2\nslo_ms", 1).replacen("gpus", &zipf("1"), 1);
    assert_eq!(complaint(&weighted), "bad.toml:6: model \"a\": weight cannot be given with popularity");
}

#[test]
fn models_that_cannot_run_are_refused() {
    assert_complaints(&[
        ("name = \"b\"", "name = \"a\"", "bad.toml:8: model \"a\": the name is given twice"),
        (PROFILE, "", "bad.toml:3: model \"a\": profile is missing: the model cannot run anywhere"),
        (
            PROFILE,
            "profiles = {}",
            "bad.toml:3: model \"a\": profiles names no class: the model cannot run anywhere",
        ),
        (
            PROFILE,
            "profile = { alpha_ms = 1, beta_ms = 5, max_batch = 8 }\nprofiles = {}",
            "bad.toml:6: model \"a\": profile and profiles cannot both be given",
        ),
        (
            PROFILE,
            "profiles = { gpus = { alpha_ms = 1, beta_ms = 5, max_batch = 8 } }",
            "bad.toml:6: model \"a\": profiles: the class \"gpus\" is not known; did you mean `gpu`?",
        ),
        (
            "alpha_ms = 1",
            "alpha_ms = -1",
            "bad.toml:6: model \"a\": profile.alpha_ms must be at least 0 (is -1)",
        ),
        (
            "alpha_ms = 1, beta_ms = 5",
            "alpha_ms = 0, beta_ms = 0",
            "bad.toml:6: model \"a\": profile: the latency of a batch of 1 is 0 ms; it must be a finite number above 0",
        ),
        (
            "max_batch = 8",
            "max_batch = 0",
            "bad.toml:6: model \"a\": profile.max_batch must be at least 1 (is 0)",
        ),
        (
            "max_batch = 8",
            "max_batch = 70000",
            "bad.toml:6: model \"a\": profile.max_batch must be at most 65536 (is 70000)",
        ),
        (
            ", max_batch = 8",
            "",
            "bad.toml:6: model \"a\": profile.max_batch is missing; a profile without csv needs it",
        ),
        (
            "max_batch = 8",
            "max_batch = 8, slice = \"7g\"",
            "bad.toml:6: model \"a\": profile.slice cannot be given with a profile without csv",
        ),
        (
            "max_batch = 8",
            "csv = \"x.csv\"",
            "bad.toml:6: model \"a\": profile.alpha_ms cannot be given with csv",
        ),
        (
            PROFILE,
            "profile = { csv = \"x.csv\", slice = \"7g\" }",
            "bad.toml:6: model \"a\": profile.model is missing; csv needs it",
        ),
    ]);
    for (name, expected) in [
        ("", "bad.toml:4: model \"\": the name must not be empty"),
        (" ", "bad.toml:4: model \" \": the name must not be empty"),
        ("a\\nb", "bad.toml:4: model \"a\\nb\": the name must not have control characters in it"),
        ("\\u001b[2J", "bad.toml:4: model \"\\u{1b}[2J\": the name must not have control characters in it"),
    ] {
        assert_complaints(&[("name = \"a\"", &format!("name = \"{name}\""), expected)]);
    }
    let one_table = GOOD
        .split_once("[[model]]\nname = \"b\"")
        .map_or("", |(first, _)| first)
        .replace("[[model]]", "[model]");
    assert_eq!(complaint(&one_table), "bad.toml:3: [model] is a list of tables; write [[model]]");
    let none = GOOD.split("[[model]]").next().unwrap_or_default();
    assert_eq!(complaint(none), "bad.toml: model is missing; give at least one [[model]]");
}

#[test]
fn arrivals_that_cannot_be_are_refused() {
    let rows = [
        ("kind = \"poison\"", "arrival kind \"poison\" is not known; did you mean `poisson`?"),
        ("kind = \"gamma\"", "arrival.shape is missing; arrival kind \"gamma\" needs it"),
        ("kind = \"gamma\", shape = 0", "arrival.shape must be above 0 (is 0)"),
        ("kind = \"gamma\", shape = nan", "arrival.shape must be above 0 (is NaN)"),
        ("kind = \"gamma\", shape = 1e-4", "arrival.shape must be at least 0.001 (is 0.0001)"),
        ("kind = \"poisson\", shape = 1", "arrival.shape cannot be given with arrival kind \"poisson\""),
        (
            "kind = \"onoff\", off_s = 1, factor = 2",
            "arrival.on_s is missing; arrival kind \"onoff\" needs it",
        ),
        ("kind = \"onoff\", on_s = 0, off_s = 1, factor = 2", "arrival.on_s must be above 0 (is 0)"),
        ("kind = \"onoff\", on_s = 1, off_s = -1, factor = 2", "arrival.off_s must be above 0 (is -1)"),
        ("kind = \"onoff\", on_s = 1, off_s = 1, factor = 0.5", "arrival.factor must be at least 1 (is 0.5)"),
        ("kind = \"trace\"", "arrival.csv is missing; arrival kind \"trace\" needs it"),
        ("kind = \"uniform\", csv = \"t.csv\"", "arrival.csv cannot be given with arrival kind \"uniform\""),
    ];
    for (arrival, expected) in rows {
        let for_all = format!("arrival = {{ {arrival} }}\ngpus");
        assert_complaints(&[("gpus", &for_all, &format!("bad.toml:1: {expected}"))]);
        let for_one = format!("slo_ms = 25\narrival = {{ {arrival} }}");
        assert_complaints(&[("slo_ms = 25", &for_one, &format!("bad.toml:6: model \"a\": {expected}"))]);
    }
}

#[test]
fn an_autoscale_table_that_makes_no_sense_is_refused() {
    let complaints = [
        ("[autoscale]", "bad.toml:11: autoscale: max is missing; [autoscale] needs it"),
        ("[autoscale]\nmax = 0", "bad.toml:12: autoscale: max must be at least 1 (is 0)"),
        ("[autoscale]\nmax = 16\nmin = 0", "bad.toml:13: autoscale: min must be at least 1 (is 0)"),
        (
            "[autoscale]\nmax = 16\nmin = 17",
            "bad.toml:11: autoscale: min must be at most max (17 is more than 16)",
        ),
        (
            "[autoscale]\nmax = 7",
            "bad.toml:11: autoscale: gpus, with which the run begins, must be from min to max (8 is not in 1..7)",
        ),
        (
            "[autoscale]\nmax = 16\nprovision_s = -1",
            "bad.toml:13: autoscale: provision_s must be at least 0 (is -1)",
        ),
        ("[autoscale]\nmax = 16\ncalm_s = 0", "bad.toml:13: autoscale: calm_s must be above 0 (is 0)"),
        (
            "[autoscale]\nmax = 16\nstep_down = 2",
            "bad.toml:13: autoscale: step_down must be at most 1 (is 2)",
        ),
    ];
    let failures: String = complaints
        .iter()
        .filter(|(table, expected)| complaint(&format!("{GOOD}{table}\n")) != *expected)
        .map(|(table, expected)| {
            let said = complaint(&format!("{GOOD}{table}\n"));
            format!("{table:?}\n  says     {said}\n  expected {expected}\n")
        })
        .collect();
    assert!(failures.is_empty(), "\n{failures}");
    assert_eq!(complaint(&format!("{GOOD}[autoscale]\nmax = 16\nforecast = true\n")), "no error");
}

/// [`GOOD`] with a good pair of sub-clusters, on lines 11 to 18; each row spoils one thing in them.
#[test]
fn subclusters_that_do_not_add_up_are_refused() {
    const PAIR: &str = "\
[[subcluster]]
name = \"x\"
gpus = 3
models = [\"a\"]
[[subcluster]]
name = \"y\"
gpus = 5
models = [\"b\"]
";
    let rows = [
        ("gpus = 5", "gpus = 6", "bad.toml:17: subcluster \"y\": gpus asks for 6, and 5 are left"),
        ("gpus = 3", "gpus = 0", "bad.toml:13: subcluster \"x\": gpus must be at least 1 (is 0)"),
        (
            "gpus = 3",
            "gpus_by_class = { h100 = 3 }",
            "bad.toml:13: subcluster \"x\": gpus_by_class: the class \"h100\" is not known; known here: gpu",
        ),
        ("gpus = 3", "gpus_by_class = {}", "bad.toml:13: subcluster \"x\": gpus_by_class names no class"),
        ("gpus = 3\n", "", "bad.toml:11: subcluster \"x\": gpus is missing"),
        ("[\"a\"]", "[]", "bad.toml:14: subcluster \"x\": models names no model"),
        (
            "[\"a\"]",
            "[\"c\"]",
            "bad.toml:14: subcluster \"x\": models: the model \"c\" is not known; known here: a, b",
        ),
        ("[\"b\"]", "[\"b\", \"a\"]", "bad.toml:18: subcluster \"y\": model \"a\" is in \"x\" already"),
        ("name = \"y\"", "name = \"x\"", "bad.toml:16: subcluster \"x\": the name is given twice"),
        (
            "[[subcluster]]\nname = \"y\"\ngpus = 5\nmodels = [\"b\"]\n",
            "",
            "bad.toml:11: model \"b\" is in no [[subcluster]]; every model must be in one",
        ),
        (
            "[[subcluster]]\nname = \"x\"",
            "[autoscale]\nmax = 8\n[[subcluster]]\nname = \"x\"",
            "bad.toml:11: autoscale cannot be given with [[subcluster]]",
        ),
    ];
    assert_eq!(complaint(&format!("{GOOD}{PAIR}")), "no error");
    for (good, bad, expected) in rows {
        assert!(PAIR.contains(good));
        assert_eq!(complaint(&format!("{GOOD}{}", PAIR.replacen(good, bad, 1))), expected);
    }
}
