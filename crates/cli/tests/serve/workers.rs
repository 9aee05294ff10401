//! Workers that die.

use std::fs;
use std::thread;

use downbeat_oip::DataType;
use downbeat_testmodels::{Graph, identity};
use rustix::process::Signal;
use serde_json::json;

use crate::models::{Models, QUICK, SLOW};
use crate::server::{Server, signal};

const TWO_WORKERS: [&str; 4] = ["--device", "emulated:1", "--device", "emulated:1"];

#[test]
fn when_a_worker_is_killed_its_requests_run_elsewhere_and_it_comes_back() {
    let server = Server::start(&Models::with("slow", SLOW), &TWO_WORKERS);
    let answers: Vec<_> = thread::scope(|scope| {
        let clients: Vec<_> = (0..8).map(|_| scope.spawn(|| server.infer("slow"))).collect();
        server.await_that("both run a batch", || server.metric("downbeat_batches_total", &["slow"]) >= 2.0);
        signal(server.children()[0], Signal::KILL);
        clients.into_iter().map(|client| client.join().unwrap()).collect()
    });
    for answer in answers {
        assert_eq!(answer.status, 200, "{answer:?}");
    }
    assert_eq!(server.metric("nv_inference_request_success", &["slow"]), 8.0, "each is counted once");
    assert_eq!(server.metric("nv_inference_request_failure", &["slow"]), 0.0);
    server.await_that("both devices are up", || server.metric("downbeat_device_up", &[]) == 2.0);
    assert_eq!(server.metric("downbeat_worker_restarts_total", &[]), 1.0);
    assert_eq!(server.children().len(), 2);
}

#[test]
fn without_a_worker_requests_are_told_so_until_it_is_back() {
    let server = Server::start(&Models::with("quick", QUICK), &["--device", "emulated:2"]);
    server.await_that("a request comes while there is no worker", || {
        server.children().into_iter().for_each(|worker| signal(worker, Signal::KILL));
        let answer = server.infer("quick");
        match answer.status {
            200 => false,
            503 => {
                assert!(answer.error().contains("no worker"), "{answer:?}");
                assert!(server.metric("nv_inference_request_failure", &["unavailable"]) >= 1.0);
                true
            }
            _ => panic!("{answer:?}"),
        }
    });
    server.await_ready();
    assert_eq!(server.infer("quick").status, 200);
}

#[test]
fn a_worker_that_hangs_is_given_up_and_its_process_replaced() {
    let arguments = ["--device", "emulated:1", "--device-timeout-s", "1"];
    let server = Server::start(&Models::with("quick", QUICK), &arguments);
    let worker = server.children()[0];
    signal(worker, Signal::STOP);
    let answer = server.infer("quick");
    assert_eq!(answer.status, 200, "{answer:?}\n{}", server.process.log());
    assert!(!server.children().contains(&worker), "the one that hung is gone");
}

#[test]
fn a_version_is_served_from_one_file_whatever_lies_in_the_repository_by_then() {
    let models = Models::new();
    let file = models.path().join("m/1/model.onnx");
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(&file, identity(DataType::Fp32, &[-1, 4]).encode()).unwrap();
    let explicit = ["--model-control-mode", "explicit", "--load-model", "m"];
    let server =
        Server::start(&models, &[&["--device", "cpu:2", "--intra-op-threads", "1"][..], &explicit].concat());
    let both_up = || server.metric("downbeat_device_up", &[]) == 2.0;
    server.await_that("both devices are up", both_up);
    let answer = || {
        let answer = server.infer("m");
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.json()["outputs"][0]["data"].clone()
    };
    let negative = Graph::new()
        .input("INPUT0", DataType::Fp32, &[-1, 4])
        .output("OUTPUT0", DataType::Fp32, &[-1, 4])
        .node("Neg", &["INPUT0"], &["OUTPUT0"]);
    fs::write(&file, negative.encode()).unwrap();
    signal(server.children()[0], Signal::KILL);
    let line = server.process.await_line("has changed since the model was loaded");
    assert!(line.contains("WARN") && line.contains("/v2/repository/models/m/load"), "{line}");
    for _ in 0..20 {
        assert_eq!(answer(), json!([1.0, 2.0, 3.0, 4.0]), "as it was loaded");
    }
    assert_eq!(server.load("m").status, 200);
    server.await_that("both devices are up", both_up);
    for _ in 0..20 {
        assert_eq!(answer(), json!([-1.0, -2.0, -3.0, -4.0]));
    }
}

#[test]
fn a_link_that_leads_in_circles_holds_up_nothing() {
    let models = Models::new();
    models.write_onnx("matmul");
    std::os::unix::fs::symlink(".", models.path().join("matmul/1/itself")).unwrap();
    let server = Server::start(&models, &["--device", "cpu"]);
    assert_eq!(server.state("matmul").0, "READY");
}
