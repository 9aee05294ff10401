//! `downbeat profile` and who reads what it writes. These run on ONNX Runtime.

use std::fs;

use crate::models::{Models, QUICK};
use crate::server::{Server, downbeat, run};

fn profile(models: &Models, arguments: &[&str]) -> (Option<i32>, String, String) {
    let mut command = downbeat(&["profile", "--model-repository", "models"]);
    command.current_dir(models.beside()).args(arguments);
    let output = run(command);
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

#[test]
fn what_profile_writes_serve_and_simulate_read() {
    let models = Models::new();
    models.write_onnx("simple");
    let (code, table, log) = profile(&models, &["--output", "cpu.csv"]);
    assert_eq!(code, Some(0), "{log}");
    assert!(table.contains("Written to cpu.csv. Use it: downbeat serve --profile cpu.csv"), "{table}");

    let server = Server::start(&models, &["--device", "cpu", "--profile", "cpu.csv"]);
    assert_eq!(server.state("simple").0, "READY");
    assert!(!server.process.log().contains("measuring"), "{}", server.process.log());
    drop(server);

    let scenario = "gpus = 1\ntotal_rps = 50\nduration_s = 2\n[[model]]\nname = \"simple\"\nslo_ms = 100\n\
                    profile = { csv = \"cpu.csv\", model = \"simple\", slice = \"cpu\" }\n";
    fs::write(models.beside().join("scenario.toml"), scenario).unwrap();
    let mut command = downbeat(&["simulate", "scenario.toml"]);
    command.current_dir(models.beside());
    let output = run(command);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn a_model_without_a_profile_is_measured_once() {
    let models = Models::new();
    models.write_onnx("matmul");
    let server = Server::start(&models, &["--device", "cpu"]);
    assert!(server.process.log().contains("no profile for the class cpu: measuring"));
    drop(server);
    let server = Server::start(&models, &["--device", "cpu"]);
    assert!(!server.process.log().contains("measuring"), "{}", server.process.log());
}

#[test]
fn what_cannot_be_measured_is_refused() {
    let models = Models::with("quick", QUICK);
    for (arguments, problem) in [
        (&["--device", "emulated:1"][..], "an emulated device takes as long as its profile says"),
        (&["--model", "missing"], "has no model \"missing\""),
        (&[], "quick is emulated: there is nothing to measure"),
        (&["--onnxruntime", "/nonexistent/ort.so"], "no ONNX Runtime library at /nonexistent/ort.so"),
        (&["--device", "gpu"], "\"gpu\" is not a device"),
        (&["--open-size", "0"], "invalid value '0'"),
    ] {
        let (code, _, log) = profile(&models, arguments);
        assert_eq!(code, Some(2), "{arguments:?}: {log}");
        assert!(log.contains(problem), "{arguments:?}: {log}");
    }
    let nowhere = ["--output", "/nonexistent/cpu.csv"];
    models.write_onnx("matmul");
    let (code, _, log) = profile(&models, &[&["--model", "matmul"], &nowhere[..]].concat());
    assert_eq!(code, Some(2), "{log}");
    assert!(log.contains("cannot write /nonexistent/cpu.csv: there is no folder /nonexistent"), "{log}");
}

#[test]
fn latencies_of_an_emulated_model_that_nobody_gave_are_announced_or_refused() {
    let models = Models::new();
    let config = "backend: \"emulated\"\nmax_batch_size: 4\n\
                  input { name: \"INPUT0\" data_type: TYPE_FP32 dims: 4 }\n\
                  output { name: \"OUTPUT0\" data_type: TYPE_FP32 dims: 2 }\n";
    models.configure("unknown", config);
    models.configure("known", config);
    let server = Server::start(&models, &["--device", "emulated:1@h200"]);
    let line = server.process.await_line("which is made up");
    assert!(line.contains("WARN") && line.contains("on the class h200"), "{line}");
    assert_eq!(server.state("unknown").0, "READY");
    drop(server);
    // Where somebody has said it for others, that it is missing is a mistake.
    let rows = "model,slice,batch,latency_ms\nknown,h200,1,3\nknown,h200,4,6\n";
    fs::write(models.beside().join("h200.csv"), rows).unwrap();
    let server = Server::start(&models, &["--device", "emulated:1@h200", "--profile", "h200.csv"]);
    assert_eq!(server.state("known").0, "READY");
    let (state, reason) = server.state("unknown");
    assert_eq!(state, "UNAVAILABLE");
    assert!(reason.contains("none for \"unknown\"") && reason.contains("alpha_ms"), "{reason}");
    assert!(!server.process.log().contains("made up"), "{}", server.process.log());
}
