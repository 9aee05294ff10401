//! Workers that die or hang under load.

use std::time::Duration;

use rustix::process::Signal;

use crate::run::{Load, assert_none_lost, print};
use crate::server::{Server, signal};
use crate::{CAPACITY_RPS, models, seconds, with_worker_elsewhere};

const TWO_WORKERS: [&str; 4] = ["--device", "emulated:4", "--device", "emulated:4"];

/// Twice in a short run, every five seconds in a long one.
fn every() -> Duration {
    Duration::from_secs_f64((seconds() / 3.0).min(5.0))
}

#[test]
fn workers_that_are_killed_again_and_again_cost_no_answer() {
    let server = Server::start(&models(), &TWO_WORKERS);
    let mut load = Load::start(&server, 0.7 * CAPACITY_RPS);
    let mut killed = 0;
    load.meanwhile(every(), |round| {
        let workers = server.children();
        if let Some(&worker) = workers.get(round % 2) {
            signal(worker, Signal::KILL);
            killed += 1;
        }
    });
    let report = load.report();
    print(&format!("{killed} workers killed, one every {:?}", every()), &report);
    assert_none_lost(&server, &report);
    assert_eq!(report["outcomes"]["unavailable"].as_u64().unwrap_or(0), 0, "there was always another worker");
    server.await_that("both are back", || server.metric("downbeat_device_up", &[]) == 8.0);
}

#[test]
fn a_worker_that_hangs_is_noticed_and_not_trusted_when_it_wakes() {
    let (server, worker, _other) = with_worker_elsewhere(|server| server.workers);
    let mut load = Load::start(&server, 0.4 * CAPACITY_RPS);
    load.meanwhile(every(), |round| match round % 2 {
        0 => {
            worker.signal(Signal::STOP);
            server.process.await_line("nothing was heard for");
        }
        _ => worker.signal(Signal::CONT),
    });
    worker.signal(Signal::CONT);
    let report = load.report();
    print("a worker stopped and woken", &report);
    assert_none_lost(&server, &report);
    server.await_that("it is back, as a new one", || server.metric("downbeat_device_up", &[]) == 8.0);
}
