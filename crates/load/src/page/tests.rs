//! What must hold of every page. Set `DOWNBEAT_HTML_DIR` to keep the pages and look at them.

use super::*;
use crate::report::{Detail, Probe, Quantiles, ServerTimes, SliceReport};

fn report(models: usize) -> LoadReport {
    let latency_ms = Quantiles { p50: 20.0, p90: 35.0, p99: 48.0, p999: 70.0, max: 90.0, mean: 22.0 };
    let model = |i: usize| ModelReport {
        name: format!("model <{i}> & co"),
        slo_ms: Some(50.0 + i as f64),
        offered: 1_000,
        in_slo: 990,
        in_slo_share: Some(0.99),
        outcomes: [("ok", 990), ("late", 7), ("failed", 3)].into(),
        latency_ms,
        errors: [("failed", "<script>alert(1)</script>".to_owned())].into(),
    };
    let slice = |i: u32| SliceReport {
        at_s: f64::from(i) + 0.5,
        offered_rps: 100.0 + f64::from(i % 3),
        in_slo_rps: 99.0,
        p50_ms: if i == 4 { f64::NAN } else { 20.0 },
        p99_ms: 48.0,
        max_ms: 90.0,
    };
    LoadReport {
        url: "grpc://localhost:8001".to_owned(),
        arrival: "poisson".to_owned(),
        duration_s: 10.0,
        offered: 1_000 * models as u64,
        in_slo: 990 * models as u64,
        in_slo_share_worst: Some(0.99),
        client_kept_up: true,
        latency_ms,
        outcomes: [("ok", 990), ("failed", 3)].into(),
        server_ms: Some(ServerTimes { queue: latency_ms, compute: latency_ms, overhead: latency_ms }),
        models: (0..models).map(model).collect(),
        notes: vec!["mind the <gap>".to_owned()],
        detail: Detail {
            slices: (0..10).map(slice).collect(),
            latency_cdf: (0..models).map(|_| vec![(10.0, 0.5), (48.0, 0.99), (90.0, 1.0)]).collect(),
        },
        ..LoadReport::default()
    }
}

fn pages() -> Vec<(&'static str, String)> {
    let probe = |rate_rps, passed| Probe {
        rate_rps,
        passed,
        in_slo_share_worst: 0.98,
        stalled: false,
        client_lag_ms_p99: 0.1,
        given_up: !passed,
    };
    let probes = vec![probe(100.0, true), probe(200.0, false)];
    let searched =
        LoadReport { search: Some(SearchReport { probes, ..SearchReport::default() }), ..report(1) };
    vec![
        ("load-1-model", load_page(&report(1))),
        ("load-12-models", load_page(&report(12))),
        ("load-searched", load_page(&searched)),
        ("load-empty", load_page(&LoadReport::default())),
    ]
}

#[test]
fn every_element_that_opens_closes_and_nothing_foreign_gets_in() {
    for (name, page) in pages() {
        if let Ok(folder) = std::env::var("DOWNBEAT_HTML_DIR") {
            std::fs::write(std::path::Path::new(&folder).join(format!("{name}.html")), &page).unwrap();
        }
        for element in ["html", "figure", "svg", "table", "div", "dl", "tr"] {
            let opened = |end: char| page.matches(&format!("<{element}{end}")).count();
            assert_eq!(
                opened(' ') + opened('>'),
                page.matches(&format!("</{element}>")).count(),
                "{name}: {element}"
            );
        }
        assert!(!page.contains("<script>alert") && !page.contains("<gap>"), "{name}");
        assert!(!page.contains("http://") && !page.contains("https://"), "{name}: it refers to nothing");
        let drawn = page.split("<script>").next().unwrap();
        assert!(!drawn.contains("NaN"), "{name}");
    }
}

#[test]
fn the_page_has_latency_over_time_and_the_distribution() {
    let page = load_page(&report(2));
    for words in ["Latency over time", "Distribution of latencies", "Requests over time", "Client lag", "p99"]
    {
        assert!(page.contains(words), "{words}");
    }
}
