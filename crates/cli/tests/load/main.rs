//! `downbeat load` as a process, against a real server with emulated devices.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]
#![allow(clippy::disallowed_types, clippy::disallowed_methods, reason = "processes live in real time")]

#[allow(dead_code, reason = "shared with the tests of the server, which need more of it")]
#[path = "../serve/client.rs"]
mod client;
#[allow(dead_code, reason = "shared with the tests of the server, which need more of it")]
#[path = "../serve/models.rs"]
mod models;
#[allow(dead_code, reason = "shared with the tests of the server, which need more of it")]
#[path = "../serve/server.rs"]
mod server;

mod counting;
mod refusals;
mod stopping;

use std::process::Command;

use serde_json::Value;

use server::{Server, downbeat, run};

/// What holds where a test says nothing else: a short run without a warm-up, for programs.
const SHORT: [&str; 5] = ["--format=json", "--warmup=0", "--duration=1", "--rate=100", "--slo-ms=20000"];

fn urls(server: &Server) -> [String; 2] {
    [format!("--url=http://{}", server.http), format!("--url=grpc://{}", server.grpc)]
}

fn load(url: &str, flags: &[&str]) -> Command {
    let name = |flag: &str| flag.split('=').next().unwrap_or_default().to_owned();
    let is_given = |flag: &&str| flags.iter().any(|given| name(given) == name(flag));
    let mut command = downbeat(&["load", url]);
    command.args(SHORT.iter().filter(|flag| !is_given(flag))).args(flags);
    command
}

/// The report of a load that can be made, whether anything comes back or not.
fn report(url: &str, flags: &[&str]) -> Value {
    let output = run(load(url, flags));
    assert!(matches!(output.status.code(), Some(0 | 1)), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The message of a load that cannot.
fn refusal(url: &str, flags: &[&str]) -> String {
    let output = run(load(url, flags));
    assert_eq!(output.status.code(), Some(2), "{}", String::from_utf8_lossy(&output.stdout));
    String::from_utf8(output.stderr).unwrap()
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

fn count(report: &Value, outcome: &str) -> u64 {
    report["outcomes"][outcome].as_u64().unwrap_or_else(|| panic!("no {outcome}: {report}"))
}

/// Every request has exactly one outcome, in each model and in all.
fn assert_counted_once(report: &Value) {
    let sum =
        |of: &Value| of["outcomes"].as_object().unwrap().values().map(|n| n.as_u64().unwrap()).sum::<u64>();
    assert_eq!(report["offered"].as_u64().unwrap(), sum(report), "{report}");
    let models = report["models"].as_array().unwrap();
    assert_eq!(sum(report), models.iter().map(sum).sum::<u64>());
    for model in models {
        assert_eq!(model["offered"].as_u64().unwrap(), sum(model), "{model}");
    }
}
