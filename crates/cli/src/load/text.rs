//! The report for people.

use downbeat_load::{LoadReport, ModelReport, SearchReport};

use crate::output;

/// Models shown: the worst ones.
const MODELS_SHOWN: usize = 20;

pub(super) fn text(report: &LoadReport) -> String {
    let mut text = output::notes(&report.notes);
    if let Some(search) = &report.search {
        text += &search_text(report, search);
    }
    let LoadReport { offered_rps, completed, offered, client_lag_ms_p99, .. } = report;
    text += &format!(
        "{}, {}{}\n\
         offered {offered_rps:.1} rps for {:.1} s, {}\n\
         {offered} requests: {completed} completed; {}\n\
         client lag {client_lag_ms_p99:.2} ms (p99), counted in the latencies\n",
        report.url,
        report.arrival,
        if report.interrupted { ", stopped before its end" } else { "" },
        report.duration_s,
        in_slo(report),
        outcomes(report),
    );
    if let Some(times) = &report.server_ms {
        text += &format!(
            "of the round trip, p50: queue {:.2} ms, compute {:.2} ms, the rest {:.2} ms\n",
            times.queue.p50, times.compute.p50, times.overhead.p50
        );
    }
    text += "\n";
    text += &models(report);
    text += "\np50 to p99.9 are of requests with a result, in ms, from when they should have been sent.\n";
    for model in &report.models {
        for (outcome, message) in &model.errors {
            text += &format!("{}, {outcome}: {message}\n", model.name);
        }
    }
    text
}

/// How much was in time, where there is something to be in time for.
fn in_slo(report: &LoadReport) -> String {
    let completed_rps = report.completed as f64 / report.duration_s.max(1e-9);
    match report.in_slo_share_worst {
        Some(share) => {
            let in_slo_rps = report.in_slo as f64 / report.duration_s.max(1e-9);
            format!("in SLO {in_slo_rps:.1} rps; worst model {:.2} % in SLO", 100.0 * share)
        }
        None => format!("completed {completed_rps:.1} rps; no SLO to be in (--slo-ms)"),
    }
}

fn outcomes(report: &LoadReport) -> String {
    let seen = report.outcomes.iter().filter(|(_, count)| **count > 0);
    let words: Vec<String> = seen.map(|(label, count)| format!("{label} {count}")).collect();
    if words.is_empty() { "none was due".to_owned() } else { words.join(", ") }
}

fn models(report: &LoadReport) -> String {
    let mut models: Vec<&ModelReport> = report.models.iter().collect();
    let share = |model: &ModelReport| model.in_slo_share.unwrap_or(f64::INFINITY);
    models.sort_by(|a, b| share(a).total_cmp(&share(b)));
    let rows = models.iter().take(MODELS_SHOWN).map(|model| {
        let latency = model.latency_ms;
        let mut row = vec![
            model.name.clone(),
            model.slo_ms.map_or_else(|| "-".to_owned(), |slo| format!("{slo}")),
            model.offered.to_string(),
            model.in_slo.to_string(),
            model.outcomes.get("late").copied().unwrap_or(0).to_string(),
            (model.offered - latencies(model)).to_string(),
            model.in_slo_share.map_or_else(|| "-".to_owned(), |share| format!("{:.2}", 100.0 * share)),
        ];
        row.extend([latency.p50, latency.p90, latency.p99, latency.p999].map(|ms| format!("{ms:.2}")));
        row
    });
    let header = [
        "model",
        "SLO ms",
        "offered",
        "in SLO",
        "late",
        "no result",
        "% in SLO",
        "p50",
        "p90",
        "p99",
        "p99.9",
    ];
    let mut text = output::table(&header, rows);
    if models.len() > MODELS_SHOWN {
        text += &format!("\n... and {} more (--format json has all)", models.len() - MODELS_SHOWN);
    }
    text + "\n"
}

/// Requests with a result.
fn latencies(model: &ModelReport) -> u64 {
    model.in_slo + model.outcomes.get("late").copied().unwrap_or(0)
}

fn search_text(report: &LoadReport, search: &SearchReport) -> String {
    let rows = search.probes.iter().map(|probe| {
        vec![
            format!("{:.1}", probe.rate_rps),
            (if probe.passed { "passed" } else { "failed" }).to_owned(),
            format!("{:.2}", 100.0 * probe.in_slo_share_worst),
            format!("{:.2}", probe.client_lag_ms_p99),
            match (probe.passed, probe.stalled, probe.given_up) {
                (false, true, _) => "the machine stalled",
                (_, _, true) => "given up early",
                _ => "",
            }
            .to_owned(),
        ]
    });
    format!(
        "goodput {}{:.1} rps: the highest rate tried at which every model has {:.0} % of its requests in SLO\n\n{}\n\n\
         The run at that rate:\n",
        if search.capped { "at least " } else { "" },
        report.goodput_rps,
        100.0 * search.in_slo_share_min,
        output::table(&["rate rps", "", "worst % in SLO", "lag ms", ""], rows),
    )
}
