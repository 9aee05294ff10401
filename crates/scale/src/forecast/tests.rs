use downbeat_sched::{Span, Time};
use proptest::prelude::*;

use super::Forecast;

const MINUTE: Span = Span::from_millis(60_000);

fn fed(minutes: u64, rate: impl Fn(u64) -> f64) -> (Forecast, Time) {
    let mut forecast = Forecast::daily();
    let mut now = Time::ZERO;
    for minute in 0..minutes {
        now = now + MINUTE;
        forecast.observe(now, MINUTE, rate(minute));
    }
    (forecast, now)
}

#[test]
fn without_history_nothing_grows() {
    assert_eq!(Forecast::daily().growth(Time::ZERO, MINUTE), 1.0);
}

#[test]
fn a_rising_rate_goes_on_rising() {
    let (forecast, now) = fed(60, |minute| 100.0 + minute as f64);
    let growth = forecast.growth(now, MINUTE * 10);
    assert!((growth - 169.0 / 159.0).abs() < 0.005, "{growth}");
}

#[test]
fn the_day_before_tells_of_a_jump_that_no_trend_shows() {
    // Twice the rate from noon on; now it is four minutes before noon of the second day.
    let noon = |minute: u64| if minute % 1_440 < 720 { 100.0 } else { 200.0 };
    let (forecast, now) = fed(1_440 + 716, noon);
    assert!(forecast.growth(now, MINUTE * 8) > 1.9);
    let (forecast, now) = fed(1_440 + 600, noon);
    assert!(forecast.growth(now, MINUTE * 8) < 1.01);
}

proptest! {
    #[test]
    fn growth_is_between_1_and_4_whatever_was_seen(
        rates in prop::collection::vec(prop_oneof![any::<f64>(), 0.0f64..1e6], 0..200),
        ahead_s in 0.0f64..1e6,
    ) {
        let mut forecast = Forecast::with_season(Span::from_secs_f64(3_600.0));
        let mut now = Time::ZERO;
        for rate in rates {
            now = now + MINUTE;
            forecast.observe(now, MINUTE, rate);
        }
        let growth = forecast.growth(now, Span::from_secs_f64(ahead_s));
        prop_assert!((1.0..=4.0).contains(&growth), "{growth}");
    }
}
