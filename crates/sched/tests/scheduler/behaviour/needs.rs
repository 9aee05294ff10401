//! How many devices the traffic is said to need. l(b) = b + 5 ms.

use downbeat_sched::*;

use super::one_model;
use crate::cluster::{TestCluster, at};

/// A request of `rows` every `gap_ms` for two seconds, due in 21 ms.
fn traffic(rows: u32, gap_ms: f64) -> TestCluster {
    let mut cluster = one_model(Rule::ADAPTIVE, 4);
    for arrival in 0..(2_000.0 / gap_ms) as u32 {
        let now_ms = gap_ms * f64::from(arrival);
        cluster.run_until(at(now_ms));
        cluster.request_rows(rows, 0, now_ms + 21.0);
    }
    cluster
}

fn is_near(needed: f64, expected: f64) -> bool {
    // Rates are means over about a second, of which the oldest fifteenth comes and goes at once.
    (needed / expected - 1.0).abs() < 0.07
}

/// A row every millisecond: 8 rows can be gathered and run in 21 ms, 8 + 5 + 8 = 21, and keep a device for 13 ms.
#[test]
fn what_is_needed_follows_the_rows_however_they_come() {
    for rows in [1, 2, 4] {
        let needed = traffic(rows, f64::from(rows)).needed(ClassId(0));
        assert!(is_near(needed, 13.0 / 8.0), "{needed} devices for requests of {rows} rows");
    }
}

/// Sixteen rows every 40 ms cannot be gathered into larger batches, and need not be split into smaller ones: 21 / 40.
#[test]
fn what_is_needed_counts_batches_of_at_least_one_request() {
    let needed = traffic(16, 40.0).needed(ClassId(0));
    assert!(is_near(needed, 21.0 / 40.0), "{needed} devices");
}

#[test]
fn nothing_is_needed_of_a_class_without_traffic_or_after_it_has_stopped() {
    let mut cluster = traffic(1, 1.0);
    assert_eq!(cluster.needed(ClassId(1)), 0.0);
    assert_eq!(cluster.needed(ClassId(u16::MAX)), 0.0);
    cluster.run_until(at(4_000.0));
    assert_eq!(cluster.needed(ClassId(0)), 0.0);
}
