//! More than there is room for, for long.

use std::fs;
use std::time::Duration;

use crate::run::{Load, assert_none_lost, number, print};
use crate::server::Server;
use crate::{CAPACITY_RPS, models};

/// What a process may gain while it is overloaded, in MiB: histograms and the allocator's slack, but no queue.
const GROWTH_MAX_MIB: f64 = 64.0;

#[test]
fn overload_costs_no_memory_and_no_answer() {
    let server = Server::start(&models(), &["--device", "emulated:8"]);
    let mut load = Load::start(&server, 1.5 * CAPACITY_RPS);
    let mut resident = Vec::new();
    load.meanwhile(Duration::from_millis(500), |_| resident.push(resident_mib(server.process.pid())));
    let report = load.report();
    print("1.5 times the capacity", &report);
    let share = number(&report, "goodput_rps") / CAPACITY_RPS;
    println!("  {share:.3} of the capacity of {CAPACITY_RPS:.0} requests/s; memory {resident:.0?} MiB");
    assert_none_lost(&server, &report);
    // The first second fills the queues.
    let growth = resident.last().unwrap() - resident[2.min(resident.len() - 1)];
    assert!(growth < GROWTH_MAX_MIB, "{resident:?}");
}

fn resident_mib(pid: u32) -> f64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<f64>().unwrap() / 1024.0
}
