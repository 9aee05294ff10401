//! Models that come and go while others are used.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use crate::client::{self, Answer};
use crate::models::{BROKEN, Emulated, Models, QUICK, SLOW};
use crate::server::Server;

/// A server whose clients load and unload models.
fn controlled(device: &str) -> [&str; 6] {
    ["--device", device, "--model-control-mode", "explicit", "--load-model", "*"]
}

/// Asks a model from several clients at once, again and again, while something is done; what was not answered well.
fn under_load(server: &Server, model: &str, work: impl FnOnce()) -> Vec<Answer> {
    let (stop, answered) = (AtomicBool::new(false), AtomicUsize::new(0));
    thread::scope(|scope| {
        let ask = || {
            let mut bad = Vec::new();
            while !stop.load(Ordering::Relaxed) {
                let answer = server.infer(model);
                answered.fetch_add(1, Ordering::Relaxed);
                bad.extend(Some(answer).filter(|answer| answer.status != 200));
            }
            bad
        };
        let clients: Vec<_> = (0..6).map(|_| scope.spawn(ask)).collect();
        server.await_that("there is load", || answered.load(Ordering::Relaxed) > 20);
        work();
        let until = answered.load(Ordering::Relaxed) + 20;
        server.await_that("the load goes on", || answered.load(Ordering::Relaxed) > until);
        stop.store(true, Ordering::Relaxed);
        clients.into_iter().flat_map(|client| client.join().unwrap()).collect()
    })
}

#[test]
fn a_model_is_loaded_reloaded_and_unloaded_without_harm_to_another() {
    let models = Models::with("busy", QUICK);
    let server = Server::start(&models, &controlled("emulated:2"));
    models.write("guest", QUICK);
    let bad = under_load(&server, "busy", || {
        for _ in 0..5 {
            assert_eq!(server.load("guest").status, 200);
            assert_eq!(server.infer("guest").status, 200);
            assert_eq!(server.load("guest").status, 200);
            assert_eq!(server.infer("guest").status, 200);
            assert_eq!(server.unload("guest").status, 200);
            assert_eq!(server.infer("guest").status, 404);
        }
    });
    assert!(bad.is_empty(), "{bad:?}\n{}", server.process.log());
}

#[test]
fn a_model_is_reloaded_under_load_without_a_failed_request() {
    let models = Models::with("busy", QUICK);
    let server = Server::start(&models, &controlled("emulated:2"));
    let bad = under_load(&server, "busy", || {
        for _ in 0..20 {
            assert_eq!(server.load("busy").status, 200);
        }
    });
    assert!(bad.is_empty(), "{bad:?}\n{}", server.process.log());
}

#[test]
fn a_reload_takes_the_new_configuration_and_a_failed_one_keeps_the_old_model() {
    let models = Models::with("m", QUICK);
    let server = Server::start(&models, &controlled("emulated:1"));
    let most = || client::get(server.http, "/v2/models/m/config").json()["max_batch_size"].clone();
    assert_eq!(most(), 32);
    models.write("m", Emulated { max_batch: 16, ..QUICK });
    assert_eq!(server.load("m").status, 200);
    assert_eq!(most(), 16);
    for trouble in ["max_batch_size: \"?\"", ""] {
        if trouble.is_empty() {
            models.write("m", BROKEN);
        } else {
            models.configure("m", trouble);
        }
        let answer = server.load("m");
        assert_eq!(answer.status, 400, "{answer:?}");
        assert_eq!((most(), server.infer("m").status), (16.into(), 200));
        assert_eq!(server.state("m").0, "READY");
    }
}

#[test]
fn orders_for_one_model_that_come_at_once_are_carried_out_one_after_the_other() {
    let models = Models::with("good", QUICK).and("broken", BROKEN);
    let server = Server::start(&models, &controlled("emulated:1"));
    for (model, status) in [("broken", 400), ("good", 200)] {
        let answers: Vec<Answer> = thread::scope(|scope| {
            let clients: Vec<_> = (0..8).map(|_| scope.spawn(|| server.load(model))).collect();
            clients.into_iter().map(|client| client.join().unwrap()).collect()
        });
        for answer in answers {
            assert_eq!(answer.status, status, "{model}: {answer:?}");
        }
    }
    thread::scope(|scope| {
        for _ in 0..10 {
            scope.spawn(|| assert_eq!(server.load("good").status, 200));
            scope.spawn(|| assert_eq!(server.unload("good").status, 200));
        }
    });
    assert_eq!(server.load("good").status, 200);
    assert_eq!(server.infer("good").status, 200);
}

#[test]
fn what_a_model_was_asked_before_it_was_replaced_and_unloaded_is_answered() {
    let models = Models::with("slow", SLOW);
    let server = Server::start(&models, &controlled("emulated:1"));
    let answers: Vec<Answer> = thread::scope(|scope| {
        let clients: Vec<_> = (0..4).map(|_| scope.spawn(|| server.infer("slow"))).collect();
        server.await_that("one runs and three wait", || {
            server.metric("nv_inference_pending_request_count", &["slow"]) == 3.0
        });
        assert_eq!(server.load("slow").status, 200);
        assert_eq!(server.unload("slow").status, 200);
        clients.into_iter().map(|client| client.join().unwrap()).collect()
    });
    for answer in answers {
        assert_eq!(answer.status, 200, "{answer:?}");
    }
    assert_eq!(server.state("slow"), ("UNAVAILABLE".to_owned(), "unloaded".to_owned()));
}

#[test]
fn a_model_that_waits_for_a_worker_can_be_unloaded() {
    let models = Models::with("quick", QUICK);
    let server = Server::launch(&models, &controlled("none"));
    server.await_that("the model is being loaded", || server.state("quick").0 == "LOADING");
    assert_eq!(server.unload("quick").status, 200);
    assert_eq!(server.state("quick"), ("UNAVAILABLE".to_owned(), "unloaded".to_owned()));
}

#[test]
fn versions_come_and_go_with_a_reload() {
    let models = Models::with("m", QUICK);
    let server = Server::start(&models, &controlled("emulated:1"));
    let versions = || client::get(server.http, "/v2/models/m").json()["versions"].clone();
    assert_eq!(versions(), serde_json::json!(["1"]));
    std::fs::create_dir(models.path().join("m/2")).unwrap();
    assert_eq!(server.load("m").status, 200);
    assert_eq!(versions(), serde_json::json!(["2"]), "the newest one, as Triton does");
    std::fs::remove_dir(models.path().join("m/2")).unwrap();
    assert_eq!(server.load("m").status, 200);
    assert_eq!(versions(), serde_json::json!(["1"]));
}

#[test]
fn clients_change_nothing_unless_they_may() {
    let models = Models::with("m", QUICK);
    let server = Server::start(&models, &["--device", "emulated:1"]);
    for answer in [server.load("m"), server.unload("m")] {
        assert_eq!(answer.status, 503, "{answer:?}");
        let error = answer.json()["error"].as_str().unwrap().to_owned();
        assert!(error.contains("explicit model load / unload is not allowed"), "{error}");
    }
    assert_eq!(server.infer("m").status, 200);
}

#[test]
fn a_model_that_will_be_loaded_is_unavailable_until_then_and_not_unknown() {
    let models = Models::with("m", QUICK);
    // No worker comes.
    let server = Server::launch(&models, &["--device", "none"]);
    assert_eq!(server.infer("m").status, 503);
    assert_eq!(server.infer("other").status, 404);
}

#[test]
fn a_model_moves_between_subclusters_under_load_without_a_failed_request() {
    let models = Models::with("busy", QUICK);
    let plan = r#"{ "subclusters": [{ "name": "one", "models": ["busy"] }] }"#;
    std::fs::write(models.beside().join("plan.json"), plan).unwrap();
    let devices = ["--device", "emulated:2#one", "--device", "emulated:2#two", "--subclusters", "plan.json"];
    let server = Server::start(
        &models,
        &[&devices[..], &["--model-control-mode", "explicit", "--load-model", "busy"]].concat(),
    );
    let devices_of_answers = || server.infer("busy").parameter("downbeat_device");
    assert!(["emulated:0", "emulated:1"].map(Into::into).contains(&devices_of_answers()));
    let move_to = |to: &str| {
        let body = format!("{{\"to\": {to:?}}}");
        client::post(server.http, "/v2/downbeat/models/busy/move", &body)
    };
    let bad = under_load(&server, "busy", || {
        for _ in 0..10 {
            assert_eq!(move_to("two").status, 200);
            assert!(["emulated:2", "emulated:3"].map(Into::into).contains(&devices_of_answers()));
            assert_eq!(move_to("one").status, 200);
            assert!(["emulated:0", "emulated:1"].map(Into::into).contains(&devices_of_answers()));
        }
    });
    assert!(bad.is_empty(), "{bad:?}\n{}", server.process.log());
    let state = client::get(server.http, "/v2/downbeat/subclusters").json();
    assert_eq!(state["subclusters"]["one"]["models"], serde_json::json!(["busy"]), "{state}");
    assert_eq!(state["subclusters"]["two"]["devices"], 2, "{state}");
    assert_eq!(move_to("three").status, 503);
    assert_eq!(move_to("").status, 400);
}
