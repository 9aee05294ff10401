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
