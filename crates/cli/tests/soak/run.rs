//! A load that runs beside a test, and what is asked of it in the end.

use std::collections::BTreeMap;
use std::process::{Child, Stdio};
use std::thread;
use std::time::Duration;

use serde_json::Value;

use crate::seconds;
use crate::server::{Server, downbeat};

/// A load that runs.
pub(crate) struct Load {
    child: Child,
}

impl Load {
    /// Begins to send so many requests a second, for [`seconds`].
    pub(crate) fn start(server: &Server, rate: f64) -> Load {
        let url = format!("--url=grpc://{}", server.grpc);
        let rate = format!("--rate={rate}");
        let duration = format!("--duration={}", seconds());
        let flags =
            ["load", &url, &rate, &duration, "--model=m", "--slo-ms=800", "--warmup=0", "--format=json"];
        let child = downbeat(&flags).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        Load { child }
    }

    /// Does something every so often while the load lasts, at least once.
    pub(crate) fn meanwhile(&mut self, every: Duration, mut what: impl FnMut(usize)) {
        for round in 0.. {
            let pieces = 20;
            for _ in 0..pieces {
                thread::sleep(every / pieces);
                if round > 0 && self.child.try_wait().unwrap().is_some() {
                    return;
                }
            }
            what(round);
        }
    }

    /// Waits for its end.
    pub(crate) fn report(self) -> Value {
        let output = self.child.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice(&output.stdout).unwrap()
    }
}

/// Every request was answered, and exactly once: the server has counted as many as were sent.
pub(crate) fn assert_none_lost(server: &Server, report: &Value) {
    let offered = report["offered"].as_u64().unwrap();
    for outcome in ["transport", "unanswered", "unsent", "failed", "invalid"] {
        assert_eq!(report["outcomes"][outcome].as_u64().unwrap_or(0), 0, "{outcome}: {}", report["outcomes"]);
    }
    let sum: u64 = report["outcomes"].as_object().unwrap().values().filter_map(Value::as_u64).sum();
    assert_eq!(sum, offered);
    let counted = server.metric("downbeat_requests_total", &["model=\"m\""]);
    assert_eq!(counted, offered as f64, "{}", server.process.log());
}

/// Prints what came of a load, and how much was in time from second to second.
pub(crate) fn print(title: &str, report: &Value) {
    println!(
        "{title}: {:.1} requests/s, {:.1} in time",
        number(report, "offered_rps"),
        number(report, "goodput_rps")
    );
    println!("  outcomes {}", report["outcomes"]);
    let mut seconds: BTreeMap<u64, [f64; 2]> = BTreeMap::new();
    for slice in report["over_time"].as_array().unwrap() {
        let [offered, in_time] = seconds.entry(number(slice, "at_s") as u64).or_default();
        *offered += number(slice, "offered_rps");
        *in_time += number(slice, "in_slo_rps");
    }
    let share = |[offered, in_time]: &[f64; 2]| format!("{:.0}", 100.0 * in_time / offered.max(1e-9));
    println!("  % in time, second by second: {}", seconds.values().map(share).collect::<Vec<_>>().join(" "));
}

pub(crate) fn number(of: &Value, key: &str) -> f64 {
    of[key].as_f64().unwrap_or_else(|| panic!("no {key} in {of}"))
}
