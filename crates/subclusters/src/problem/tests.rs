use std::path::Path;

use super::Problem;

/// gpu_memory_mib is on line 1, gpus on line 2, model a on lines 3 to 8, model b on lines 9 to 14.
const GOOD: &str = "\
gpu_memory_mib = 80000
gpus = 8
[[model]]
name = \"a\"
rate_rps = 100
slo_ms = 25
weights_mib = 500
profile = { alpha_ms = 1, beta_ms = 5, max_batch = 8 }
[[model]]
name = \"b\"
rate_rps = 50
slo_ms = 40
weights_mib = 900
profile = { alpha_ms = 1, beta_ms = 5, max_batch = 8 }
";

const PROFILE: &str = "profile = { alpha_ms = 1, beta_ms = 5, max_batch = 8 }";

fn complaint(text: &str) -> String {
    match Problem::parse(text, Path::new("bad.toml")) {
        Ok(_) => "no error".to_owned(),
        Err(error) => error.to_string(),
    }
}

#[test]
fn every_mistake_is_one_line_that_names_the_place() {
    assert_eq!(complaint(GOOD), "no error");
    let rows = [
        ("gpus = 8", "gpu_count = 8", "bad.toml:2: unknown key `gpu_count`; did you mean `gpu`?"),
        ("gpus = 8", "gpus = 0", "bad.toml:2: gpus must be a whole number from 1 to 1000000 (is 0)"),
        (
            "gpu_memory_mib = 80000\n",
            "",
            "bad.toml: gpu_memory_mib is missing; give it, or gpu = \"H200-141GB\"",
        ),
        (
            "gpu_memory_mib = 80000",
            "gpu_memory_mib = 0",
            "bad.toml:1: gpu_memory_mib must be a number above 0 (is 0)",
        ),
        (
            "rate_rps = 100",
            "rate_rps = -1",
            "bad.toml:5: model \"a\": rate_rps must be a number above 0 (is -1)",
        ),
        (
            "rate_rps = 100",
            "rate_rps = nan",
            "bad.toml:5: model \"a\": rate_rps must be a number above 0 (is NaN)",
        ),
        (
            "rate_rps = 100",
            "rate_rps = inf",
            "bad.toml:5: model \"a\": rate_rps must be at most 1000000000 (is inf)",
        ),
        ("slo_ms = 25", "slo_ms = 0", "bad.toml:6: model \"a\": slo_ms must be a number above 0 (is 0)"),
        ("slo_ms = 25\n", "", "bad.toml:3: slo_ms is missing"),
        (
            "weights_mib = 500",
            "weights_mib = -5",
            "bad.toml:7: model \"a\": weights_mib must be a number of 0 or more (is -5)",
        ),
        ("weights_mib = 500\n", "", "bad.toml:3: model \"a\": weights_mib is missing, and was not measured"),
        (
            PROFILE,
            "",
            "bad.toml:3: model \"a\": profile is missing; give it, or measured = MODEL and profiles",
        ),
        (
            PROFILE,
            "measured = \"x\"",
            "bad.toml:8: model \"a\": measured needs profiles = FILE.csv at the top of the file",
        ),
        (
            "max_batch = 8",
            "max_batch = 0",
            "bad.toml:8: model \"a\": profile.max_batch must be a whole number from 1 to 65536 (is 0)",
        ),
        ("name = \"b\"", "name = \"a\"", "bad.toml:10: model \"a\" is given twice"),
        ("name = \"b\"", "name = \" \"", "bad.toml:10: name must be text that can be printed"),
        ("gpus = 8", "gpus = 8\nprofiles = \"none.csv\"", "bad.toml:3: profiles: there is no file none.csv"),
        (
            "gpus = 8",
            "gpus = 8\nslices = [\"1g\"]",
            "bad.toml:3: slices needs gpu = \"H200-141GB\" or another GPU by name",
        ),
    ];
    let mut failures = String::new();
    for (good, bad, expected) in rows {
        assert!(GOOD.contains(good), "{good} is not in the good problem");
        let said = complaint(&GOOD.replacen(good, bad, 1));
        if said != expected {
            failures += &format!("{good:?} -> {bad:?}\n  says     {said}\n  expected {expected}\n");
        }
    }
    assert!(failures.is_empty(), "\n{failures}");
    assert!(complaint("gpus = 3\ngpu_memory_mib = 5").contains("there is no model"));
}

#[test]
fn measured_models_bring_their_memory_and_slices_theirs() {
    let text = "gpu = \"H200-141GB\"\nprofiles = \"h200.csv\"\nSLICES\n\
                [[model]]\nname = \"a\"\nmeasured = \"resnet50\"\nrate_rps = 10\nslo_ms = 50\n";
    let origin = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../profiles/test.toml");
    let read = |slices: &str| Problem::parse(&text.replace("SLICES", slices), &origin);
    let whole = read("").unwrap();
    assert_eq!((whole.devices.len(), whole.units_per_gpu, whole.is_sliced()), (1, 1, false));
    assert!(whole.models[0].weights_mib == 48.7 && whole.models[0].activation_mib > 1000.0);
    let sliced = read("slices = [\"1g\", \"3g\"]").unwrap();
    assert_eq!((sliced.devices.len(), sliced.units_per_gpu, sliced.is_sliced()), (2, 7, true));
    assert_eq!(sliced.devices.iter().map(|device| device.units).collect::<Vec<_>>(), [1, 3]);
    assert!(sliced.devices[0].memory_mib < sliced.devices[1].memory_mib);
    let said = read("slices = [\"9g\"]").unwrap_err().to_string();
    assert!(said.contains(":3: slices: H200-141GB has no slice \"9g\""), "{said}");
    let said = read("slices = [\"1g\", \"1g\"]").unwrap_err().to_string();
    assert!(said.contains("\"1g\" is given twice"), "{said}");
}
