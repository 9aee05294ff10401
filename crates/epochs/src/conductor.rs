//! The conductor: what was seen in, an order out.

#[cfg(test)]
mod tests;

mod planning;

use downbeat_mig::Catalogue;
use downbeat_plan::{GpuLayout, Problem, Run, Unsolved};
use downbeat_scale::{Autoscaler, Forecast, Reason, Signals};
use downbeat_sched::{Span, Time};
use downbeat_transition::Layout;

use crate::demand::Demand;
use crate::supply::{gpus_of, layout_of};
use crate::{Cause, Change, Order, Settings, Supply, Undertaking};

/// The least that is planned for, in requests per second: a service that nobody uses keeps an instance.
const RATE_MIN: f64 = 0.01;

/// What is less by this share is as much.
const ROUNDING: f64 = 1e-6;

/// How long after a change no other is made out of turn. Each time that nothing could be changed, twice as long, up to
/// an epoch.
const PATIENCE: Span = Span::from_millis(60_000);

/// Out of turn, further GPUs are taken where they are there in this share of the time that the smallest layout takes.
const QUICKER: f64 = 0.6;

/// What a conductor sees.
#[derive(Clone, Copy, Debug)]
pub struct Seen<'a> {
    /// The time.
    pub now: Time,
    /// What the scheduler saw of each service since the last time; an instance is a device.
    pub services: &'a [Signals],
    /// What runs where.
    pub layout: &'a Layout,
    /// The change that is under way.
    pub under_way: Option<&'a Undertaking>,
}

/// Decides how the GPUs are partitioned and what runs where, as demand changes.
#[derive(Clone, Debug)]
pub struct Conductor {
    problem: Problem,
    catalogue: Catalogue,
    settings: Settings,
    demands: Vec<Demand>,
    /// What each service was last planned for.
    planned_rps: Vec<f64>,
    next_epoch: Time,
    /// Until when nothing is changed out of turn, and for how long after the next time.
    patient_until: Time,
    patience: Span,
    was_under_way: bool,
    /// GPUs that were there once: their numbers are used again.
    known: Vec<GpuLayout>,
}

/// A change out of turn.
struct Urgent {
    cause: Cause,
    service: usize,
    why: String,
}

impl Conductor {
    /// A conductor of the services, GPUs and measurements of `problem`, whose rates are what to expect at first.
    pub fn new(problem: Problem, catalogue: Catalogue, settings: Settings) -> Conductor {
        // Plans allow for nearly as many bad requests as objectives do: fewer than that are no overload.
        let scaling = downbeat_scale::Settings {
            provision: settings.lead,
            react: Span::from_millis(30_000),
            bad_rate_max: 0.01,
            ..downbeat_scale::Settings::advisory()
        };
        let demand = |rate_rps: f64| {
            Demand::new(rate_rps, Forecast::with_season(settings.season), Autoscaler::new(scaling.clone()))
        };
        Conductor {
            demands: problem.services.iter().map(|service| demand(service.rate_rps)).collect(),
            planned_rps: vec![0.0; problem.services.len()],
            next_epoch: Time::ZERO + settings.epoch,
            patient_until: Time::ZERO,
            patience: PATIENCE,
            was_under_way: false,
            known: Vec::new(),
            problem,
            catalogue,
            settings,
        }
    }

    /// Takes in a rate of before the beginning: the mean over the time `over` that ends `at` after the history's
    /// beginning.
    pub fn remember(&mut self, service: usize, at: Span, over: Span, rate_rps: f64) {
        self.demands[service].remember(Time::ZERO + at, over, rate_rps);
    }

    /// The problem that is planned, with the rates that were last planned for.
    pub fn problem(&self) -> &Problem {
        &self.problem
    }

    /// What each service was last planned for, in requests per second.
    pub fn planned_rps(&self) -> &[f64] {
        &self.planned_rps
    }

    /// The layout to begin with: for what is expected until the second epoch's layout is there.
    pub fn begin(&mut self, run: &Run<'_>) -> Result<Layout, Unsolved> {
        let wanted = self.expected(Time::ZERO);
        let (made, _) = self.plan(&wanted, &[], run)?;
        let layout = layout_of(&self.problem, &made.layout);
        self.know(&layout);
        Ok(layout)
    }

    /// What is to be done, as far as can be told until now.
    ///
    /// An error is one of the planner that has nothing to do with the demand; too few GPUs are none, but said in the
    /// plan's notes.
    pub fn decide(&mut self, seen: &Seen<'_>, run: &Run<'_>) -> Result<Order, Unsolved> {
        let at = self.on_forecast_clock(seen.now);
        for (demand, signals) in self.demands.iter_mut().zip(seen.services) {
            demand.observe(at, signals);
        }
        if let Some(under_way) = seen.under_way {
            self.was_under_way = true;
            return Ok(self.meanwhile(seen, under_way));
        }
        if std::mem::take(&mut self.was_under_way) {
            self.patient_until = self.patient_until.max(seen.now + PATIENCE);
        }
        self.know(seen.layout);
        let supply = Supply::of(&self.problem, seen.layout);
        let urgent = self.urgent(seen, &supply);
        if seen.now >= self.next_epoch {
            while self.next_epoch <= seen.now {
                self.next_epoch = self.next_epoch + self.settings.epoch;
            }
            let cause = urgent.as_ref().map_or(Cause::Epoch, |urgent| urgent.cause);
            let why = urgent.map_or_else(String::new, |urgent| format!("{}. ", urgent.why));
            let wanted = self.expected(seen.now);
            return self.change(seen, &supply, cause, &why, &wanted, run);
        }
        let Some(urgent) = urgent else { return Ok(Order::Stay(None)) };
        if urgent.cause == Cause::Overload {
            self.demands[urgent.service].was_not_enough();
        }
        // Out of turn, nobody loses what they have: the way is shorter.
        let expected = self.expected(seen.now);
        let wanted: Vec<f64> =
            expected.iter().zip(&self.planned_rps).map(|(now, before)| now.max(*before)).collect();
        self.patient_until = seen.now + self.patience;
        let order = self.change(seen, &supply, urgent.cause, &format!("{}. ", urgent.why), &wanted, run)?;
        self.patience = match &order {
            Order::Change(change) if change.share >= 1.0 => PATIENCE,
            _ => (self.patience * 2).min(self.settings.epoch),
        };
        Ok(order)
    }

    /// Whether a change that is under way still leads where it should.
    fn meanwhile(&self, seen: &Seen<'_>, under_way: &Undertaking) -> Order {
        if under_way.is_stopped() {
            return Order::Stay(None);
        }
        let [there, to_be] =
            [seen.layout, &under_way.target()].map(|layout| Supply::of(&self.problem, layout));
        let at = self.on_forecast_clock(seen.now);
        for (index, demand) in self.demands.iter().enumerate() {
            let capacity = there.rps(&self.problem, index).max(to_be.rps(&self.problem, index));
            let soon = demand.peak_rps(at, self.settings.lead);
            if soon > capacity {
                let name = &self.problem.services[index].name;
                return Order::Stop(format!(
                    "{name} is expected to get {soon:.1} requests/s; neither what there is nor what is to be serves more than \
                     {capacity:.1}"
                ));
            }
        }
        Order::Stay(None)
    }

    /// What cannot wait for the end of the epoch.
    fn urgent(&self, seen: &Seen<'_>, supply: &Supply) -> Option<Urgent> {
        let at = self.on_forecast_clock(seen.now);
        let patient = seen.now < self.patient_until;
        (0..self.demands.len()).find_map(|service| {
            let (name, demand) = (&self.problem.services[service].name, &self.demands[service]);
            let capacity = supply.rps(&self.problem, service);
            let planned = self.planned_rps[service];
            if capacity < planned * (1.0 - ROUNDING) && !patient {
                let why = format!(
                    "{name} has {capacity:.1} of the {planned:.1} requests/s that were planned for it"
                );
                return Some(Urgent { cause: Cause::Loss, service, why });
            }
            let soon = demand.peak_rps(at, self.settings.lead);
            if soon > capacity && !patient {
                let why = format!(
                    "{name} gets {:.1} requests/s, {soon:.1} are expected soon, and {capacity:.1} are served",
                    demand.rate_rps()
                );
                return Some(Urgent { cause: Cause::Surge, service, why });
            }
            let decision = demand.decision.as_ref().filter(|decision| {
                decision.reason == Reason::Overload && decision.wanted > decision.gpus && !patient
            })?;
            let why = format!("{name}: {}", decision.explanation);
            Some(Urgent { cause: Cause::Overload, service, why })
        })
    }

    /// The most that each service is expected to get until the layout of the next epoch is there.
    fn expected(&self, now: Time) -> Vec<f64> {
        let at = self.on_forecast_clock(now);
        let Settings { epoch, lead, headroom, .. } = self.settings;
        let expected = |demand: &Demand| (headroom * demand.peak_rps(at, epoch + lead)).max(RATE_MIN);
        self.demands.iter().map(expected).collect()
    }

    fn change(
        &mut self,
        seen: &Seen<'_>,
        supply: &Supply,
        cause: Cause,
        why: &str,
        wanted: &[f64],
        run: &Run<'_>,
    ) -> Result<Order, Unsolved> {
        let before = self.planned_rps.clone();
        let (made, share) = self.plan(wanted, &gpus_of(seen.layout), run)?;
        let gpus = seen.layout.gpus.iter().filter(|gpu| !gpu.instances.is_empty()).count() as u32;
        let is_served = |service: usize| {
            supply.rps(&self.problem, service) >= self.planned_rps[service] * (1.0 - ROUNDING)
        };
        if (0..self.demands.len()).all(is_served) && made.gpus >= gpus && cause != Cause::Overload {
            return Ok(Order::Stay(Some(format!(
                "{why}{gpus} GPUs serve what is expected, and no fewer would"
            ))));
        }
        let beside = (cause != Cause::Epoch).then(|| self.beside(seen.layout, supply, &made, run)).flatten();
        let way = self.way(seen.layout, &made);
        let beside = beside.and_then(|plan| Some((self.way(seen.layout, &plan).ok()?, plan)));
        let (made, way) = match (way, beside) {
            (Ok(way), Some((quick, _))) if self.takes(&quick, seen) > QUICKER * self.takes(&way, seen) => {
                (made, Ok(way))
            }
            (_, Some((quick, plan))) => (plan, Ok(quick)),
            (way, None) => (made, way),
        };
        let transition = match way {
            Ok(transition) => transition,
            Err(error) => {
                self.planned_rps = before;
                self.patient_until = self.patient_until.max(seen.now + PATIENCE);
                return Ok(Order::Stay(Some(format!(
                    "{why}From {gpus} to {} GPUs there is no way: {error}",
                    made.gpus
                ))));
            }
        };
        let short = if share < 1.0 {
            format!("; GPUs are too few, and {:.0} % of what is expected is planned for", 100.0 * share)
        } else {
            String::new()
        };
        let why = format!("{why}From {gpus} to {} GPUs{short}", made.gpus);
        Ok(Order::Change(Box::new(Change {
            cause,
            why,
            share,
            demand_rps: self.planned_rps.clone(),
            to: layout_of(&self.problem, &made.layout),
            plan: made,
            transition,
        })))
    }

    /// Remembers which GPUs there are, so that numbers stay small.
    fn know(&mut self, layout: &Layout) {
        for gpu in &layout.gpus {
            if !self.known.iter().any(|known| known.gpu == gpu.gpu) {
                let (gpu, node, gpu_type) = (gpu.gpu, gpu.node, gpu.gpu_type.clone());
                self.known.push(GpuLayout { gpu, node, device: None, gpu_type, instances: Vec::new() });
            }
        }
    }

    /// The forecast's clock began with the history.
    fn on_forecast_clock(&self, now: Time) -> Time {
        now + self.settings.history
    }
}
