//! Workers that join from elsewhere.

use std::fs;
use std::thread;

use rustix::process::Signal;
use serde_json::json;

use crate::client;
use crate::models::{Models, QUICK, SLOW};
use crate::server::{Process, Server, downbeat, run};

const SERVER: [&str; 4] = ["--device", "none", "--worker-token", "secret"];

fn worker(server: &Server, arguments: &[&str]) -> std::process::Command {
    let mut command = downbeat(&["worker", "--connect"]);
    command.arg(server.workers.to_string()).args(arguments);
    command
}

#[test]
fn a_worker_from_elsewhere_fetches_the_models_and_serves() {
    let models = Models::new();
    models.write_onnx("matmul");
    // Whatever lies beside the model comes along, also where there is nothing in it.
    fs::create_dir(models.path().join("matmul/1/extra")).unwrap();
    fs::write(models.path().join("matmul/1/extra/empty"), "").unwrap();
    let server = Server::launch(&models, &SERVER);
    let _worker = Process::start(worker(&server, &["--worker-token", "secret", "--device", "cpu"]));
    server.await_ready();
    let input = json!({ "name": "INPUT0", "shape": [1, 4], "datatype": "FP32", "data": [1, 0, 0, 0] });
    let body = json!({ "inputs": [input] }).to_string();
    let answer = client::post(server.http, "/v2/models/matmul/infer", &body);
    assert_eq!(answer.status, 200, "{answer:?}");
    assert_eq!(answer.json()["outputs"][0]["data"], json!([-2.75, -2.25, -1.75]));
    assert!(answer.parameter("downbeat_device").as_str().unwrap().ends_with("/cpu:0"), "{answer:?}");
}

#[test]
fn a_wrong_token_is_refused_and_the_server_goes_on() {
    let models = Models::with("quick", QUICK);
    let server = Server::launch(&models, &SERVER);
    for token in ["", "wrong!"] {
        let output = run(worker(&server, &["--worker-token", token, "--device", "emulated:1"]));
        let log = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{log}");
        let line = log.lines().last().unwrap_or_default();
        assert!(line.starts_with("error: ") && line.contains("--worker-token"), "{log}");
    }
    let _worker = Process::start(worker(&server, &["--worker-token", "secret", "--device", "emulated:1"]));
    server.await_ready();
    assert_eq!(server.infer("quick").status, 200);
}

#[test]
fn a_worker_that_is_told_to_end_finishes_its_batch_first() {
    let models = Models::with("slow", SLOW);
    let server = Server::launch(&models, &SERVER);
    let start = || Process::start(worker(&server, &["--worker-token", "secret", "--device", "emulated:1"]));
    let mut workers = [start(), start()];
    for worker in &workers {
        let line = worker.await_line("joined the server at");
        assert!(line.contains(&server.workers.to_string()) && line.contains("/emulated:0"), "{line}");
    }
    server.await_ready();
    server.await_that("both devices are up", || server.metric("downbeat_device_up", &[]) == 2.0);
    let answers: Vec<_> = thread::scope(|scope| {
        let clients: Vec<_> = (0..6).map(|_| scope.spawn(|| server.infer("slow"))).collect();
        server.await_that("both run a batch", || server.metric("downbeat_batches_total", &["slow"]) >= 2.0);
        workers[0].signal(Signal::TERM);
        clients.into_iter().map(|client| client.join().unwrap()).collect()
    });
    assert!(answers.iter().all(|answer| answer.status == 200), "{answers:?}");
    let devices: Vec<_> = answers.iter().map(|answer| answer.parameter("downbeat_device")).collect();
    assert!(
        devices.iter().any(|device| *device != devices[0]),
        "each is called by a name of its own: {devices:?}"
    );
    assert_eq!(workers[0].await_end().code(), Some(0), "{}", workers[0].log());
    server.process.await_line("a worker has left");
    assert_eq!(server.metric("downbeat_batches_total", &["slow"]), 6.0, "none was run again");
}

#[test]
fn a_worker_that_waits_for_a_server_ends_when_it_is_told_to() {
    let models = Models::with("quick", QUICK);
    let server = Server::launch(&models, &SERVER);
    let mut worker = Process::start(worker(&server, &["--worker-token", "secret", "--device", "emulated:1"]));
    server.await_ready();
    drop(server);
    worker.await_line("the next try is in");
    worker.signal(Signal::TERM);
    assert_eq!(worker.await_end().code(), Some(0), "{}", worker.log());
}

#[test]
fn a_worker_that_does_not_fit_the_others_says_why_and_does_not_try_again() {
    let models = Models::with("quick", QUICK);
    let server = Server::launch(&models, &SERVER);
    let _emulated = Process::start(worker(&server, &["--worker-token", "secret", "--device", "emulated:1"]));
    server.await_ready();
    let output = run(worker(&server, &["--worker-token", "secret", "--device", "cpu"]));
    let log = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{log}");
    assert!(log.contains("error: the server at") && log.contains("must not serve beside real ones"), "{log}");
}

#[test]
fn a_worker_survives_a_restart_of_the_server() {
    let models = Models::with("quick", QUICK);
    let first = Server::launch(&models, &SERVER);
    let worker = Process::start(worker(&first, &["--worker-token", "secret", "--device", "emulated:1"]));
    first.await_ready();
    let port = first.workers.port().to_string();
    drop(first);
    worker.await_line("the next try is in");
    let second = Server::launch(&models, &[&SERVER[..], &["--worker-port", &port]].concat());
    second.await_ready();
    assert_eq!(second.infer("quick").status, 200);
}

#[test]
fn a_worker_that_cannot_work_says_why() {
    let models = Models::with("quick", QUICK);
    let server = Server::launch(&models, &SERVER);
    let arguments = ["--worker-token", "secret", "--device", "cpu", "--onnxruntime", "/nonexistent/ort.so"];
    let output = run(worker(&server, &arguments));
    let log = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{log}");
    assert!(log.contains("error: no ONNX Runtime library at /nonexistent/ort.so"), "{log}");
    let output = run(worker(&server, &["--worker-token", "secret", "--device", "cpu:2"]));
    let log = String::from_utf8(output.stderr).unwrap();
    assert!(log.contains("error: a worker owns one device: start 2 workers instead"), "{log}");
    assert!(client::get(server.http, "/v2/health/live").status == 200);
}
