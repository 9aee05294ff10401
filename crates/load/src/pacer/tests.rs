use downbeat_sim::Arrival;

use super::*;
use crate::mix::ModelSpec;

fn plan(rate_rps: f64) -> Plan {
    let model = ModelSpec { name: "m".into(), ..ModelSpec::default() }.or(&ModelSpec::default());
    Plan::new(&[model], &Arrival::Poisson, rate_rps, 1, Duration::from_millis(200))
}

#[test]
fn every_request_is_sent_in_order_and_none_before_it_is_due() {
    let epoch = Epoch::soon();
    let mut sent = Vec::new();
    pace(plan(2_000.0), epoch, &Control::default(), |due| {
        assert!(epoch.elapsed() >= due.at);
        sent.push(due);
    });
    assert_eq!(sent, plan(2_000.0).collect::<Vec<_>>());
}

#[test]
fn a_run_that_is_stopped_sends_no_more() {
    let control = Control::default();
    let mut sent = 0;
    pace(plan(2_000.0), Epoch::soon(), &control, |_| {
        sent += 1;
        if sent == 3 {
            control.stop();
        }
    });
    assert_eq!(sent, 3);
}
