//! What a load reports is what the server did.

use std::fs;

use serde_json::json;

use crate::models::{Emulated, Models, QUICK};
use crate::server::Server;
use crate::{assert_counted_once, count, number, report, urls};

/// One request at a time, 20 ms each: 50 a second is all that one device can do.
const ONE_BY_ONE: Emulated =
    Emulated { alpha_ms: 0.0, beta_ms: 20.0, slo_ms: 100.0, max_batch: 1, queue_limit: 0 };

const ONE_DEVICE: [&str; 2] = ["--device", "emulated:1"];

/// What the server itself counted of a model.
fn answered(server: &Server, model: &str) -> f64 {
    let label = format!("model=\"{model}\"");
    server.metric("nv_inference_request_success", &[&label])
        + server.metric("nv_inference_request_failure", &[&label])
}

#[test]
fn over_both_protocols_the_server_counts_what_the_client_does() {
    let models = Models::with("quick", QUICK);
    let server = Server::start(&models, &["--device", "emulated:4"]);
    let mut before = 0.0;
    for url in urls(&server) {
        let report = report(&url, &["--model=quick"]);
        assert_counted_once(&report);
        let offered = number(&report["offered"]);
        assert!(offered > 50.0, "{report}");
        assert_eq!(number(&report["offered_rps"]), offered, "in one second");
        assert_eq!(count(&report, "ok") as f64, offered, "nothing is late with such an SLO: {report}");
        assert_eq!(report["in_slo"], report["offered"]);
        assert_eq!(number(&report["goodput_rps"]), offered);
        for quantile in ["p50", "p90", "p99", "p999"] {
            assert!(number(&report["latency_ms"][quantile]) >= 5.0, "the model takes 5 ms: {report}");
        }
        assert!(number(&report["client_lag_ms_p99"]) >= 0.0);
        assert!(report["server_ms"]["compute"]["p50"].is_number(), "the server says where the time went");
        let now = answered(&server, "quick");
        assert_eq!(now - before, offered, "{url}");
        before = now;
    }
}

#[test]
fn overload_is_counted_by_what_became_of_it() {
    let models = Models::with("slow", ONE_BY_ONE).and("small", Emulated { queue_limit: 2, ..ONE_BY_ONE });
    let server = Server::start(&models, &ONE_DEVICE);
    for url in urls(&server) {
        let report =
            report(&url, &["--model=slow:slo_ms=100", "--model=small:weight=2:slo_ms=100", "--rate=600"]);
        assert_counted_once(&report);
        assert!(count(&report, "expired") > 0, "{report}");
        assert!(count(&report, "overloaded") > 0, "{report}");
        assert_eq!(count(&report, "transport") + count(&report, "unanswered"), 0, "{report}");
        let [slow, small] = [0, 1].map(|model| number(&report["models"][model]["offered"]));
        assert!(small > 1.5 * slow && small < 2.7 * slow, "twice the weight: {slow} and {small}");
        assert!(report["models"][0]["errors"]["expired"].as_str().unwrap().contains("deadline"));
    }
}

#[test]
fn timeout_and_priority_reach_the_server() {
    let models = Models::with("quick", QUICK);
    let server = Server::start(&models, &ONE_DEVICE);
    for url in urls(&server) {
        // The model takes 5 ms.
        let report = report(&url, &["--model=quick", "--timeout-ms=1", "--priority=1"]);
        assert_eq!(report["outcomes"]["expired"], report["offered"], "{report}");
    }
}

#[test]
fn values_come_from_a_file_as_binary_or_as_json() {
    let models = Models::with("quick", QUICK);
    let server = Server::start(&models, &ONE_DEVICE);
    let file = models.beside().join("data.json");
    let input = |rows: u32| {
        let data = vec![0.5; rows as usize * 4];
        json!({ "inputs": [{ "name": "INPUT0", "shape": [rows, 4], "datatype": "FP32", "data": data }] })
    };
    fs::write(&file, json!([input(1), input(3)]).to_string()).unwrap();
    let data = format!("--data=quick={}", file.display());
    for url in urls(&server) {
        for tensors in ["--tensors=json", "--tensors=binary"] {
            let report = report(&url, &["--model=quick", &data, tensors]);
            assert_eq!(report["in_slo"], report["offered"], "{report}");
        }
    }
    let rows = server.metric("nv_inference_count", &["model=\"quick\""]);
    assert!(rows > 1.5 * answered(&server, "quick"), "every other request has three rows");
}

#[test]
fn the_goodput_found_is_one_that_the_device_can_give() {
    let models = Models::with("slow", ONE_BY_ONE);
    let server = Server::start(&models, &ONE_DEVICE);
    let [_, grpc] = urls(&server);
    let flags = ["--model=slow:slo_ms=100", "--find-goodput", "--precision=0.2", "--tries=1", "--rate=200"];
    let report = report(&grpc, &flags);
    assert_counted_once(&report);
    let probes = report["search"]["probes"].as_array().unwrap();
    let rates = |passed: bool| {
        let of = probes.iter().filter(move |probe| probe["passed"] == passed);
        of.map(|probe| number(&probe["rate_rps"])).collect::<Vec<_>>()
    };
    // How much the device can do is no question of time: 50 in a second, and 5 more until the last one's deadline.
    assert!(rates(true).iter().all(|rate| *rate < 70.0), "{report}");
    assert!(rates(false).contains(&200.0), "{report}");
    let best = rates(true).into_iter().fold(0.0, f64::max);
    assert_eq!(number(&report["goodput_rps"]), best);
}

#[test]
fn a_page_and_a_table_are_for_people() {
    let models = Models::with("quick", QUICK);
    let server = Server::start(&models, &ONE_DEVICE);
    let [http, _] = urls(&server);
    let page = models.beside().join("load.html");
    let html = format!("--html={}", page.display());
    let mut command =
        crate::downbeat(&["load", &http, "--model=quick", "--rate=50", "--duration=1", "--warmup=0"]);
    command.args([&html, "--arrival=gamma:0.5"]);
    let output = crate::run(command);
    let text = String::from_utf8(output.stdout).unwrap();
    for words in ["offered", "client lag", "p99.9", "quick", "load.html"] {
        assert!(text.contains(words), "{words}: {text}");
    }
    assert!(fs::read_to_string(page).unwrap().contains("Latency over time"));
}

#[test]
fn a_trace_has_a_rate_of_its_own() {
    let models = Models::with("quick", QUICK);
    let server = Server::start(&models, &ONE_DEVICE);
    let trace = models.beside().join("trace.csv");
    // All of it comes in the first half of a second.
    fs::write(&trace, "time_s,rate\n0,160\n0.5,0\n1,0\n").unwrap();
    let [http, _] = urls(&server);
    let mut command =
        crate::downbeat(&["load", &http, "--model=quick", "--duration=1", "--warmup=0", "--format=json"]);
    command.arg(format!("--arrival=trace:{}", trace.display()));
    let report: serde_json::Value = serde_json::from_slice(&crate::run(command).stdout).unwrap();
    assert_eq!(number(&report["rate_rps"]), 80.0);
    assert!(number(&report["offered"]) > 40.0, "{report}");
}

#[test]
fn a_load_of_which_nothing_came_back_is_no_success() {
    let hopeless = Emulated { alpha_ms: 0.0, beta_ms: 50.0, slo_ms: 10.0, max_batch: 1, queue_limit: 0 };
    let server = Server::start(&Models::with("hopeless", hopeless), &ONE_DEVICE);
    let output = crate::run(crate::load(&urls(&server)[0], &["--model=hopeless"]));
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8(output.stderr).unwrap().contains("answered with a result"));
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["completed"], 0, "it is told all the same");
}
