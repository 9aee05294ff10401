use downbeat_profile::{LatencyProfile, Span};
use proptest::prelude::*;

use super::Traffic;
use crate::{Delays, DropRule, Room, Rule};

fn profile(alpha_ms: f64, beta_ms: f64) -> LatencyProfile {
    LatencyProfile::linear(alpha_ms, beta_ms, 64).unwrap()
}

fn traffic<'a>(profile: &'a LatencyProfile, delays: &'a Delays, gap_ms: f64, dispersion: f64) -> Traffic<'a> {
    Traffic {
        profile,
        delays,
        gap: Span::from_secs_f64(gap_ms / 1e3),
        rows: 1,
        allowance: Span::from_millis(60),
        dispersion,
        room: Room { headroom: 1.0, ..Room::default() },
        longest: Span::MAX,
    }
}

fn with_drop(traffic: Traffic<'_>, drop: DropRule) -> Traffic<'_> {
    Traffic { room: Room { rule: Rule::ADAPTIVE.with_drop(drop), ..traffic.room }, ..traffic }
}

/// l(b) = b + 5 ms and one row in 10 ms: 5 rows take 50 + 10 = 60 ms. With a dispersion of 5 one row more is there
/// already: 6 rows take 50 + 11 ms, which is too much, and with 9 there are two.
#[test]
fn bursts_gather_larger_batches_and_need_fewer_devices() {
    let profile = profile(1.0, 5.0);
    let delays = Delays::default();
    let gathered = |dispersion| traffic(&profile, &delays, 10.0, dispersion).gathered();
    assert_eq!([0.5, 1.0, 5.0, 9.0].map(gathered), [5, 5, 5, 6]);
    let need = |dispersion| traffic(&profile, &delays, 10.0, dispersion).need().mean();
    assert!(need(9.0) < need(1.0));
}

#[test]
fn without_headroom_heads_are_given_up_for_the_gathered_batch_and_window_drop_knows_no_bursts() {
    let profile = profile(1.0, 5.0);
    let delays = Delays::default();
    let bursty = traffic(&profile, &delays, 10.0, 9.0);
    assert_eq!((bursty.target(), with_drop(bursty, DropRule::Window).target()), (6, 5));
}

/// l(b) = b + 5 ms: 3 rows take 8 ms. One row takes 6 ms, which is more than others can wait where 2 * 2.9 ms is all
/// they can.
#[test]
fn a_batch_waits_for_no_more_rows_than_others_can_wait_for() {
    let (profile, delays) = (profile(1.0, 5.0), Delays::default());
    let enough = |longest_us, target| {
        let traffic = traffic(&profile, &delays, 10.0, 1.0);
        Traffic { longest: Span::from_micros(longest_us), ..traffic }.enough(target)
    };
    assert_eq!(enough(8_900, 1), 3);
    assert_eq!(enough(8_900, 4), 4, "a batch that does not keep up helps nobody");
    assert_eq!(enough(3_000, 1), 1);
    assert_eq!(enough(2_900, 1), u32::MAX);
    assert_eq!(with_drop(traffic(&profile, &delays, 10.0, 1.0), DropRule::Window).enough(1), u32::MAX);
}

/// l(b) = b / 10 + 5 ms, and devices to spare: batches of one do. One row more takes 0.1 ms, in which a tenth of a head
/// or a whole one is due; it gains 5 / 5.1 of a row in a batch of one and 5 / 11.4 in one of 64.
#[test]
fn where_requests_are_lost_a_model_alone_gives_up_heads_for_as_many_rows_as_it_gains() {
    let (profile, delays) = (profile(0.1, 5.0), Delays::default());
    let target = |gap_ms, want| {
        let room = Room { headroom: f64::INFINITY, want, ..Room::default() };
        Traffic { room, ..traffic(&profile, &delays, gap_ms, 1.0) }.target()
    };
    assert_eq!([0.0, 0.01, 1.0].map(|want| target(1.0, want)), [1, 1, 50], "50 are gathered in time");
    // A head against 3 * want * 5 / (5 + b / 10) rows: up to 150 * want - 50 rows, and to the 64 that a batch can have.
    assert_eq!([0.3, 0.5, 0.7, 1.0].map(|want| target(0.1, want)), [1, 25, 55, 64]);
}

proptest! {
    #[test]
    fn what_is_gathered_grows_with_bursts_and_can_still_run_in_time(
        alpha_ms in 0.001f64..5.0,
        beta_ms in 0.001f64..20.0,
        gap_ms in 0.01f64..100.0,
        bursts in 0.0f64..100.0,
    ) {
        let profile = profile(alpha_ms, beta_ms);
        let delays = Delays::default();
        let calm = traffic(&profile, &delays, gap_ms, bursts / 2.0);
        let bursty = traffic(&profile, &delays, gap_ms, bursts);
        prop_assert!(calm.gathered() <= bursty.gathered());
        prop_assert!(profile.latency(bursty.gathered()) <= bursty.allowance);
    }
}
