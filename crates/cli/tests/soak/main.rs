//! A server under load while things go wrong. Short in `make test`; `make soak` holds it for as long as it says.
//!
//! Asserted is that no request is lost and that memory does not grow; how good the server was is printed.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]
#![allow(clippy::print_stdout, reason = "what is measured is for people")]
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

mod network;
mod overload;
mod proxy;
mod run;
mod workers;

use std::net::SocketAddr;

use models::{Emulated, Models};
use server::{Process, Server, downbeat};

/// Slow enough that stalls of a small machine do not decide: 8 devices run 8 * 16 / 260 ms of it, 492 in a second.
const MODEL: Emulated =
    Emulated { alpha_ms: 10.0, beta_ms: 100.0, slo_ms: 800.0, max_batch: 16, queue_limit: 0 };

/// What 8 devices can do when every batch is full.
const CAPACITY_RPS: f64 = 8.0 * 16.0 / 0.26;

fn models() -> Models {
    Models::with("m", MODEL)
}

/// How long each load lasts.
fn seconds() -> f64 {
    std::env::var("DOWNBEAT_SOAK_S").ok().and_then(|seconds| seconds.parse().ok()).unwrap_or(6.0)
}

/// A server with two workers of four devices each that run by themselves. Load is gathered on the first, which connects
/// where `at` says.
fn with_worker_elsewhere(at: impl FnOnce(&Server) -> SocketAddr) -> (Server, Process, Process) {
    let models = models();
    let server = Server::launch(&models, &["--device", "none", "--worker-token", "secret"]);
    let start = |connect: SocketAddr| {
        let connect = connect.to_string();
        let flags = ["worker", "--connect", &connect, "--worker-token", "secret", "--device", "emulated:4"];
        Process::start(downbeat(&flags))
    };
    let first = start(at(&server));
    server.await_that("the first worker is there", || server.metric("downbeat_device_up", &[]) == 4.0);
    let other = start(server.workers);
    server.await_that("both workers are there", || server.metric("downbeat_device_up", &[]) == 8.0);
    server.await_ready();
    (server, first, other)
}
