//! The commands as people and programs call them.

use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;

const SCENARIO: &str = r#"
gpus = 2
duration_s = 3
total_rps = 300
[[model]]
name = "cat"
slo_ms = 25
profile = { alpha_ms = 1, beta_ms = 5, max_batch = 16 }
[[model]]
name = "dog"
slo_ms = 40
weight = 2
profile = { alpha_ms = 0.5, beta_ms = 8, max_batch = 16 }
"#;

/// Runs `downbeat` in a fresh folder that holds `scenario.toml`.
struct Shell {
    folder: TempDir,
}

impl Shell {
    fn with(scenario: &str) -> Shell {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("scenario.toml"), scenario).expect("a file");
        Shell { folder }
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_downbeat"));
        command.current_dir(self.path()).args(arguments).env("COLUMNS", "100");
        command
    }

    fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().expect("downbeat runs")
    }

    fn succeed(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        assert!(output.status.success(), "{arguments:?}: {}", text(&output.stderr));
        text(&output.stdout)
    }

    fn files(&self) -> Vec<String> {
        let entries = self.path().read_dir().expect("the folder");
        let mut names: Vec<String> = entries
            .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn keys(value: &Value) -> Vec<&str> {
    value.as_object().expect("an object").keys().map(String::as_str).collect()
}

#[test]
fn simulate_prints_json_with_the_keys_that_programs_rely_on() {
    let printed = Shell::with(SCENARIO).succeed(&[
        "simulate",
        "scenario.toml",
        "--policy",
        "deferred",
        "--format",
        "json",
    ]);
    let report: Value = serde_json::from_str(&printed).expect("JSON");
    let mut top = keys(&report);
    top.sort_unstable();
    assert_eq!(
        top,
        [
            "bad_rate_worst",
            "batches",
            "gpus",
            "in_slo_rps",
            "models",
            "offered_rps",
            "policy",
            "requests_simulated",
            "seed",
            "wall_s"
        ]
    );
    let mut model = keys(&report["models"][0]);
    model.sort_unstable();
    assert_eq!(
        model,
        ["bad_rate", "expired", "in_slo", "late", "mean_batch", "name", "offered", "p50_ms", "p99_ms"]
    );
    assert_eq!(report["gpus"]["count"], 2);
    assert_eq!(report["gpus"]["busy_fraction"].as_array().map(Vec::len), Some(2));
    assert!(report["gpus"]["used"].is_u64());
    assert_eq!(report["policy"], "deferred");
}

#[test]
fn goodput_prints_json_with_the_keys_that_programs_rely_on() {
    let printed = Shell::with(SCENARIO).succeed(&[
        "goodput",
        "scenario.toml",
        "--policies",
        "deferred,eager:drop=window",
        "--seeds",
        "2",
        "--format",
        "json",
    ]);
    let report: Value = serde_json::from_str(&printed).expect("JSON");
    let bound = report["fluid_bound_rps"].as_f64().expect("a bound");
    assert_eq!(report["rarest_requests"], 5000);
    assert_eq!(report["notes"].as_array().map(Vec::len), Some(0));
    for policy in ["deferred", "eager:drop=window"] {
        let found = &report["policies"][policy];
        let goodput = found["goodput_rps"].as_f64().expect("a goodput");
        assert!(goodput > 0.0 && goodput <= 1.5 * bound, "{found}");
        assert_eq!(found["capped"], false);
        assert!((found["ratio_to_bound"].as_f64().expect("a ratio") - goodput / bound).abs() < 1e-9);
        assert!(found["spread_rps"].as_f64().is_some());
    }
}

#[test]
fn the_same_run_is_printed_again_to_the_letter() {
    let shell = Shell::with(SCENARIO);
    let run = || {
        let printed = shell.succeed(&["simulate", "scenario.toml", "--seed", "7", "--format", "json"]);
        printed.lines().filter(|line| !line.contains("wall_s")).map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(run(), run());
}

#[test]
fn people_see_headline_and_table() {
    let printed = Shell::with(SCENARIO).succeed(&["simulate", "scenario.toml", "--policy", "deferred"]);
    let mut settings = insta::Settings::clone_current();
    settings.add_filter(r"simulated in [0-9.]+ s", "simulated in [time] s");
    settings.bind(|| insta::assert_snapshot!(printed));
}

#[test]
fn every_command_explains_itself() {
    let shell = Shell::with(SCENARIO);
    insta::assert_snapshot!("help", shell.succeed(&["--help"]));
    insta::assert_snapshot!("help_simulate", shell.succeed(&["simulate", "--help"]));
    insta::assert_snapshot!("help_goodput", shell.succeed(&["goodput", "--help"]));
    insta::assert_snapshot!("help_load", shell.succeed(&["load", "--help"]));
}

#[test]
fn a_page_is_written_in_one_go_and_loads_nothing() {
    let shell = Shell::with(SCENARIO);
    shell.succeed(&["simulate", "scenario.toml", "--html", "run.html"]);
    shell.succeed(&[
        "goodput",
        "scenario.toml",
        "--policies",
        "deferred",
        "--seeds",
        "1",
        "--html",
        "goodput.html",
    ]);
    assert_eq!(shell.files(), ["goodput.html", "run.html", "scenario.toml"]);
    for name in ["run.html", "goodput.html"] {
        let page = std::fs::read_to_string(shell.path().join(name)).expect("the page");
        assert!(page.starts_with("<!DOCTYPE html>") && page.trim_end().ends_with("</html>"));
        assert!(!page.contains("src=\"http") && !page.contains("href=\"http"));
    }
}

#[test]
fn a_bad_scenario_gives_one_line_that_names_the_key_exit_code_2_and_no_file() {
    let change = |from: &str, to: &str| {
        assert!(SCENARIO.contains(from));
        SCENARIO.replacen(from, to, 1)
    };
    for (scenario, named) in [
        (change("gpus = 2", "gpu = 2"), "gpu"),
        (change("gpus = 2", "gpus = 0"), "gpus"),
        (change("total_rps = 300", "total_rps = -1"), "total_rps"),
        (change("slo_ms = 25", "slo_ms = 0"), "slo_ms"),
        (change("profile = { alpha_ms = 1, beta_ms = 5, max_batch = 16 }", ""), "profile"),
        (
            change("duration_s = 3", "duration_s = 3\narrival = { kind = \"trace\", csv = \"back.csv\" }"),
            "csv",
        ),
        (change("gpus = 2", "gpus ="), "scenario.toml"),
    ] {
        let shell = Shell::with(&scenario);
        std::fs::write(shell.path().join("back.csv"), "time_s,rate\n0,1\n5,2\n3,1\n").expect("a file");
        for command in ["simulate", "goodput"] {
            let output = shell.run(&[command, "scenario.toml", "--html", "page.html"]);
            let message = text(&output.stderr);
            assert_eq!(output.status.code(), Some(2), "{message}");
            assert_eq!(message.lines().count(), 1, "{message}");
            assert!(message.starts_with("error: ") && message.contains(named), "{message}");
            assert_eq!(text(&output.stdout), "");
            assert!(!shell.path().join("page.html").exists());
        }
    }
}

#[test]
fn bad_arguments_are_refused_before_any_work_with_what_to_do() {
    let shell = Shell::with(SCENARIO);
    for (arguments, message) in [
        (vec!["simulate", "nowhere.toml"], "nowhere.toml"),
        (vec!["simulate", "scenario.toml", "--rate", "-5"], "--rate"),
        (vec!["simulate", "scenario.toml", "--rate", "NaN"], "--rate"),
        (vec!["simulate", "scenario.toml", "--rate", "1e300"], "at most 1000000000 (is 1e300)"),
        (vec!["simulate", "scenario.toml", "--policy", "gaurded"], "did you mean \"guarded\"?"),
        (vec!["simulate", "scenario.toml", "--html", "no/such/folder.html"], "there is no folder no/such"),
        (vec!["simulate", "scenario.toml", "--html", "."], "this is a folder"),
        (vec!["goodput", "scenario.toml", "--seeds", "0"], "0"),
        (vec!["goodput", "scenario.toml", "--policies", "deferred,guarded:k=x"], "k: 'x' is not a number"),
    ] {
        let output = shell.run(&arguments);
        let error = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {error}");
        assert!(error.contains(message), "{arguments:?}: {error}");
    }
    assert_eq!(shell.files(), ["scenario.toml"]);
}

#[test]
fn a_policy_that_is_asked_for_twice_runs_once() {
    let shell = Shell::with(SCENARIO);
    let goodput = |policies| {
        shell.succeed(&[
            "goodput",
            "scenario.toml",
            "--policies",
            policies,
            "--seeds",
            "1",
            "--format",
            "json",
        ])
    };
    assert_eq!(goodput("eager,eager"), goodput("eager"));
}

#[test]
fn a_run_that_is_shorter_than_its_pattern_says_so() {
    let trace = "duration_s = 3\narrival = { kind = \"trace\", csv = \"day.csv\" }";
    let shell = Shell::with(&SCENARIO.replace("duration_s = 3", trace));
    std::fs::write(shell.path().join("day.csv"), "time_s,rate\n0,1\n50,9\n100,1\n").expect("a file");
    let printed = shell.succeed(&["simulate", "scenario.toml"]);
    let note = printed.lines().find(|line| line.starts_with("Note: ")).expect("a note");
    assert!(note.contains("rps were offered instead of the 300 that were asked for"), "{note}");
    assert!(
        note.contains(
            "the 2 s that are measured are only a part of the arrival pattern, which is 100 s long"
        )
    );
}

#[test]
fn a_model_that_no_rate_suits_is_named() {
    let shell = Shell::with(&SCENARIO.replace("slo_ms = 25", "slo_ms = 5"));
    for arguments in [&["simulate", "scenario.toml"][..], &["goodput", "scenario.toml", "--seeds", "1"]] {
        let printed = shell.succeed(arguments);
        assert!(printed.contains("Note: model \"cat\" cannot meet its SLO of 5 ms at any rate"), "{printed}");
    }
}

#[cfg(unix)]
#[test]
fn a_page_goes_through_a_link_and_into_what_is_no_file() {
    let shell = Shell::with(SCENARIO);
    let at = |name: &str| shell.path().join(name);
    std::fs::create_dir(at("real")).expect("a folder");
    std::fs::write(at("real/old.html"), "old").expect("a file");
    for (target, link) in [("real/old.html", "link.html"), ("real/new.html", "dangling.html")] {
        std::os::unix::fs::symlink(target, at(link)).expect("a link");
        shell.succeed(&["simulate", "scenario.toml", "--html", link]);
        assert!(at(link).is_symlink());
        assert!(std::fs::read_to_string(at(target)).expect("the page").starts_with("<!DOCTYPE html>"));
    }
    shell.succeed(&["simulate", "scenario.toml", "--html", "/dev/null"]);
    assert!(!Path::new("/dev/null").is_file());

    let made = Command::new("mkfifo").arg(at("pipe")).status().expect("mkfifo runs");
    assert!(made.success());
    let pipe = at("pipe");
    let reader = std::thread::spawn(move || std::fs::read_to_string(pipe));
    shell.succeed(&["simulate", "scenario.toml", "--html", "pipe"]);
    assert!(reader.join().expect("a reader").expect("the page").starts_with("<!DOCTYPE html>"));
    assert_eq!(shell.files(), ["dangling.html", "link.html", "pipe", "real", "scenario.toml"]);
}

#[cfg(target_os = "linux")]
#[test]
fn a_page_that_cannot_be_written_is_refused_at_once_or_costs_no_result() {
    let shell = Shell::with(SCENARIO);
    // Nobody can create a file there, root included.
    let output = shell.run(&["simulate", "scenario.toml", "--html", "/proc/page.html"]);
    assert_eq!((output.status.code(), text(&output.stdout)), (Some(2), String::new()));
    assert!(text(&output.stderr).contains("--html /proc/page.html: cannot write"));
    // Opens, and fails when it is written.
    let output = shell.run(&["simulate", "scenario.toml", "--html", "/dev/full"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("--html /dev/full: cannot write"));
    assert!(text(&output.stdout).contains("in SLO"));
    assert_eq!(shell.files(), ["scenario.toml"]);
}

#[test]
fn a_reader_that_has_seen_enough_is_no_error() {
    let shell = Shell::with(SCENARIO);
    let mut child = shell
        .command(&["simulate", "scenario.toml", "--format", "json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("downbeat runs");
    drop(child.stdout.take());
    let output = child.wait_with_output().expect("downbeat ends");
    assert!(output.status.success(), "{}", text(&output.stderr));
}
