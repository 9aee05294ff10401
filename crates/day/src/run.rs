//! A day in virtual time: the conductor decides, the site carries out, the real scheduler serves.

#[cfg(test)]
mod tests;

use downbeat_epochs::{Conductor, Order, Seen, Supply, Undertaking};
use downbeat_plan::solvers::Auto;
use downbeat_plan::{Run, Unsolved, plan};
use downbeat_sched::{Span, Time};
use downbeat_sim::{Arrival, Arrivals, LiveCluster, Scenario, rises};
use downbeat_transition::{Driver, StepKind};

use crate::DayScenario;
use crate::outcome::{Facts, report};
use crate::report::{ChangeReport, DayMinute, DayReport, LogLine, Window};
use crate::site::Site;

const MINUTE: Span = Span::from_millis(60_000);

/// A forecast's history is told in pieces of this length.
const PIECE: Span = Span::from_millis(300_000);

/// Days before have other arrivals than this one.
const YESTERDAY: u64 = 0x005e_ed0f_da75;

/// How long after GPUs and instances can be there a surge or failure is over: a surge must last to be told from chance,
/// and what has piled up must go.
const GRACE_S: f64 = 60.0;

/// Why a day could not be simulated.
#[derive(Debug, thiserror::Error)]
pub enum DayRunError {
    /// There is no plan, whatever the rates.
    #[error(transparent)]
    Unsolved(#[from] Unsolved),
    /// The simulator refused the services.
    #[error("{0}")]
    Simulation(String),
}

/// Simulates a day with the arrivals of `seed`. `on_minute` is called for each simulated minute.
///
/// The same day, seed and planner give the same report, unless the planner is stopped.
pub fn simulate_day(
    day: &DayScenario,
    seed: u64,
    run: &Run<'_>,
    on_minute: &dyn Fn(),
) -> Result<DayReport, DayRunError> {
    let (scenario, kinds) = day.scenario().map_err(DayRunError::Simulation)?;
    let mut conductor = conductor(day, &scenario, seed);
    let layout = conductor.begin(run)?;
    let mut site = Site::new(day, LiveCluster::new(&scenario, seed), kinds, layout);
    let mut facts = Facts::new(fixed_gpus(day, run)?, windows(day, &scenario));
    let mut watch = MinuteWatch::new(&site);
    let mut decide_at = Time::ZERO + day.interval;
    let end = Time::ZERO + day.duration;
    while site.live.now() < end {
        let next = decide_at.min(watch.ends_at).min(end);
        let signals = watch.run(&mut site, next, decide_at);
        // At the end of the day there is nothing left to be decided.
        if let Some(signals) = signals.filter(|_| next < end) {
            decide_at = next + day.interval;
            let layout = site.layout();
            let seen = Seen { now: next, services: &signals, layout: &layout, under_way: site.undertaking() };
            match conductor.decide(&seen, run)? {
                Order::Stay(None) => {}
                Order::Stay(Some(why)) => facts.log.push(line(next, "kept", &why)),
                Order::Stop(why) => {
                    facts.log.push(line(next, "stopped", &why));
                    site.stop();
                }
                Order::Change(change) => {
                    site.record.changes.push(ChangeReport {
                        at_s: next.since_origin().as_secs_f64(),
                        ended_s: None,
                        cause: change.cause.to_string(),
                        why: change.why.clone(),
                        demand_rps: change.demand_rps.clone(),
                        gpus: change.plan.gpus,
                        proved_optimal: change.plan.proved_optimal,
                        expected_s: change.transition.expected_s,
                        spares: change.transition.spares.len(),
                        planned_steps: change.transition.steps.len(),
                        steps: Vec::new(),
                        notes: [&change.plan.notes[..], &change.transition.notes[..]].concat(),
                    });
                    site.undertake(Undertaking::new(layout, change.transition), &change.to);
                }
            }
        }
        if site.live.now() == watch.ends_at {
            facts.minutes.push(watch.minute(&site, &day.problem));
            on_minute();
        }
    }
    Ok(report(day, seed, site, facts))
}

/// A conductor that expects what the day begins with, and has seen the days before.
fn conductor(day: &DayScenario, scenario: &Scenario, seed: u64) -> Conductor {
    let mut problem = day.problem.clone();
    for (index, service) in problem.services.iter_mut().enumerate() {
        service.rate_rps = day.rate_rps(index, Span::ZERO).max(1e-3);
    }
    let mut conductor = Conductor::new(problem, day.catalogue.clone(), day.settings.clone());
    let pieces = day.settings.history.as_nanos() / PIECE.as_nanos();
    for (index, model) in scenario.models.iter().enumerate().filter(|_| pieces > 0) {
        let arrival = Arrival::clone(&model.arrival);
        let rate_rps = model.share * scenario.total_rps;
        let mut arrivals = Arrivals::new(&arrival, rate_rps, seed ^ YESTERDAY, index);
        let mut next = arrivals.next();
        for piece in 1..=pieces {
            let until = PIECE * piece;
            let mut count = 0u64;
            while next < Time::ZERO + until {
                count += 1;
                next = arrivals.next();
            }
            conductor.remember(index, until, PIECE, count as f64 / PIECE.as_secs_f64());
        }
    }
    conductor
}

/// GPUs of one layout for every service's peak; 0 where there are too few for that.
fn fixed_gpus(day: &DayScenario, run: &Run<'_>) -> Result<u32, Unsolved> {
    let mut problem = day.problem.clone();
    for (index, service) in problem.services.iter_mut().enumerate() {
        service.rate_rps = day.peak_rps(index).max(1e-3) * day.settings.headroom;
    }
    problem.pools.iter_mut().for_each(|pool| pool.count = None);
    plan(&problem, &Auto, run, None).map(|made| made.gpus)
}

/// The times after surges and failures in which instances that are needed cannot be there yet.
fn windows(day: &DayScenario, scenario: &Scenario) -> Vec<Window> {
    let times = day.settings.times;
    let cut_s = match day.settings.driver {
        Driver::Nvml => times.repartition_s + times.slice_create_s,
        // A GPU must be emptied before.
        Driver::MigParted => times.repartition_s + times.migrate_remote_s + times.delete_s,
    };
    let allowed_s = day.settings.provision.as_secs_f64() + cut_s + times.create_s + GRACE_S;
    let surges = rises(scenario).into_iter().map(|at| (at, "surge"));
    let failures = day.faults.iter().map(|fault| (fault.at, "failure"));
    let mut windows: Vec<Window> = surges
        .chain(failures)
        .filter(|&(at, _)| at < day.duration)
        .map(|(at, why)| Window {
            why: why.to_owned(),
            from_s: at.as_secs_f64(),
            until_s: at.as_secs_f64() + allowed_s,
        })
        .collect();
    windows.sort_by(|a, b| a.from_s.total_cmp(&b.from_s));
    windows
}

fn line(at: Time, what: &str, why: &str) -> LogLine {
    LogLine { at_s: at.since_origin().as_secs_f64(), what: format!("{what}: {why}") }
}

/// Looks at the site while time passes: the scheduler's need between decisions, counts between minutes.
struct MinuteWatch {
    ends_at: Time,
    signals_since: Time,
    needs: Vec<(f64, f64)>,
    glances: u32,
    arrivals: Vec<u64>,
}

impl MinuteWatch {
    fn new(site: &Site<'_>) -> MinuteWatch {
        let models = site.live.models().len();
        MinuteWatch {
            ends_at: Time::ZERO + MINUTE,
            signals_since: Time::ZERO,
            needs: vec![(0.0, 0.0); models],
            glances: 0,
            arrivals: vec![0; models],
        }
    }

    /// Lets time pass until `next`; what was seen, if it is time to decide.
    fn run(
        &mut self,
        site: &mut Site<'_>,
        next: Time,
        decide_at: Time,
    ) -> Option<Vec<downbeat_epochs::Signals>> {
        let glance = LiveCluster::glance(decide_at.since(self.signals_since));
        while site.live.now() < next {
            site.run_to((site.live.now() + glance).min(next));
            self.glances += 1;
            for (sum, need) in self.needs.iter_mut().zip(site.live.needs()) {
                *sum = (sum.0 + need.0, sum.1 + need.1);
            }
        }
        if next < decide_at {
            return None;
        }
        let glances = f64::from(self.glances.max(1));
        let needs: Vec<(f64, f64)> =
            self.needs.iter().map(|(mean, deviation)| (mean / glances, deviation / glances)).collect();
        let mut signals = site.live.signals(next.since(self.signals_since), &needs);
        for step in site.undertaking().into_iter().flat_map(Undertaking::remaining) {
            let coming = step.instance.as_ref().filter(|_| step.kind == StepKind::Create);
            if let Some(service) = coming.and_then(|instance| site.service(&instance.service)) {
                signals[service].coming += 1;
            }
        }
        self.signals_since = next;
        self.needs.fill((0.0, 0.0));
        self.glances = 0;
        Some(signals)
    }

    /// What a minute that is over was like; what share was in SLO is told when all is answered.
    fn minute(&mut self, site: &Site<'_>, problem: &downbeat_plan::Problem) -> DayMinute {
        self.ends_at = self.ends_at + MINUTE;
        let arrivals: Vec<u64> = site.live.models().iter().map(|model| model.arrivals).collect();
        let rate = |(now, before): (&u64, &u64)| (now - before) as f64 / MINUTE.as_secs_f64();
        let rates = arrivals.iter().zip(&self.arrivals).map(rate).collect();
        self.arrivals = arrivals;
        let supply: Supply = site.supply();
        let services = 0..problem.services.len();
        DayMinute {
            gpus: site.gpus_there(),
            coming: site.gpus_coming(),
            rate_rps: rates,
            capacity_rps: services.clone().map(|service| supply.rps(problem, service)).collect(),
            in_slo: Vec::new(),
            instances: services.map(|service| supply.instances(service)).collect(),
        }
    }
}
