use super::*;
use crate::account::{Account, Ending};
use crate::mix::ModelSpec;
use crate::plan::Due;
use crate::wire::Answer;

const MS: Duration = Duration::from_millis(1);

fn models(slos_ms: &[u32]) -> Vec<ModelLoad> {
    let model = |(i, slo): (usize, &u32)| {
        let spec = ModelSpec { name: format!("m{i}"), slo: Some(*slo * MS), ..ModelSpec::default() };
        spec.or(&ModelSpec::default())
    };
    slos_ms.iter().enumerate().map(model).collect()
}

/// A run of two seconds in which model 0 has these latencies and model 1 no request; the client is this late.
fn run(latencies_ms: &[u32], lag: Duration) -> LoadReport {
    let models = models(&[20, 40]);
    let account = Account::new(models.iter().map(|model| model.slo).collect(), Duration::ZERO, 2_000 * MS);
    for (latency, i) in latencies_ms.iter().zip(0..) {
        let at = 10 * i * MS;
        let mut ticket = account.issue(Due { at, model: 0 });
        ticket.sent(at + lag);
        ticket.settle(at + *latency * MS, Ending::Answered(Answer::Result(None)));
    }
    summarise(&models, &account.close(), 2_000 * MS)
}

#[test]
fn counts_and_rates_agree() {
    let report = run(&[10, 15, 20, 30], Duration::ZERO);
    assert_eq!((report.offered, report.completed, report.in_slo), (4, 4, 3));
    assert_eq!((report.offered_rps, report.goodput_rps), (2.0, 1.5));
    assert_eq!((report.in_slo_share, report.in_slo_share_worst), (Some(0.75), Some(0.75)));
    assert_eq!((report.outcomes["ok"], report.outcomes["late"], report.outcomes["expired"]), (3, 1, 0));
    assert_eq!(report.models[1].in_slo_share, None, "a model without requests has no share");
    assert!((report.latency_ms.p50 - 15.0).abs() < 0.1, "{:?}", report.latency_ms);
    let in_slices: f64 = report.detail.slices.iter().map(|slice| slice.offered_rps * 0.1).sum();
    assert!((in_slices - 4.0).abs() < 1e-6, "{in_slices}");
    assert_eq!(report.detail.latency_cdf[0].last().map(|(_, share)| *share), Some(1.0));
}

#[test]
fn a_client_that_cannot_keep_up_is_told_of() {
    let punctual = run(&[10; 10], MS / 2);
    assert!(punctual.client_kept_up && punctual.notes.is_empty());
    // Five per cent of the tightest SLO is 1 ms.
    let late = run(&[10; 10], 3 * MS);
    assert!(!late.client_kept_up);
    assert!(late.notes[0].contains("could not keep up"), "{:?}", late.notes);
}

#[test]
fn a_stall_of_the_machine_is_told_of() {
    let models = models(&[20]);
    let account = Account::new(vec![models[0].slo], Duration::ZERO, 2_000 * MS);
    for i in 0..200 {
        let mut ticket = account.issue(Due { at: i * MS, model: 0 });
        ticket.sent(i * MS + if i == 100 { 11 * MS } else { MS / 10 });
        ticket.settle((i + 15) * MS, Ending::Answered(Answer::Result(None)));
    }
    let report = summarise(&models, &account.close(), 2_000 * MS);
    assert!(report.client_kept_up);
    assert!(report.notes[0].contains("the machine stalled"), "{:?}", report.notes);
}

#[test]
fn a_run_without_requests_has_a_report() {
    let report = run(&[], Duration::ZERO);
    assert_eq!((report.offered, report.in_slo_share, report.goodput_rps), (0, None, 0.0));
    assert_eq!(report.latency_ms, Quantiles::default());
}

#[test]
fn without_an_slo_there_is_no_share_in_it() {
    let models = vec![ModelSpec { name: "m".into(), ..ModelSpec::default() }.or(&ModelSpec::default())];
    let account = Account::new(vec![None], Duration::ZERO, 2_000 * MS);
    let mut ticket = account.issue(Due { at: MS, model: 0 });
    ticket.sent(MS);
    ticket.settle(2 * MS, Ending::Answered(Answer::Result(None)));
    let report = summarise(&models, &account.close(), 2_000 * MS);
    assert_eq!((report.completed, report.in_slo_share, report.in_slo_share_worst), (1, None, None));
    assert_eq!(report.models[0].in_slo_share, None);
}
