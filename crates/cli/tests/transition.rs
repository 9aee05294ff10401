//! `downbeat transition` as people and programs call it.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::{Value, json};
use tempfile::TempDir;

/// A plan of A30s: GPUs as lists of (profile, start, service, throughput).
fn plan(gpus: &[&[(&str, u8, &str, f64)]]) -> Value {
    let instance = |&(profile, start, service, rate): &(&str, u8, &str, f64)| json!({ "profile": profile, "start": start, "service": service, "model": service, "batch": 8, "throughput_rps": rate });
    let gpu = |(number, instances): (usize, &&[(&str, u8, &str, f64)])| {
        let instances: Vec<Value> = instances.iter().map(instance).collect();
        json!({ "gpu": number, "node": 0, "type": "A30-24GB", "instances": instances })
    };
    json!({ "layout": gpus.iter().enumerate().map(gpu).collect::<Vec<_>>(), "services": [{ "name": "a" }, { "name": "b" }] })
}

fn day() -> Value {
    plan(&[
        &[("2g.12gb", 0, "a", 20.0), ("2g.12gb", 2, "a", 20.0)],
        &[("2g.12gb", 0, "b", 20.0), ("2g.12gb", 2, "b", 20.0)],
    ])
}

fn night() -> Value {
    plan(&[&[("1g.6gb", 0, "a", 10.0), ("1g.6gb", 1, "a", 10.0), ("2g.12gb", 2, "b", 20.0)]])
}

fn folder(from: &Value, to: &Value) -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, plan) in [("from.json", from), ("to.json", to)] {
        std::fs::write(folder.path().join(name), plan.to_string()).expect("a file");
    }
    folder
}

fn run(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_downbeat"));
    command
        .current_dir(folder)
        .args(["transition", "--from", "from.json", "--to", "to.json"])
        .args(arguments);
    command.output().expect("downbeat runs")
}

fn succeed(folder: &Path, arguments: &[&str]) -> String {
    let output = run(folder, arguments);
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

/// The message of a run that must fail with exit code 2.
fn refused(from: &Value, to: &Value, arguments: &[&str]) -> String {
    let output = run(folder(from, to).path(), arguments);
    assert_eq!(output.status.code(), Some(2));
    String::from_utf8(output.stderr).expect("text")
}

#[test]
fn steps_come_as_text_as_json_and_as_a_page() {
    let folder = folder(&day(), &night());
    let text = succeed(folder.path(), &["--html", "steps.html"]);
    assert!(text.contains("on the critical path") && text.contains("Pictures: steps.html"), "{text}");
    let page = std::fs::read_to_string(folder.path().join("steps.html")).expect("a page");
    assert!(page.contains("Who does what when"));
    for driver in ["nvml", "mig-parted"] {
        let json: Value =
            serde_json::from_str(&succeed(folder.path(), &["--driver", driver, "--format", "json"]))
                .expect("JSON");
        assert_eq!(json["driver"], driver);
        assert!(
            json["steps"]
                .as_array()
                .is_some_and(|steps| steps.len() as u64 >= json["lower_bound"].as_u64().unwrap_or(0))
        );
        assert!(json["steps"][0]["after"].as_array().is_some_and(Vec::is_empty));
    }
}

#[test]
fn an_unfinished_transition_is_resumed_from_the_steps_that_ended() {
    let folder = folder(&day(), &night());
    let whole: Value = serde_json::from_str(&succeed(folder.path(), &["--format", "json"])).expect("JSON");
    let steps = whole["steps"].as_array().expect("steps");
    let first = steps[0]["id"].to_string();
    let rest = succeed(folder.path(), &["--ended", &first, "--state", "state.json", "--format", "json"]);
    let rest: Value = serde_json::from_str(&rest).expect("JSON");
    assert!(rest["steps"].as_array().is_some_and(|rest| rest.len() < steps.len()));
    assert!(folder.path().join("state.json").exists());
    let all = format!("1-{}", steps.len());
    let nothing: Value =
        serde_json::from_str(&succeed(folder.path(), &["--ended", &all, "--format", "json"])).expect("JSON");
    let left = nothing["steps"].as_array().expect("steps");
    assert!(left.iter().all(|step| step["kind"] == "repartition"), "only idle slices are left: {left:?}");
}

#[test]
fn too_few_spares_says_how_many_would_do() {
    let full = plan(&[&[("2g.12gb", 0, "a", 20.0), ("2g.12gb", 2, "b", 20.0)]]);
    let swapped = plan(&[&[("2g.12gb", 0, "b", 20.0), ("2g.12gb", 2, "a", 20.0)]]);
    let message = refused(&full, &swapped, &["--spare", "0"]);
    assert!(message.contains("0 spare GPUs are too few; 1 would do (--spare 1)"), "{message}");
}

#[test]
fn bad_input_gets_one_clear_message() {
    let other = |value: Value| -> Value {
        serde_json::from_str(
            &value
                .to_string()
                .replace("A30-24GB", "H100-SXM5-80GB")
                .replace("1g.6gb", "1g.10gb")
                .replace("2g.12gb", "2g.20gb"),
        )
        .expect("JSON")
    };
    let message = refused(&day(), &other(night()), &[]);
    assert!(
        message.contains("different GPU types: the first for A30-24GB, the second for H100-SXM5-80GB"),
        "{message}"
    );
    let without = plan(&[&[("2g.12gb", 0, "c", 20.0)]]);
    let message = refused(&day(), &without, &[]);
    assert!(message.contains("service \"c\" is in the second plan and not in the first"), "{message}");
    let illegal = plan(&[&[("2g.12gb", 1, "a", 20.0)]]);
    let message = refused(&day(), &illegal, &[]);
    assert!(message.contains("the second plan: GPU 0: 2g.12gb may not begin at 1"), "{message}");
    let message = refused(&json!([1, 2]), &night(), &[]);
    assert!(message.contains("--from from.json: this is not a plan"), "{message}");
    for message in
        [refused(&day(), &night(), &["--ended", "99"]), refused(&day(), &night(), &["--failed", "x"])]
    {
        assert!(message.contains("step"), "{message}");
    }
}
