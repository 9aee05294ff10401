//! `downbeat simulate` of a day, as a process.

#![allow(missing_docs, clippy::unwrap_used, reason = "tests")]

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use tempfile::TempDir;

const DAY: &str = "duration_s = 1200\n[day]\nproblem = \"problem.toml\"\ntrace = \"rise.csv\"\nepoch_s = 300\nlead_s = 120\n\
                   season_s = 1200\nhistory_days = 1\ntimes = \"2024\"\nprovision_s = 10\n";

/// A folder with a day of twenty minutes in which demand grows six-fold.
fn folder(day: &str) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let profiles = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../profiles/a100.csv");
    let problem = format!(
        "gpu = \"A100-40GB\"\nprofiles = {:?}\nrule = \"half\"\n\
         [[service]]\nname = \"chat\"\nmodel = \"albert-large-v2\"\nrate_rps = 500\nslo_ms = 350\n",
        profiles.display()
    );
    fs::write(folder.path().join("problem.toml"), problem).unwrap();
    let rows: String = (0..=40).map(|row| format!("{},{}\n", 30 * row, 10 + row)).collect();
    fs::write(folder.path().join("rise.csv"), format!("time_s,rate\n{rows}")).unwrap();
    fs::write(folder.path().join("day.toml"), day).unwrap();
    folder
}

fn downbeat(folder: &TempDir, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_downbeat"))
        .args(arguments)
        .current_dir(folder.path())
        .env("XDG_CACHE_HOME", folder.path())
        .output()
        .unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[test]
fn a_day_is_printed_as_json_and_drawn() {
    let folder = folder(DAY);
    let output = downbeat(&folder, &["simulate", "day.toml", "--format", "json", "--html", "day.html"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["lost"], 0);
    assert_eq!(report["violations"].as_array().unwrap().len(), 0);
    assert_eq!(report["minutes"].as_array().unwrap().len(), 20);
    assert!(!report["changes"].as_array().unwrap().is_empty());
    assert!(report["requests"].as_u64().unwrap() > 200_000);
    let page = fs::read_to_string(folder.path().join("day.html")).unwrap();
    assert!(page.contains("Layouts over the day") && page.contains("Steps over the day"));
}

#[test]
fn people_see_what_it_saved_and_each_change() {
    let folder = folder(DAY);
    let output = downbeat(&folder, &["simulate", "day.toml", "--seed", "4"]);
    let printed = text(&output.stdout);
    assert!(output.status.success(), "{}", text(&output.stderr));
    for part in ["day, seed 4", "GPU-hours", "% saved", "0 requests lost", "chat", "epoch", "worst minute"] {
        assert!(printed.contains(part), "{part} is not in\n{printed}");
    }
}

#[test]
fn what_is_wrong_is_said_in_one_line_with_exit_code_2() {
    let cases: [(&str, &[&str], &str); 4] = [
        (DAY, &["--rate", "3"], "--rate does not apply to a day"),
        (DAY, &["--policy", "eager"], "--policy does not apply to a day"),
        (
            "[day]\nproblem = \"problem.toml\"\ntrace = \"rise.csv\"\ndriver = \"nvlm\"\n",
            &[],
            "day.toml:4: driver",
        ),
        ("[day]\nproblem = \"problem.toml\"\n", &[], "day.toml:1: trace is missing"),
    ];
    for (day, flags, message) in cases {
        let folder = folder(day);
        let output = downbeat(&folder, &[&["simulate", "day.toml"], flags].concat());
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.starts_with("error: ") && said.contains(message), "{said}");
        assert_eq!(said.lines().count(), 1, "{said}");
    }
}
