//! Deadlines, cancellation, limits and priorities on a device that is busy.

use std::sync::Mutex;
use std::thread;
use std::time::Duration;

use downbeat_oip::proto::ModelInferRequest;
use downbeat_oip::proto::grpc_inference_service_client::GrpcInferenceServiceClient;
use downbeat_oip::proto::model_infer_request::InferInputTensor;
use serde_json::json;
use tonic::{Code, Request};

use crate::client::{infer_body, infer_with, request_bytes, send};
use crate::models::{Emulated, Models, QUICK};
use crate::server::Server;

/// Keeps the only device busy for longer than the rest of the test needs.
const BLOCKER: Emulated =
    Emulated { alpha_ms: 0.0, beta_ms: 4_000.0, slo_ms: 60_000.0, max_batch: 1, queue_limit: 0 };

const ONE_DEVICE: [&str; 2] = ["--device", "emulated:1"];

/// Runs a test while the device is busy; at its end, the device must still be.
fn while_busy(server: &Server, test: impl FnOnce()) {
    thread::scope(|scope| {
        let blocker = scope.spawn(|| server.infer("blocker"));
        let runs = || server.metric("downbeat_batches_total", &["blocker"]) == 1.0;
        server.await_that("the device is busy", runs);
        test();
        assert!(!blocker.is_finished(), "the device was to be busy all the time");
        assert_eq!(blocker.join().unwrap().status, 200);
    });
}

fn failures(server: &Server, model: &str, reason: &str) -> f64 {
    let labels = [format!("model=\"{model}\""), format!("reason=\"{reason}\"")];
    server.metric("nv_inference_request_failure", &[&labels[0], &labels[1]])
}

fn pending(server: &Server, model: &str) -> f64 {
    server.metric("nv_inference_pending_request_count", &[&format!("model=\"{model}\"")])
}

/// The code that a gRPC client gets.
fn grpc_infer(server: &Server, model: &str, timeout: Option<Duration>) -> Code {
    let input = InferInputTensor {
        name: "INPUT0".into(),
        datatype: "FP32".into(),
        shape: vec![1, 4],
        ..InferInputTensor::default()
    };
    let mut request = Request::new(ModelInferRequest {
        model_name: model.into(),
        inputs: vec![input],
        raw_input_contents: vec![vec![0; 16].into()],
        ..ModelInferRequest::default()
    });
    if let Some(timeout) = timeout {
        // As a header only: a client that keeps time itself would not wait for the server's answer.
        request.metadata_mut().insert("grpc-timeout", format!("{}m", timeout.as_millis()).parse().unwrap());
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let address = format!("http://{}", server.grpc);
        let mut client = GrpcInferenceServiceClient::connect(address).await.unwrap();
        client.model_infer(request).await.map_or_else(|status| status.code(), |_| Code::Ok)
    })
}

#[test]
fn the_tightest_of_timeout_grpc_deadline_and_slo_is_what_counts() {
    let models = Models::with("blocker", BLOCKER)
        .and("patient", Emulated { slo_ms: 50_000.0, ..QUICK })
        .and("hasty", Emulated { slo_ms: 60.0, ..QUICK });
    let server = Server::start(&models, &ONE_DEVICE);
    while_busy(&server, || {
        // Each is answered although the device is not free.
        let answer = infer_with(server.http, "patient", &json!({ "timeout": 60_000 }));
        assert_eq!(answer.status, 504, "{answer:?}");
        assert!(answer.error().contains("deadline of 60.0 ms"), "{answer:?}");
        let answer = infer_with(server.http, "hasty", &json!({ "timeout": 50_000_000 }));
        assert_eq!(answer.status, 504, "{answer:?}");
        assert!(answer.error().contains("deadline of 60.0 ms"), "{answer:?}");
        let code = grpc_infer(&server, "hasty", Some(Duration::from_secs(50)));
        assert_eq!(code, Code::DeadlineExceeded);
        assert_eq!(failures(&server, "patient", "expired"), 1.0);
        assert_eq!(failures(&server, "hasty", "expired"), 2.0);
        // Tonic's client keeps time too, and may be first: the server counts what it did itself.
        assert_ne!(grpc_infer(&server, "patient", Some(Duration::from_millis(60))), Code::Ok);
        let left = || failures(&server, "patient", "expired") + failures(&server, "patient", "cancelled");
        server.await_that("the gRPC deadline counts", || left() == 2.0);
    });
    assert_eq!(infer_with(server.http, "patient", &json!({ "timeout": 40_000_000 })).status, 200);
}

#[test]
fn a_request_whose_client_has_gone_leaves_the_queue() {
    let models = Models::with("blocker", BLOCKER).and("quick", QUICK);
    let server = Server::start(&models, &ONE_DEVICE);
    while_busy(&server, || {
        let stream =
            send(server.http, &request_bytes("POST", "/v2/models/quick/infer", &infer_body(&json!({}))));
        server.await_that("it waits", || pending(&server, "quick") == 1.0);
        drop(stream);
        server.await_that("it has left", || pending(&server, "quick") == 0.0);
        assert_eq!(failures(&server, "quick", "cancelled"), 1.0);
    });
    assert_eq!(server.metric("nv_inference_exec_count", &["quick"]), 0.0, "it never ran");
}

#[test]
fn a_full_queue_refuses_at_once() {
    let models = Models::with("blocker", BLOCKER).and("small", Emulated { queue_limit: 2, ..QUICK });
    let server = Server::start(&models, &ONE_DEVICE);
    while_busy(&server, || {
        let request = request_bytes("POST", "/v2/models/small/infer", &infer_body(&json!({})));
        let _waiting = [send(server.http, &request), send(server.http, &request)];
        server.await_that("two wait", || pending(&server, "small") == 2.0);
        let answer = server.infer("small");
        assert_eq!(answer.status, 429, "{answer:?}");
        assert_eq!(grpc_infer(&server, "small", None), Code::ResourceExhausted);
        assert_eq!(failures(&server, "small", "overloaded"), 2.0);
    });
}

#[test]
fn an_urgent_request_overtakes_those_that_wait() {
    let one_by_one = Emulated { alpha_ms: 0.0, beta_ms: 100.0, max_batch: 1, ..QUICK };
    let models = Models::with("blocker", BLOCKER).and("m", one_by_one);
    let server = Server::start(&models, &ONE_DEVICE);
    let order = Mutex::new(Vec::new());
    let ask = |priority: u32| {
        let answer = infer_with(server.http, "m", &json!({ "priority": priority }));
        assert_eq!(answer.status, 200, "{answer:?}");
        order.lock().unwrap().push(priority);
    };
    thread::scope(|scope| {
        while_busy(&server, || {
            for _ in 0..3 {
                scope.spawn(|| ask(5));
            }
            server.await_that("three wait", || pending(&server, "m") == 3.0);
            scope.spawn(|| ask(1));
            server.await_that("four wait", || pending(&server, "m") == 4.0);
        });
    });
    assert_eq!(order.into_inner().unwrap(), [1, 5, 5, 5]);
}
