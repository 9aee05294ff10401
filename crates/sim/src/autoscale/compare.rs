//! One scenario, scaled by Downbeat and by others, on the same arrivals.

use downbeat_scale::Autoscaler;
use downbeat_sched::{Span, Time};

use super::elastic::Elastic;
use super::foresight::{Foresight, MinuteTotals, foresee};
use super::outcome::Outcome;
use super::report::{Change, Excuse, Misses, ReplayReport, ScaledRun};
use super::rules::{Measure, Rule};
use super::surges::excuses;
use crate::scenario::{Autoscale, Scenario};

/// How busy the utilisation rule keeps its GPUs: a usual setting and a thrifty one.
const UTILISATIONS: [f64; 2] = [0.6, 0.8];

/// A replay of a scenario under several rules for the number of GPUs.
#[derive(Clone, Debug)]
pub struct Replay<'a> {
    scenario: &'a Scenario,
    autoscale: &'a Autoscale,
    /// The scenario with as many GPUs as there may ever be.
    roomy: Scenario,
    seed: u64,
}

/// Why a scenario cannot be replayed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReplayError {
    /// Its GPUs do not come and go.
    #[error("{scenario} has no [autoscale]; add one, e.g. [autoscale] min = 1, max = 16, provision_s = 120")]
    NotScaled {
        /// The scenario.
        scenario: String,
    },
    /// It is over before anything can be told.
    #[error("{scenario} is too short to be scaled: duration_s must be at least 60")]
    TooShort {
        /// The scenario.
        scenario: String,
    },
}

impl<'a> Replay<'a> {
    /// A replay of a scenario that has `[autoscale]`.
    pub fn new(scenario: &'a Scenario, seed: u64) -> Result<Replay<'a>, ReplayError> {
        let name = || scenario.name.clone();
        let Some(autoscale) = &scenario.autoscale else {
            return Err(ReplayError::NotScaled { scenario: name() });
        };
        if scenario.duration < Span::from_millis(60_000) {
            return Err(ReplayError::TooShort { scenario: name() });
        }
        let mut roomy = scenario.clone();
        roomy.classes.iter_mut().for_each(|class| class.count = autoscale.settings.max);
        Ok(Replay { scenario, autoscale, roomy, seed })
    }

    /// How many steps of about equal length [`run`](Self::run) takes.
    pub fn steps(&self) -> u64 {
        // The clairvoyant tries every minute two or three times, the others once.
        self.minutes() as u64 * (4 + UTILISATIONS.len() as u64)
    }

    /// Runs all rules, on all cores. `on_step` is called once for each of the [`steps`](Self::steps), from any thread.
    pub fn run(&self, on_step: &(dyn Fn() + Sync)) -> ReplayReport {
        let excuses = excuses(self.scenario, self.autoscale.settings.provision);
        let (foresight, mut others) = rayon::join(
            || self.foresight(on_step),
            || {
                use rayon::prelude::*;
                (0..=UTILISATIONS.len())
                    .into_par_iter()
                    .map(|index| match index.checked_sub(1) {
                        None => self.downbeat(&excuses, on_step),
                        Some(rival) => self.utilisation(UTILISATIONS[rival], &excuses, on_step),
                    })
                    .collect::<Vec<Outcome>>()
            },
        );
        let peak = foresight.gpus.iter().copied().max().unwrap_or(1);
        let (fixed, queue) = rayon::join(
            || self.fixed(peak, &excuses, on_step),
            || self.queue(foresight.waiting_at_peak, &excuses, on_step),
        );
        let fixed_s = fixed.gpu_seconds;
        let least_s = foresight.gpu_seconds;
        let notes = self.notes(&foresight);
        others.insert(1, fixed);
        others.push(queue);
        others.push(self.clairvoyant(foresight, &excuses));
        self.report(excuses, others, (fixed_s, least_s), notes)
    }

    /// Compares outcomes by the GPU time of fixed peak capacity and of the clairvoyant.
    fn report(
        &self,
        excuses: Vec<Excuse>,
        outcomes: Vec<Outcome>,
        (fixed_s, least_s): (f64, f64),
        notes: Vec<String>,
    ) -> ReplayReport {
        ReplayReport {
            scenario: self.scenario.name.clone(),
            seed: self.seed,
            provision_s: self.autoscale.settings.provision.as_secs_f64(),
            duration_s: self.scenario.duration.as_secs_f64(),
            excuses,
            requests_simulated: outcomes.iter().map(|outcome| outcome.requests).sum(),
            runs: outcomes.into_iter().map(|outcome| outcome.compared(fixed_s, least_s)).collect(),
            notes,
            wall_s: 0.0,
        }
    }

    /// Runs Downbeat's autoscaler and the clairvoyant only. Fixed peak capacity, which what they save is counted from,
    /// is not run: it is the clairvoyant's peak all the time.
    pub fn run_beside_the_clairvoyant(&self, on_step: &(dyn Fn() + Sync)) -> ReplayReport {
        let excuses = excuses(self.scenario, self.autoscale.settings.provision);
        let (foresight, downbeat) =
            rayon::join(|| self.foresight(on_step), || self.downbeat(&excuses, on_step));
        let peak = foresight.gpus.iter().copied().max().unwrap_or(1);
        let fixed_s = f64::from(peak) * 60.0 * self.minutes() as f64;
        let least_s = foresight.gpu_seconds;
        let notes = self.notes(&foresight);
        let outcomes = vec![downbeat, self.clairvoyant(foresight, &excuses)];
        self.report(excuses, outcomes, (fixed_s, least_s), notes)
    }

    /// Runs Downbeat's autoscaler alone; nothing is compared.
    pub fn run_alone(&self, on_step: &(dyn Fn() + Sync)) -> ScaledRun {
        let excuses = excuses(self.scenario, self.autoscale.settings.provision);
        self.downbeat(&excuses, on_step).compared(0.0, 0.0)
    }

    fn minutes(&self) -> usize {
        (self.scenario.duration.as_nanos() / 60_000_000_000) as usize
    }

    fn limits(&self) -> (u32, u32) {
        (self.autoscale.settings.min, self.autoscale.settings.max)
    }

    fn gpus_at_first(&self) -> u32 {
        self.scenario.classes.iter().map(|class| class.count).sum()
    }

    fn cluster(&self, gpus: u32) -> Elastic {
        self.cluster_of(&self.roomy, gpus)
    }

    fn cluster_of(&self, roomy: &Scenario, gpus: u32) -> Elastic {
        Elastic::new(roomy, self.seed, self.autoscale.settings.provision, gpus)
    }

    fn downbeat(&self, excuses: &[Excuse], on_step: &(dyn Fn() + Sync)) -> Outcome {
        let settings = self.autoscale.settings.clone();
        let about = format!(
            "Downbeat's autoscaler{}: up by need and lost requests, down by need",
            if settings.forecast { " with forecast" } else { "" }
        );
        let rule = Rule::Downbeat(Box::new(Autoscaler::new(settings)));
        self.under("downbeat", about, rule, self.gpus_at_first(), excuses, on_step)
    }

    fn fixed(&self, gpus: u32, excuses: &[Excuse], on_step: &(dyn Fn() + Sync)) -> Outcome {
        let about = format!("fixed peak capacity: {gpus} GPUs, the most that the clairvoyant ever needs");
        self.under("fixed", about, Rule::Fixed(gpus), gpus, excuses, on_step)
    }

    fn utilisation(&self, target: f64, excuses: &[Excuse], on_step: &(dyn Fn() + Sync)) -> Outcome {
        let percent = 100.0 * target;
        let about = format!("utilisation rule, as for CPUs: GPUs busy {percent:.0} % of the time");
        let rule = Rule::proportional(Measure::Utilisation, target, self.limits());
        let name = format!("utilisation {percent:.0} %");
        // Batches that start early keep devices busy that the traffic does not need, and this rule would order more.
        let idle = Scenario { rule: self.roomy.rule.without_early_starts(), ..self.roomy.clone() };
        let gpus = self.gpus_at_first();
        self.on(self.cluster_of(&idle, gpus), &name, about, rule, excuses, on_step)
    }

    fn queue(&self, target: f64, excuses: &[Excuse], on_step: &(dyn Fn() + Sync)) -> Outcome {
        let target = target.max(0.1);
        let about = format!(
            "queue-length rule: {target:.1} waiting requests per GPU, as many as the clairvoyant has at its peak"
        );
        let rule = Rule::proportional(Measure::Waiting, target, self.limits());
        self.under("queue length", about, rule, self.gpus_at_first(), excuses, on_step)
    }

    fn foresight(&self, on_step: &(dyn Fn() + Sync)) -> Foresight {
        let Autoscale { settings, .. } = self.autoscale;
        let cluster = self.cluster(self.gpus_at_first());
        foresee(cluster, self.minutes(), self.limits(), settings.provision, on_step)
    }

    fn clairvoyant(&self, found: Foresight, excuses: &[Excuse]) -> Outcome {
        let counts = std::iter::once(self.gpus_at_first()).chain(found.gpus.iter().copied());
        let changes = counts.zip(&found.gpus).zip(0u32..).filter(|((before, after), _)| before != *after);
        Outcome {
            name: "clairvoyant".to_owned(),
            about: "the fewest GPUs that keep each minute, asked for in time by one who knows the arrivals"
                .to_owned(),
            gpu_seconds: found.gpu_seconds,
            misses: Misses::of(&found.tallies, excuses),
            answered: found.tallies.iter().flatten().map(|tally| tally.answered).sum(),
            bad: found.tallies.iter().flatten().map(|tally| tally.bad).sum(),
            changes: changes
                .map(|((from, &to), minute)| Change {
                    at_s: 60.0 * f64::from(minute),
                    from,
                    to,
                    reason: String::new(),
                    explanation: String::new(),
                })
                .collect(),
            minutes: found.minutes,
            requests: found.requests,
        }
    }

    /// Runs the scenario under a rule.
    fn under(
        &self,
        name: &str,
        about: String,
        rule: Rule,
        gpus: u32,
        excuses: &[Excuse],
        on_step: &(dyn Fn() + Sync),
    ) -> Outcome {
        self.on(self.cluster(gpus), name, about, rule, excuses, on_step)
    }

    /// Runs a cluster under a rule.
    fn on(
        &self,
        mut cluster: Elastic,
        name: &str,
        about: String,
        mut rule: Rule,
        excuses: &[Excuse],
        on_step: &(dyn Fn() + Sync),
    ) -> Outcome {
        let mut minutes = Vec::with_capacity(self.minutes());
        let mut changes = Vec::new();
        let mut total = MinuteTotals::default();
        let mut now = Time::ZERO;
        let mut decide_at = now + self.autoscale.interval;
        while minutes.len() < self.minutes() {
            let minute_end = Time::ZERO + Span::from_millis(60_000) * (minutes.len() as u64 + 1);
            now = decide_at.min(minute_end);
            let signals = cluster.advance(now);
            total.add(&signals);
            if now == decide_at {
                decide_at = now + self.autoscale.interval;
            }
            // Told of both, so that every rule sees all that happens, whatever the interval.
            let ask = rule.ask(&signals);
            let have = cluster.gpus() + cluster.coming();
            if ask.wanted != have {
                let at_s = now.since_origin().as_secs_f64();
                changes.push(Change {
                    at_s,
                    from: have,
                    to: ask.wanted,
                    reason: ask.reason,
                    explanation: ask.explanation,
                });
                cluster.scale_to(ask.wanted);
            }
            if now == minute_end {
                let tallies = cluster.ledger().minute(minutes.len());
                let report = std::mem::take(&mut total).report(cluster.gpus(), cluster.coming(), tallies);
                minutes.push(report);
                on_step();
            }
        }
        cluster.close();
        let (answered, bad) = (cluster.ledger().answered, cluster.ledger().bad);
        let requests = cluster.ledger().arrivals;
        let gpu_seconds = cluster.gpu_seconds();
        let tallies = cluster.ledger_mut().forget(usize::MAX);
        let misses = Misses::of(&tallies, excuses);
        Outcome {
            name: name.to_owned(),
            about,
            gpu_seconds,
            minutes,
            misses,
            answered,
            bad,
            changes,
            requests,
        }
    }

    fn notes(&self, foresight: &Foresight) -> Vec<String> {
        let mut notes = self.scenario.impossible();
        if foresight.hopeless > 0 {
            notes.push(format!(
                "in {} minutes even {} GPUs are too few: raise max",
                foresight.hopeless, self.autoscale.settings.max
            ));
        }
        let rest_s = self.scenario.duration.as_secs_f64() % 60.0;
        if rest_s > 0.0 {
            notes.push(format!("the last {rest_s:.0} s are no whole minute and are left out"));
        }
        notes
    }
}
