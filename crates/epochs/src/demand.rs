//! What a service asks for: now, soon, and until the next epoch's layout is there.

use std::collections::VecDeque;

use downbeat_scale::{Autoscaler, Decision, Forecast, Signals};
use downbeat_sched::{Span, Time};

/// Over how long a rate is averaged.
const LONG: Span = Span::from_millis(300_000);

/// Over how long a surge must last to be told from chance.
const SHORT: Span = Span::from_millis(30_000);

/// How many standard deviations of a Poisson count are chance.
const CHANCE: f64 = 2.0;

/// How much more than was reckoned to be enough a service gets each time that this was not enough...
const BOOST: f64 = 1.1;

/// ...and in all.
const BOOST_MAX: f64 = 2.0;

/// What is known of a service's traffic.
#[derive(Clone, Debug)]
pub(crate) struct Demand {
    forecast: Forecast,
    autoscaler: Autoscaler,
    /// The end and length of each interval, and the requests that came in it; oldest first.
    recent: VecDeque<(Time, Span, u64)>,
    /// The rate to begin with.
    expected_rps: f64,
    /// What is planned for over the expectation, because less was not enough.
    boost: f64,
    /// What the autoscaler said last.
    pub(crate) decision: Option<Decision>,
}

impl Demand {
    pub(crate) fn new(expected_rps: f64, forecast: Forecast, autoscaler: Autoscaler) -> Demand {
        Demand { forecast, autoscaler, recent: VecDeque::new(), expected_rps, boost: 1.0, decision: None }
    }

    /// Takes in a rate of before the beginning.
    pub(crate) fn remember(&mut self, at: Time, over: Span, rate_rps: f64) {
        self.forecast.observe(at, over, rate_rps);
    }

    /// Takes in what was seen; `at` is the time on the forecast's clock.
    pub(crate) fn observe(&mut self, at: Time, signals: &Signals) {
        self.forecast.observe(at, signals.over, signals.rate_rps());
        self.recent.push_back((at, signals.over, signals.arrivals));
        while self.recent.front().is_some_and(|&(then, ..)| at.since(then) >= LONG) {
            self.recent.pop_front();
        }
        self.decision = Some(self.autoscaler.observe(signals));
    }

    /// What was not enough should be a little more from now on.
    pub(crate) fn was_not_enough(&mut self) {
        self.boost = (self.boost * BOOST).min(BOOST_MAX);
    }

    /// The rate now: that of the last minutes, or of the last seconds where that is more than chance explains.
    pub(crate) fn rate_rps(&self) -> f64 {
        let (Some(&(now, ..)), Some(long)) = (self.recent.back(), self.mean(LONG)) else {
            return self.expected_rps;
        };
        let lately = self.recent.iter().filter(|(then, ..)| now.since(*then) < SHORT);
        let (count, time_s) = lately.fold((0.0, 0.0), |(count, time_s), (_, over, arrivals)| {
            (count + *arrivals as f64, time_s + over.as_secs_f64())
        });
        if time_s < 0.5 * SHORT.as_secs_f64() {
            return long;
        }
        long.max((count - CHANCE * f64::sqrt(count)) / time_s)
    }

    /// The most that is expected within `ahead` of `at`, on the forecast's clock.
    pub(crate) fn peak_rps(&self, at: Time, ahead: Span) -> f64 {
        self.boost * self.rate_rps() * self.forecast.growth(at, ahead)
    }

    fn mean(&self, over: Span) -> Option<f64> {
        let &(now, ..) = self.recent.back()?;
        let within = self.recent.iter().filter(|(then, ..)| now.since(*then) < over);
        let (count, time_s) = within.fold((0.0, 0.0), |(count, time_s), (_, length, arrivals)| {
            (count + *arrivals as f64, time_s + length.as_secs_f64())
        });
        (time_s > 0.0).then(|| count / time_s)
    }
}
