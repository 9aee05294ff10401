//! The autoscaler: signals in, a decision out.

#[cfg(test)]
mod tests;

use downbeat_sched::Time;

use crate::recent::{Load, Recent};
use crate::signals::ratio;
use crate::staffing::Staffing;
use crate::{Decision, Forecast, Reason, Settings, Signals};

/// Fewer bad requests than this are chance: a batch that is late is several of them.
const BAD_MIN: f64 = 8.0;

/// Where so few requests come that as many bad ones would be allowed, this many times as long is looked at.
const LONGER: u64 = 4;

/// Where requests are lost although the traffic needs less than this part of the devices, more would not help.
const NEED_LOSS: f64 = 0.5;

/// Loads within this share of each other are the same load.
const SAME_LOAD: f64 = 0.05;

/// How much higher the peaks to come are than those of the last minutes, in parts of what those are above their mean.
const HIGHER: f64 = 0.5;

/// Decides how many devices of one class there should be.
///
/// Takes [`Signals`] every few seconds and answers each time. Nobody has to act on an answer: the next signals say how
/// many devices there are and are coming.
///
/// No decision depends on [`Signals::busy`]. Spare devices may be used to answer sooner, and then all of them are busy
/// at any load.
#[derive(Clone, Debug)]
pub struct Autoscaler {
    settings: Settings,
    recent: Recent,
    staffing: Staffing,
    forecast: Option<Forecast>,
    /// When the first signals came.
    began: Option<Time>,
    /// When the number of devices last changed, or was last to change.
    changed: Time,
    gpus: Option<u32>,
    /// Since when requests are lost.
    overloaded_since: Option<Time>,
    /// From how many devices to how many the last decision was; who acts on it may take a while.
    asked: Option<(u32, u32)>,
    /// What was last found to be too few.
    too_few: Option<Tried>,
    /// What was enough, before fewer were tried.
    enough: Option<Tried>,
}

/// A number of devices, and the load that it was for: as it comes in, not as what was learned makes of it, which
/// changes.
#[derive(Clone, Copy, Debug)]
struct Tried {
    gpus: u32,
    load: f64,
}

/// What the signals of now amount to.
struct View {
    load: Load,
    bad_rate: f64,
    /// Requests are lost...
    loses: bool,
    /// ...for want of devices, as far as can be told.
    overloaded: bool,
    /// The load averaged over the calm time.
    usual_load: Load,
    most: f64,
    ahead: Option<f64>,
}

impl Autoscaler {
    /// An autoscaler that knows nothing yet. With [`Settings::forecast`], one that learns the day as it goes.
    pub fn new(settings: Settings) -> Autoscaler {
        let forecast = settings.forecast.then(Forecast::daily);
        Autoscaler::with_forecast(settings, forecast)
    }

    /// An autoscaler that looks ahead by a forecast that has seen days before, or does not look ahead.
    pub fn with_forecast(settings: Settings, forecast: Option<Forecast>) -> Autoscaler {
        Autoscaler {
            recent: Recent::new(settings.calm),
            staffing: Staffing::new(settings.reserve),
            forecast,
            began: None,
            changed: Time::ZERO,
            gpus: None,
            overloaded_since: None,
            asked: None,
            too_few: None,
            enough: None,
            settings,
        }
    }

    /// The settings.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// How many devices there should be, as far as the signals until now tell.
    pub fn observe(&mut self, signals: &Signals) -> Decision {
        let now = signals.now;
        self.began.get_or_insert(now);
        if self.gpus.replace(signals.gpus) != Some(signals.gpus) {
            self.changed = now;
        }
        self.recent.add(signals.sound(), self.settings.react);
        if let Some(forecast) = &mut self.forecast {
            forecast.observe(now, signals.over, signals.rate_rps());
        }
        let view = self.view(signals);
        self.learn(signals, &view);
        let (wanted, reason) = self.decide(signals, &view);
        let have = signals.gpus + signals.coming;
        let asked = (wanted != have).then_some((have, wanted));
        if asked.is_some() && asked != self.asked {
            self.remember(signals, &view, wanted);
        }
        self.asked = asked;
        self.decision(signals, &view, wanted, reason)
    }

    fn view(&mut self, signals: &Signals) -> View {
        let Settings { react, calm, bad_rate_max, provision, .. } = self.settings;
        let now = signals.now;
        let recent = &self.recent;
        // What was lost by fewer devices than there are now says nothing about these.
        let unchanged = recent.unchanged();
        let allowed = bad_rate_max * recent.sum(react.min(unchanged), |signals| signals.answered) as f64;
        let lately = if allowed < BAD_MIN { react * LONGER } else { react }.min(unchanged);
        let bad = recent.sum(lately, |signals| signals.bad) as f64;
        let bad_rate = ratio(bad, recent.sum(lately, |signals| signals.answered) as f64);
        let loses = bad >= BAD_MIN && bad_rate > bad_rate_max;
        let needed = recent.mean(lately, |signals| signals.needed + signals.deviation);
        let overloaded = loses && needed >= NEED_LOSS * f64::from(signals.gpus);
        self.overloaded_since = if overloaded { self.overloaded_since.or(Some(now)) } else { None };
        let load = recent.load();
        let grown = |growth: f64| self.staffing.wanted(load.times(growth), now);
        View {
            load,
            bad_rate,
            loses,
            overloaded,
            usual_load: Load {
                needed: recent.mean(calm, |signals| signals.needed),
                deviation: recent.mean(calm, |signals| signals.deviation),
            },
            most: recent.loads().map(|load| self.staffing.wanted(load, now)).fold(0.0, f64::max),
            ahead: self.forecast.as_ref().map(|forecast| grown(forecast.growth(now, provision + react))),
        }
    }

    fn learn(&mut self, signals: &Signals, view: &View) {
        let Settings { react, .. } = self.settings;
        let now = signals.now;
        let unchanged = self.recent.unchanged();
        let lasting = self.overloaded_since.is_some_and(|since| now.since(since) >= react * 2);
        if lasting && unchanged >= react * 4 {
            // The larger of the two: a load that is just rising is not one at which this many should have been enough.
            let load = Load { needed: view.load.needed.max(signals.needed), ..view.load };
            self.staffing.too_few(load, signals.gpus, now);
            self.enough = self.enough.filter(|enough| enough.gpus > signals.gpus);
        }
    }

    fn decide(&self, signals: &Signals, view: &View) -> (u32, Reason) {
        let Settings { min, max, .. } = self.settings;
        let have = signals.gpus + signals.coming;
        if have < min || have > max {
            return (have.clamp(min, max), Reason::Limit);
        }
        let (target, reason) = self.target(signals, view);
        if target > have {
            let step = share(self.settings.step_up, have);
            let wanted = target.min(have.saturating_add(step)).min(max);
            return (wanted, if wanted == have { Reason::AtMax } else { reason });
        }
        let spare = self.spare(signals, view);
        if spare == 0 {
            return (have, Reason::Steady);
        }
        let began = self.began.unwrap_or(signals.now);
        let settled = signals.now.since(self.changed) >= self.settings.cool_down
            && signals.now.since(began) + signals.over >= self.settings.calm
            && signals.coming == 0;
        let asked = self.asked.is_some_and(|(had, wanted)| had == have && wanted < have);
        if !(settled || asked) || view.loses {
            return (have, Reason::CoolDown);
        }
        let usual = view.usual_load.size();
        let tried = |wanted: u32| {
            let same = |too_few: Tried| usual >= too_few.load * (1.0 - SAME_LOAD);
            self.too_few.is_some_and(|too_few| wanted <= too_few.gpus && same(too_few))
        };
        // As many as may go, less those without which there were too few.
        match (1..=spare).rev().map(|step| have - step).find(|&wanted| !tried(wanted)) {
            Some(wanted) => (wanted, Reason::Unneeded),
            None => (have, Reason::TriedBefore),
        }
    }

    /// How many devices the traffic wants now, or will by the time they can be there.
    fn target(&self, signals: &Signals, view: &View) -> (u32, Reason) {
        let wanted_now = self.staffing.wanted(view.load, signals.now);
        let mut target = (0, Reason::Steady);
        let began = self.began.unwrap_or(signals.now);
        // Fewer were tried, and were too few: as many as were enough before are enough again, whatever is reckoned.
        let enough = self.known_enough(view).unwrap_or(u32::MAX);
        if signals.now.since(began) + signals.over >= self.settings.react {
            let wanted = whole(wanted_now);
            target = (if enough >= signals.gpus { wanted.min(enough) } else { wanted }, Reason::Need);
        }
        // Where the need explains what is lost, it tells better how many are missing.
        if view.overloaded && wanted_now <= f64::from(signals.gpus) {
            let more = f64::from(signals.gpus) * view.bad_rate / (1.0 - view.bad_rate).max(1e-3);
            let mut wanted = signals.gpus.saturating_add(whole(more).max(1));
            if enough > signals.gpus {
                wanted = wanted.min(enough);
            }
            if wanted > target.0 {
                target = (wanted, Reason::Overload);
            }
        }
        if let Some(ahead) = view.ahead.map(whole).filter(|&ahead| ahead > target.0) {
            target = (ahead, Reason::Forecast);
        }
        target
    }

    /// How many devices were enough at this load, before fewer were tried.
    fn known_enough(&self, view: &View) -> Option<u32> {
        let same = |enough: &Tried| view.load.size() <= enough.load * (1.0 + SAME_LOAD);
        self.enough.filter(same).map(|enough| enough.gpus)
    }

    /// The number of devices that may go: whole ones that even the worst moment of the calm time did not need.
    fn spare(&self, signals: &Signals, view: &View) -> u32 {
        let Settings { min, step_down, hysteresis, calm, provision, .. } = self.settings;
        let gpus = f64::from(signals.gpus);
        let soon = self.forecast.as_ref().map_or(0.0, |forecast| {
            let growth = forecast.growth(signals.now, provision * 2 + calm);
            self.staffing.wanted(view.load.times(growth), signals.now)
        });
        // A day has higher peaks than the last minutes, the higher the more theirs are above their mean.
        let higher = HIGHER * (view.most - self.staffing.wanted(view.usual_load, signals.now)).max(0.0);
        let unneeded = (gpus - hysteresis - (view.most + higher).max(soon)).max(0.0) as u32;
        let have = signals.gpus + signals.coming;
        unneeded.min(share(step_down, signals.gpus)).min(have - min)
    }

    fn remember(&mut self, signals: &Signals, view: &View, wanted: u32) {
        self.changed = signals.now;
        if wanted > signals.gpus + signals.coming {
            // A little less than the peak that asked for more: at about the load of before, so few are not tried again;
            // after a surge, which is a load of its own, they are.
            let load = view.usual_load.size().max(view.load.size() * (1.0 - SAME_LOAD));
            self.too_few = Some(Tried { gpus: wanted - 1, load });
        } else {
            // For the highest that there was, too: chance takes the load of one device further from its mean than loads
            // that are the same may be apart.
            let highest = self.recent.loads().map(Load::size).fold(view.usual_load.size(), f64::max);
            self.enough = Some(Tried { gpus: signals.gpus, load: highest });
        }
    }

    fn decision(&self, signals: &Signals, view: &View, wanted: u32, reason: Reason) -> Decision {
        let Settings { react, calm, .. } = self.settings;
        let recent = &self.recent;
        let batches = recent.sum(react, |signals| signals.batches) as f64;
        let stays = matches!(reason, Reason::Steady | Reason::CoolDown);
        let lost_otherwise = view.loses && !view.overloaded;
        let reason = if stays && lost_otherwise { Reason::LostOtherwise } else { reason };
        Decision {
            wanted,
            gpus: signals.gpus,
            coming: signals.coming,
            reason,
            needed: view.load.needed,
            reserve: self.staffing.reserve(view.load, signals.now),
            needed_most: view.most,
            needed_ahead: view.ahead,
            busy: recent.mean(calm.min(recent.unchanged()), Signals::busy_gpus),
            idle: recent.idle(),
            bad_rate: view.bad_rate,
            rate_rps: recent.mean(react, Signals::rate_rps),
            mean_batch: ratio(recent.sum(react, |signals| signals.rows) as f64, batches),
            explanation: String::new(),
        }
        .explained()
    }
}

/// Whole devices, with some grace for sums that are not exact.
fn whole(devices: f64) -> u32 {
    (devices - 1e-9).ceil().max(0.0) as u32
}

/// A share of `gpus`, at least one.
fn share(share: f64, gpus: u32) -> u32 {
    ((share * f64::from(gpus)) as u32).max(1)
}
