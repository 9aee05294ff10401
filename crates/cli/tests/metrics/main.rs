//! The metrics of a running server, against the dashboard that shows them and the page that explains them.

#![allow(clippy::disallowed_methods, reason = "a server is waited for in real time")]

mod dashboard;
mod exported;
mod server;

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::LazyLock;
use std::thread;
use std::time::Duration;

use exported::{Exported, Labels};
use serde_json::Value;
use server::{EmulatedModel, Server};

/// What a server exports that has answered requests in every way that is easily had.
static EXPORTED: LazyLock<Exported> = LazyLock::new(|| {
    let model = EmulatedModel { name: "m", alpha_ms: 0.5, beta_ms: 1.0, max_batch: 8, slo_ms: 200.0 };
    let server = Server::start(&[model], &["--device", "emulated:2", "--max-wait-ms", "0"]);
    let infer = |model: &str, parameters: &str, shape: &str| {
        let path = format!("/v2/models/{model}/infer");
        let input = format!(r#"{{"name":"x","datatype":"FP32","shape":{shape},"data":[1,2,3,4]}}"#);
        let body = format!(r#"{{"parameters":{parameters},"inputs":[{input}]}}"#);
        Server::ask(server.http, "POST", &path, &body).0
    };
    assert_eq!(infer("m", "{}", "[1,4]"), 200);
    assert_eq!(infer("m", r#"{"timeout":1}"#, "[1,4]"), 504);
    assert_eq!(infer("m", "{}", "[1,5]"), 400);
    assert_eq!(infer("nobody", "{}", "[1,4]"), 404);
    // Some gauges are set now and then only.
    for _ in 0..200 {
        let (status, text) = Server::ask(server.metrics, "GET", "/metrics", "");
        assert_eq!(status, 200);
        if text.contains("downbeat_needed_devices{") {
            return Exported::read(&text);
        }
        thread::sleep(Duration::from_millis(50));
    }
    panic!("the scaling signal is not exported");
});

fn read(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn dashboard() -> Value {
    serde_json::from_str(&read("deploy/grafana/downbeat.json")).expect("JSON")
}

#[test]
fn every_query_of_the_dashboard_reads_series_and_labels_that_a_server_exports() {
    let dashboard = dashboard();
    for panel in dashboard::panels(&dashboard) {
        let queries = dashboard::queries(panel);
        assert!(!queries.is_empty(), "{} shows nothing", panel["title"]);
        for query in queries {
            assert!(!query.series.is_empty(), "a query that reads nothing: {}", query.text);
            for (name, asked) in &query.series {
                let labels = EXPORTED.series.get(name);
                let labels = labels.unwrap_or_else(|| panic!("{name} is not exported: {}", query.text));
                let missing: Vec<&String> =
                    asked.union(&query.grouped_by).filter(|label| !labels.contains(*label)).collect();
                assert!(missing.is_empty(), "{name} has no labels {missing:?}: {}", query.text);
            }
        }
    }
}

#[test]
fn every_panel_says_what_to_do_and_takes_its_data_from_the_chosen_source() {
    let dashboard = dashboard();
    for panel in dashboard::panels(&dashboard) {
        let title = panel["title"].as_str().expect("a title");
        let words = panel["description"].as_str().unwrap_or_default().split(' ').count();
        assert!(words > 20, "{title} says nothing");
        for source in std::iter::once(panel).chain(panel["targets"].as_array().expect("targets")) {
            assert_eq!(source["datasource"]["uid"], "${DS_PROMETHEUS}", "{title}");
        }
    }
    let variables = dashboard["templating"]["list"].as_array().expect("variables");
    let names: Vec<&Value> = variables.iter().map(|variable| &variable["name"]).collect();
    assert_eq!(names, ["DS_PROMETHEUS", "model"]);
    let ids: BTreeSet<String> =
        dashboard::panels(&dashboard).iter().map(|panel| panel["id"].to_string()).collect();
    assert_eq!(ids.len(), dashboard::panels(&dashboard).len(), "every panel has an id of its own");
}

#[test]
fn every_metric_is_documented_with_its_labels_and_nothing_else_is() {
    let documented = documented(&read("docs/metrics.md"));
    let (documented_names, exported): (BTreeSet<_>, BTreeSet<_>) =
        (documented.keys().collect(), EXPORTED.families.keys().collect());
    assert_eq!(documented_names, exported);
    for (name, labels) in &documented {
        assert_eq!(labels, &EXPORTED.families[name], "the labels of {name}");
    }
}

/// The rows of the page's tables that begin with the name of a metric.
fn documented(page: &str) -> Labels {
    let row = |line: &str| {
        let mut cells = line.strip_prefix("| `")?.split('|').map(str::trim);
        let name = cells.next()?.trim_end_matches('`');
        let labels = cells.next()?.split(',').map(str::trim).filter(|label| !label.is_empty());
        let is_metric = name.starts_with("downbeat_") || name.starts_with("nv_");
        is_metric.then(|| (name.to_owned(), labels.map(str::to_owned).collect()))
    };
    page.lines().filter_map(row).collect()
}
