//! `downbeat plan subclusters` as people and programs call it.

use std::process::{Command, Output};

use serde_json::Value;
use tempfile::TempDir;

/// Six models of 3 GB and more on GPUs of 10 GB.
fn problem(factor: f64) -> String {
    let mut text = "gpu_memory_mib = 10000\ngpus = 12\n".to_owned();
    for index in 0..6 {
        text += &format!(
            "[[model]]\nname = \"m{index}\"\nrate_rps = {}\nslo_ms = {}\nweights_mib = {}\nactivation_mib = 300\n\
             profile = {{ alpha_ms = 0.5, beta_ms = 2, max_batch = 32 }}\n",
            factor * f64::from(100 + 80 * index),
            50 + 25 * (index % 2),
            3_000 + 100 * index,
        );
    }
    text
}

struct Shell(TempDir);

impl Shell {
    fn with(files: &[(&str, &str)]) -> Shell {
        let folder = tempfile::tempdir().expect("a folder");
        for (name, text) in files {
            std::fs::write(folder.path().join(name), text).expect("a file");
        }
        Shell(folder)
    }

    fn run(&self, arguments: &[&str]) -> Output {
        Command::new(env!("CARGO_BIN_EXE_downbeat"))
            .current_dir(self.0.path())
            .args(["plan", "subclusters"])
            .args(arguments)
            .output()
            .expect("downbeat runs")
    }

    fn succeed(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        assert!(output.status.success(), "{arguments:?}: {}", text(&output.stderr));
        text(&output.stdout)
    }

    fn json(&self, arguments: &[&str]) -> Value {
        serde_json::from_str(&self.succeed(arguments)).expect("JSON")
    }

    /// What is said of an error, which is always exit code 2.
    fn fail(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        assert_eq!(output.status.code(), Some(2), "{}", text(&output.stdout));
        text(&output.stderr)
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn json_has_the_keys_that_other_programs_read() {
    let shell = Shell::with(&[("p.toml", &problem(1.0))]);
    let plan = shell.json(&["p.toml", "--verify", "--format", "json"]);
    for key in
        ["gpus", "estimated_gpus", "lower_bound", "bound_name", "gap", "seconds", "algorithm", "verified"]
    {
        assert!(!plan[key].is_null(), "{key} is missing");
    }
    for key in ["name", "device", "count", "models", "memory_mib", "load"] {
        assert!(!plan["subclusters"][0][key].is_null(), "subclusters[].{key}");
    }
    for key in ["name", "subcluster", "rate_rps", "slo_ms", "headroom"] {
        assert!(!plan["models"][0][key].is_null(), "models[].{key}");
    }
    assert_eq!(plan["confirmed"], true);
    assert_eq!(plan["models"].as_array().map(Vec::len), Some(6));
    let replays = plan["verified"].as_array().expect("a list");
    assert!(replays.iter().all(|replay| replay["passed"] == true), "{replays:?}");
}

#[test]
fn people_see_sizes_headroom_and_the_page() {
    let shell = Shell::with(&[("p.toml", &problem(1.0))]);
    let said = shell.succeed(&["p.toml", "--verify", "--html", "page.html"]);
    for words in
        ["sub-clusters on", "confirmed in simulation", "headroom", "in SLO", "Replayed: 6 of 6 models"]
    {
        assert!(said.contains(words), "{words}: {said}");
    }
    let page = std::fs::read_to_string(shell.0.path().join("page.html")).expect("a page");
    assert!(page.contains("Who shares what") && page.contains("m5"));
}

#[test]
fn the_next_epoch_moves_no_more_than_it_may() {
    let shell = Shell::with(&[("monday.toml", &problem(1.0)), ("tuesday.toml", &problem(2.5))]);
    let monday = shell.succeed(&["monday.toml", "--format", "json"]);
    std::fs::write(shell.0.path().join("monday.json"), monday).expect("a file");
    let tuesday =
        shell.json(&["tuesday.toml", "--from", "monday.json", "--max-moves", "0", "--format", "json"]);
    assert_eq!(tuesday["moved"].as_array().map(Vec::len), Some(0));
    let said = shell.fail(&["tuesday.toml", "--max-moves", "3"]);
    assert!(said.contains("--from"), "{said}");
}

#[test]
fn others_need_as_many_gpus_or_more() {
    let shell = Shell::with(&[("p.toml", &problem(1.0))]);
    let compared = shell.json(&["compare", "p.toml", "--format", "json"]);
    let contenders = compared["contenders"].as_array().expect("a list");
    let gpus: Vec<u64> = contenders.iter().filter_map(|contender| contender["gpus"].as_u64()).collect();
    assert_eq!(gpus.len(), 4);
    assert!(gpus.iter().all(|other| *other >= gpus[0]), "{gpus:?}");
    assert!(shell.succeed(&["compare", "p.toml"]).contains("one cluster per model"));
}

#[test]
fn bad_input_is_one_line_and_exit_code_2() {
    let good = problem(1.0);
    let files = [
        ("p.toml", good.clone()),
        ("rate.toml", good.replacen("rate_rps = 100", "rate_rps = -1", 1)),
        ("few.toml", good.replacen("gpus = 12", "gpus = 1", 1)),
        ("large.toml", good.replacen("weights_mib = 3000", "weights_mib = 30000", 1)),
        ("previous.json", "[1, 2]".to_owned()),
        (
            "full.json",
            r#"{ "subclusters": [{ "name": "x", "models": ["m0", "m1", "m2", "m3"] }] }"#.to_owned(),
        ),
    ];
    let files: Vec<(&str, &str)> = files.iter().map(|(name, text)| (*name, text.as_str())).collect();
    let shell = Shell::with(&files);
    for (arguments, expected) in [
        (&["none.toml"][..], "none.toml: cannot be read"),
        (&["rate.toml"], "rate.toml:5: model \"m0\": rate_rps must be a number above 0 (is -1)"),
        (&["few.toml"], "GPUs are needed, and there are 1"),
        (
            &["large.toml"],
            "model \"m0\" takes 30300 MiB (weights and activation), and the largest device has 10000",
        ),
        (&["p.toml", "--from", "previous.json"], "--from previous.json"),
        (&["p.toml", "--from", "full.json", "--max-moves", "0"], "--max-moves 1 would do"),
        (&["p.toml", "--solver", "magic"], "known are auto, heuristic, exact"),
        (&["p.toml", "--time-limit", "0"], "--time-limit must be a number of seconds above 0"),
    ] {
        let said = shell.fail(arguments);
        assert!(said.contains(expected), "{arguments:?}: {said}");
    }
}
