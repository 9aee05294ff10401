//! Settings: from flags, from the environment and from `downbeat.toml`.

use std::fs;

use downbeat_server::settings::KEYS;
use tempfile::TempDir;

use crate::server::{downbeat, run};

/// What `--print-config` says of every key.
fn printed(folder: &TempDir, arguments: &[&str], environment: &[(String, String)]) -> String {
    let mut command = downbeat(&["serve", "--print-config"]);
    command.args(arguments).current_dir(folder.path());
    command.envs(environment.iter().cloned()).env("HOME", "/home/me").env_remove("XDG_CACHE_HOME");
    let output = run(command);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn print_config_shows_every_setting_and_where_it_comes_from() {
    let folder = tempfile::tempdir().unwrap();
    let file = "model_repository = \"models\"\nhttp_port = 80\ngrpc_port = 81\ndevice = [\"cpu:2\"]\n\
                worker_token = \"secret\"\n";
    fs::write(folder.path().join("downbeat.toml"), file).unwrap();
    let environment = [("DOWNBEAT_GRPC_PORT".to_owned(), "91".to_owned())];
    let arguments = ["--http-port", "90", "--device", "emulated:8@h200/7g", "--device", "emulated"];
    insta::assert_snapshot!(printed(&folder, &arguments, &environment));
}

#[test]
fn what_print_config_shows_is_a_file_that_gives_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let arguments =
        ["--default-slo-ms", "12.5", "--device", "emulated:3", "--load-model", "a,b", "--drain-s", "0"];
    let shown = printed(&folder, &arguments, &[]);
    fs::write(folder.path().join("downbeat.toml"), &shown).unwrap();
    let values = |text: &str| -> Vec<String> {
        text.lines().map(|line| line.split("  # ").next().unwrap().trim().to_owned()).collect()
    };
    assert_eq!(values(&printed(&folder, &[], &[])), values(&shown));
}

/// A value of every key, in TOML and as a word.
fn sample(key: &str) -> (&'static str, &'static str) {
    match key {
        "device" => ("[\"emulated:7\"]", "emulated:7"),
        "address" | "worker_address" => ("\"127.0.0.9\"", "127.0.0.9"),
        "default_slo_ms" | "max_wait_ms" | "drain_s" | "worker_timeout_s" | "device_timeout_s" => {
            ("7.5", "7.5")
        }
        "profile" | "load_model" => ("[\"/x\", \"/y\"]", "/x,/y"),
        "model_control_mode" => ("\"explicit\"", "explicit"),
        "spare_devices" => ("\"idle\"", "idle"),
        "log_format" => ("\"json\"", "json"),
        "model_repository" | "cache_dir" | "onnxruntime" | "subclusters" => ("\"/x\"", "/x"),
        "log_level" => ("\"debug\"", "debug"),
        "worker_token" => ("\"...\"", "x"),
        _ => ("77", "77"),
    }
}

#[test]
fn every_setting_can_be_a_flag_a_variable_or_in_the_file() {
    let flags: Vec<String> =
        KEYS.iter().map(|key| format!("--{}={}", key.replace('_', "-"), sample(key).1)).collect();
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    let environment: Vec<(String, String)> = KEYS
        .iter()
        .map(|key| (format!("DOWNBEAT_{}", key.to_uppercase()), sample(key).1.to_owned()))
        .collect();
    let file: String = KEYS.iter().map(|key| format!("{key} = {}\n", sample(key).0)).collect();
    let (bare, with_file) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    fs::write(with_file.path().join("downbeat.toml"), file).unwrap();
    for (shown, origin) in [
        (printed(&with_file, &flags, &environment), "flag"),
        (printed(&with_file, &[], &environment), "DOWNBEAT_"),
        (printed(&with_file, &[], &[]), "downbeat.toml"),
        (printed(&bare, &[], &[]), "default"),
    ] {
        assert_eq!(shown.lines().count(), KEYS.len(), "{shown}");
        for (key, line) in KEYS.iter().zip(shown.lines()) {
            let (setting, from) = line.split_once("  # ").unwrap();
            assert!(from.starts_with(origin), "{line}");
            let sampled = setting.trim_end() == format!("{key} = {}", sample(key).0);
            assert_eq!(sampled, origin != "default", "{line}");
        }
    }
}

#[test]
fn help_shows_what_there_is() {
    for command in ["serve", "worker", "profile"] {
        let output = run(downbeat(&[command, "--help"]));
        assert!(output.status.success());
        insta::assert_snapshot!(format!("help_{command}"), String::from_utf8(output.stdout).unwrap());
    }
}

#[test]
fn an_empty_variable_sets_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let empty: Vec<(String, String)> =
        KEYS.iter().map(|key| (format!("DOWNBEAT_{}", key.to_uppercase()), String::new())).collect();
    assert_eq!(printed(&folder, &[], &empty), printed(&folder, &[], &[]));
}

#[test]
fn print_config_refuses_what_serve_refuses() {
    for (arguments, part) in [
        (vec!["--queue-limit=0"], "queue_limit is 0"),
        (vec!["--worker-timeout-s=0"], "worker_timeout_s is 0"),
        (vec!["--device=none", "--device=cpu"], "cannot be beside others"),
        (vec!["--log-level=bananas"], "log_level is \"bananas\""),
    ] {
        let output = run(downbeat(&[&["serve", "--print-config"], &arguments[..]].concat()));
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        let error = String::from_utf8(output.stderr).unwrap();
        assert!(error.contains(part), "{error}");
        assert!(!output.stdout.is_empty(), "where it comes from is shown all the same");
    }
}
