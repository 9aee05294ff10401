//! The end of a server.

use std::thread;

use rustix::process::Signal;

use crate::models::{Models, QUICK, SLOW};
use crate::server::{Server, eventually, is_alive};

#[test]
fn a_signal_turns_the_server_unready_while_it_serves_on_and_a_second_one_ends_it() {
    for which in [Signal::TERM, Signal::INT] {
        let models = Models::with("quick", QUICK);
        let mut server = Server::start(&models, &["--device", "emulated:1", "--drain-s", "600"]);
        let workers = server.children();
        server.process.signal(which);
        server.await_that("the server is unready", || !server.is_ready());
        assert_eq!(server.infer("quick").status, 200);
        server.process.signal(which);
        let status = server.process.await_end();
        assert_eq!(status.code(), Some(0), "{}", server.process.log());
        assert!(!workers.into_iter().any(is_alive), "the workers have ended before the server");
    }
}

#[test]
fn what_runs_when_the_server_stops_is_answered() {
    let mut server = Server::start(&Models::with("slow", SLOW), &["--device", "emulated:1"]);
    let http = server.http;
    let clients: Vec<_> = (0..3).map(|_| thread::spawn(move || crate::client::infer(http, "slow"))).collect();
    server.await_that("one runs and two wait", || {
        server.metric("nv_inference_pending_request_count", &["slow"]) == 2.0
    });
    server.process.signal(Signal::TERM);
    for client in clients {
        let answer = client.join().unwrap();
        assert_eq!(answer.status, 200, "{answer:?}\n{}", server.process.log());
    }
    assert_eq!(server.process.await_end().code(), Some(0));
}

#[test]
fn a_server_that_still_starts_can_be_stopped() {
    let models = Models::with("quick", QUICK);
    let mut server = Server::launch(&models, &["--device", "none"]);
    assert!(!server.is_ready(), "nothing is loaded without a worker");
    server.process.signal(Signal::TERM);
    assert_eq!(server.process.await_end().code(), Some(0), "{}", server.process.log());
}

#[test]
fn when_the_server_is_killed_its_workers_end_by_themselves() {
    let models = Models::with("quick", QUICK);
    let mut server = Server::start(&models, &["--device", "emulated:1", "--device", "emulated:1"]);
    let workers = server.children();
    assert_eq!(workers.len(), 2);
    server.process.signal(Signal::KILL);
    server.process.await_end();
    eventually("the workers end", || !workers.iter().any(|&worker| is_alive(worker)), String::new);
}
