//! Runs that end before their time.

use std::process::Stdio;

use rustix::process::Signal;
use serde_json::Value;

use crate::models::{Models, QUICK};
use crate::server::{Server, signal};
use crate::{assert_counted_once, count, load, number, urls};

/// Starts a load of many minutes, waits until the server has answered so many requests, does something, and gives the
/// report.
fn interrupted(server: &Server, url: &str, flags: &[&str], after: u32, act: impl FnOnce(u32)) -> Value {
    let success = || server.metric("nv_inference_request_success", &["model=\"quick\""]);
    let before = success();
    let mut command = load(url, &[&["--model=quick", "--duration=600"], flags].concat());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().unwrap();
    server.await_that("requests are answered", || success() > before + f64::from(after));
    act(child.id());
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn ctrl_c_prints_what_was_measured_so_far() {
    let models = Models::with("quick", QUICK);
    let server = Server::start(&models, &["--device", "emulated:2"]);
    for url in urls(&server) {
        let report = interrupted(&server, &url, &[], 20, |load| signal(load, Signal::INT));
        assert_counted_once(&report);
        assert_eq!(report["interrupted"], true);
        assert!(number(&report["duration_s"]) < 600.0);
        assert!(count(&report, "ok") >= 20, "{report}");
        assert_eq!(count(&report, "unanswered"), 0, "what was sent was waited for: {report}");
    }
}

#[test]
fn a_search_that_is_stopped_says_what_it_found_so_far() {
    let models = Models::with("quick", QUICK);
    let server = Server::start(&models, &["--device", "emulated:2"]);
    let [http, _] = urls(&server);
    let report = interrupted(&server, &http, &["--find-goodput"], 20, |load| signal(load, Signal::INT));
    assert_eq!(report["interrupted"], true);
    assert_eq!(number(&report["goodput_rps"]), 0.0, "no rate was tried to its end");
}

#[test]
fn requests_to_a_server_that_dies_are_counted_too() {
    let models = Models::with("quick", QUICK);
    for which in 0..2 {
        let server = Server::start(&models, &["--device", "emulated:2"]);
        let url = &urls(&server)[which];
        let killed = |load: u32| {
            server.process.signal(Signal::KILL);
            crate::server::eventually(
                "it is gone",
                || !crate::server::is_alive(server.process.pid()),
                String::new,
            );
            // Some more requests find nobody.
            std::thread::sleep(std::time::Duration::from_millis(200));
            signal(load, Signal::INT);
        };
        // What the server has answered may not have been sent yet when it dies.
        let report = interrupted(&server, url, &["--rate=500"], 300, killed);
        assert_counted_once(&report);
        let (ok, lost) = (count(&report, "ok"), count(&report, "transport"));
        assert!(lost > 0 && ok + lost == report["offered"].as_u64().unwrap(), "{report}");
    }
}
