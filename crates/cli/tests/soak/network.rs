//! A network that is cut, silent or slow between the server and a worker elsewhere.

use std::time::Duration;

use crate::proxy::{Proxy, Weather};
use crate::run::{Load, assert_none_lost, print};
use crate::{CAPACITY_RPS, seconds, with_worker_elsewhere};

#[test]
fn whatever_the_network_to_a_worker_does_no_answer_is_lost() {
    let mut proxy = None;
    let (server, _worker, _other) =
        with_worker_elsewhere(|server| proxy.insert(Proxy::start(server.workers)).address);
    let proxy = proxy.unwrap();
    let mut load = Load::start(&server, 0.4 * CAPACITY_RPS);
    let weather =
        [Weather::Silent, Weather::Fine, Weather::Slow, Weather::Fine, Weather::Broken, Weather::Fine];
    let every = Duration::from_secs_f64((seconds() / 7.0).min(5.0));
    load.meanwhile(every, |round| proxy.set(weather[round % weather.len()]));
    proxy.set(Weather::Fine);
    let report = load.report();
    print(&format!("the network silent, slow and broken, for {every:?} each"), &report);
    assert_none_lost(&server, &report);
    server.await_that("the worker is back", || server.metric("downbeat_device_up", &[]) == 8.0);
}
