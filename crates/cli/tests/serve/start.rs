//! What keeps a server from starting, and what does not.

use std::fs;
use std::net::TcpListener;

use crate::models::{BROKEN, Models, QUICK};
use crate::server::{Server, downbeat, run};

/// Starts a server that cannot start; what it says last.
fn refusal(models: &Models, arguments: &[&str]) -> String {
    let mut command = downbeat(&["serve", "--address", "127.0.0.1"]);
    command.current_dir(models.beside()).args(arguments);
    let output = run(command);
    let log = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{log}");
    log.lines().last().unwrap_or_default().to_owned()
}

const FREE_PORTS: [&str; 6] = ["--http-port", "0", "--grpc-port", "0", "--metrics-port", "0"];

#[test]
fn a_port_in_use_is_named_with_the_flag_that_changes_it() {
    let models = Models::with("quick", QUICK);
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    for flag in ["--http-port", "--grpc-port", "--metrics-port", "--worker-port"] {
        let mut arguments = vec!["--model-repository", "models", "--device", "emulated:1"];
        for pair in FREE_PORTS.chunks(2).filter(|pair| pair[0] != flag) {
            arguments.extend(pair);
        }
        arguments.extend([flag, &port]);
        let line = refusal(&models, &arguments);
        assert!(line.starts_with(&format!("error: cannot listen on 127.0.0.1:{port}")), "{line}");
        assert!(line.contains(flag), "{line}");
    }
}

#[test]
fn a_repository_that_is_none_is_refused() {
    let models = Models::with("quick", QUICK);
    fs::write(models.beside().join("file"), "").unwrap();
    for (path, problem) in [
        ("missing", "there is no such model repository"),
        ("file", "is a file"),
        ("models/quick", "is a model"),
    ] {
        let arguments = [&FREE_PORTS[..], &["--device", "emulated:1", "--model-repository", path]].concat();
        let line = refusal(&models, &arguments);
        assert!(line.starts_with("error: ") && line.contains(problem), "{line}");
    }
    let line = refusal(&models, &FREE_PORTS);
    assert!(line.contains("--model-repository") && line.contains("DOWNBEAT_MODEL_REPOSITORY"), "{line}");
}

#[test]
fn a_configuration_file_that_is_wrong_is_refused() {
    let models = Models::with("quick", QUICK);
    for (text, problem) in [
        ("http-prot = 80", "unknown key \"http-prot\"; did you mean \"http_port\"?"),
        (
            "model_repository = \"models\"\ndefault_slo_ms = 0.0",
            "default_slo_ms is 0; it must be a number above 0",
        ),
        ("model_repository = \"models\"\nlog_level = \"=,=\"", "log_level is \"=,=\"; it must be"),
    ] {
        fs::write(models.beside().join("downbeat.toml"), text).unwrap();
        let line = refusal(&models, &[]);
        assert!(line.starts_with("error: ") && line.contains(problem), "{line}");
    }
    let line = refusal(&models, &["--config", "other.toml"]);
    assert!(line.starts_with("error: cannot read other.toml"), "{line}");
}

#[test]
fn a_device_that_is_none_is_refused() {
    let models = Models::with("quick", QUICK);
    for device in ["gpu", "emulated:0", "cpu:x", "emulated:4@"] {
        let mut command = downbeat(&["serve", "--model-repository", "models", "--device", device]);
        command.current_dir(models.beside());
        let output = run(command);
        let text = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{text}");
        assert!(text.contains(&format!("invalid value '{device}' for '--device <DEVICE>'")), "{text}");
    }
}

#[test]
fn a_missing_library_ends_the_start() {
    let models = Models::with("quick", QUICK);
    let library =
        ["--model-repository", "models", "--device", "cpu:2", "--onnxruntime", "/nonexistent/ort.so"];
    let line = refusal(&models, &[&FREE_PORTS[..], &library].concat());
    assert!(line.starts_with("error: no ONNX Runtime library at /nonexistent/ort.so"), "{line}");
    assert!(line.contains("--onnxruntime FILE"), "{line}");
}

#[test]
fn broken_models_are_unavailable_with_the_reason_and_the_others_are_served() {
    let models = Models::with("good", QUICK).and("broken", BROKEN);
    models.configure("typo", "max_batch_sizes: 3");
    models.configure("empty", "backend: \"emulated\"");
    fs::create_dir_all(models.path().join("garbage/1")).unwrap();
    fs::write(models.path().join("garbage/1/model.onnx"), "this is no model").unwrap();
    let server = Server::start(&models, &["--device", "emulated:1"]);
    assert_eq!(server.infer("good").status, 200);
    for (model, why) in [
        ("broken", "no profile to emulate"),
        ("typo", "max_batch_sizes"),
        ("empty", "input"),
        ("garbage", "model.onnx"),
    ] {
        let (state, reason) = server.state(model);
        assert_eq!(state, "UNAVAILABLE", "{model}: {reason}");
        assert!(reason.contains(why), "{model}: {reason}");
        let answer = server.infer(model);
        assert_eq!(answer.status, 503, "{model}: {answer:?}");
        assert!(answer.error().contains(why), "{model}: {answer:?}");
    }
    assert_eq!(server.state("good").0, "READY");
}
