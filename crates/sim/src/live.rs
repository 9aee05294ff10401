//! A cluster that runs in virtual time while its devices come and go one by one, each for one model: slices of GPUs, as
//! a controller starts and stops instances on them.

#[cfg(test)]
mod tests;

use downbeat_scale::Signals;
use downbeat_sched::{ClassId, GpuId, ModelId, PortfolioScheduler, Span, Time};

use crate::autoscale::{Ledger, Tally};
use crate::devices::Executed;
use crate::in_flight::Traveller;
use crate::scenario::Scenario;
use crate::simulation::{Books, Simulation, Until};

/// How often the need is looked at while time passes: it is told from the last second's arrivals.
const GLANCES: u64 = 5;

/// A cluster of a scenario's models, run by Downbeat's scheduler, that begins without any device.
///
/// The scenario's classes say what kinds of devices there may be; how many they count is of no matter. Each class must
/// run one model only, so that a model's need of devices is that of its classes.
pub struct LiveCluster {
    simulation: Simulation<LiveBooks>,
    scheduler: PortfolioScheduler,
    now: Time,
    /// The classes that run each model.
    classes: Vec<Vec<ClassId>>,
    /// Each device that ever joined, by its number: the model that it runs, and whether it still does.
    devices: Vec<(usize, bool)>,
    /// The counts when signals were last told.
    mark: Vec<Counts>,
    busy_mark: Vec<Span>,
}

/// What became of a run.
#[derive(Clone, Debug)]
pub struct LiveOutcome {
    /// By minute, then by model: requests by the minute in which they were answered.
    pub minutes: Vec<Vec<Tally>>,
    /// Each model's requests.
    pub models: Vec<ModelOutcome>,
}

/// What became of a model's requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ModelOutcome {
    /// Requests that came in.
    pub arrivals: u64,
    /// Requests that were answered: run, or told that they cannot be.
    pub answered: u64,
    /// Those of them that were late or not run.
    pub bad: u64,
}

impl LiveCluster {
    /// The scenario's models and arrivals, without devices.
    pub fn new(scenario: &Scenario, seed: u64) -> LiveCluster {
        let mut empty = scenario.clone();
        empty.classes.iter_mut().for_each(|class| class.count = 0);
        empty.faults.clear();
        let models = scenario.models.len();
        let runs = |model: &crate::Model| {
            let profiles = (0..).map(ClassId).zip(&model.profiles);
            profiles.filter(|(_, profile)| profile.is_some()).map(|(class, _)| class).collect()
        };
        let books = LiveBooks { ledger: Ledger::new(&empty, 0), models: vec![Counts::default(); models] };
        let mut cluster = LiveCluster {
            simulation: Simulation::new(&empty, seed, books),
            scheduler: PortfolioScheduler::new(scenario.rule, scenario.delays),
            now: Time::ZERO,
            classes: scenario.models.iter().map(runs).collect(),
            devices: Vec::new(),
            mark: vec![Counts::default(); models],
            busy_mark: Vec::new(),
        };
        cluster.simulation.introduce_models(&mut cluster.scheduler);
        cluster
    }

    /// The time.
    pub fn now(&self) -> Time {
        self.now
    }

    /// Lets a new device of a class take work from now on; `None` where no model runs on the class.
    pub fn join(&mut self, class: ClassId) -> Option<GpuId> {
        let model = self.classes.iter().position(|classes| classes.contains(&class))?;
        let gpu = self.simulation.add_gpu(class);
        self.simulation.books.ledger.busy.push(Span::ZERO);
        self.devices.push((model, true));
        self.busy_mark.push(Span::ZERO);
        self.simulation.join(&mut self.scheduler, self.now, gpu);
        Some(gpu)
    }

    /// The class of a device that ever joined.
    pub fn class(&self, gpu: GpuId) -> Option<ClassId> {
        self.simulation.class(gpu)
    }

    /// Lets a device finish what it runs and take nothing more.
    pub fn leave(&mut self, gpu: GpuId) {
        if std::mem::take(&mut self.devices[gpu.0 as usize].1) {
            self.simulation.leave(&mut self.scheduler, self.now, gpu);
        }
    }

    /// Lets a device fail, with all that it was sent.
    pub fn fail(&mut self, gpu: GpuId) {
        if std::mem::take(&mut self.devices[gpu.0 as usize].1) {
            self.simulation.fail_now(&mut self.scheduler, self.now, gpu);
        }
    }

    /// Lets time pass.
    pub fn run_to(&mut self, until: Time) {
        self.simulation.run(&mut self.scheduler, Until::End, until);
        self.now = until;
    }

    /// Each model's need of devices now, mean and deviation.
    pub fn needs(&self) -> Vec<(f64, f64)> {
        let sum = |classes: &Vec<ClassId>| {
            let needs = classes.iter().map(|&class| self.scheduler.need(class));
            needs.fold((0.0, 0.0), |sum, need| (sum.0 + need.mean(), sum.1 + need.deviation()))
        };
        self.classes.iter().map(sum).collect()
    }

    /// How often [`needs`](Self::needs) should be looked at between two decisions.
    pub fn glance(interval: Span) -> Span {
        Span::from_nanos((interval.as_nanos() / GLANCES).max(1))
    }

    /// What the scheduler saw of each model since the last time; `needs` are what [`needs`](Self::needs) said in
    /// between, in the mean.
    pub fn signals(&mut self, over: Span, needs: &[(f64, f64)]) -> Vec<Signals> {
        let books = &self.simulation.books;
        let mut signals: Vec<Signals> = (books.models.iter().zip(&self.mark).enumerate())
            .map(|(model, (now, before))| Signals {
                now: self.now,
                over,
                gpus: 0,
                coming: 0,
                arrivals: now.outcome.arrivals - before.outcome.arrivals,
                answered: now.outcome.answered - before.outcome.answered,
                bad: now.outcome.bad - before.outcome.bad,
                batches: now.batches - before.batches,
                rows: now.rows - before.rows,
                waiting: self.scheduler.waiting(ModelId(model as u32)) as u64,
                needed: needs[model].0,
                deviation: needs[model].1,
                busy: Vec::new(),
            })
            .collect();
        let times = books.ledger.busy.iter().zip(&self.busy_mark);
        for ((now, before), &(model, there)) in times.zip(&self.devices) {
            if there {
                signals[model].gpus += 1;
                let busy_s = (*now - *before).as_secs_f64();
                signals[model].busy.push((busy_s / over.as_secs_f64().max(1e-9)).min(1.0));
            }
        }
        self.mark.clone_from(&books.models);
        self.busy_mark.clone_from(&books.ledger.busy);
        signals
    }

    /// Each model's requests until now.
    pub fn models(&self) -> Vec<ModelOutcome> {
        self.simulation.books.models.iter().map(|counts| counts.outcome).collect()
    }

    /// Runs until every request has left, or could only be late, and says what became of all.
    pub fn finish(mut self) -> LiveOutcome {
        self.simulation.run(&mut self.scheduler, Until::End, Time::NEVER);
        let models = self.models();
        let minutes = self.simulation.books.ledger.forget(usize::MAX);
        LiveOutcome { minutes, models }
    }
}

/// Books by minute and by model.
struct LiveBooks {
    ledger: Ledger,
    models: Vec<Counts>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    outcome: ModelOutcome,
    batches: u64,
    rows: u64,
}

impl LiveBooks {
    /// Counts an answer by what the ledger makes of it.
    fn answered(&mut self, model: u32, write: impl FnOnce(&mut Ledger)) {
        let bad = self.ledger.bad;
        write(&mut self.ledger);
        let counts = &mut self.models[model as usize].outcome;
        counts.answered += 1;
        counts.bad += self.ledger.bad - bad;
    }
}

impl Books for LiveBooks {
    fn arrived(&mut self, traveller: Traveller) {
        self.ledger.arrived(traveller);
        self.models[traveller.model as usize].outcome.arrivals += 1;
    }

    fn finished(&mut self, traveller: Traveller, finish: Time) {
        self.answered(traveller.model, |ledger| ledger.finished(traveller, finish));
    }

    fn expired(&mut self, traveller: Traveller, now: Time) {
        self.answered(traveller.model, |ledger| ledger.expired(traveller, now));
    }

    fn executed(&mut self, executed: &Executed) {
        self.ledger.executed(executed);
        let counts = &mut self.models[executed.model as usize];
        counts.batches += 1;
        counts.rows += executed.requests.len() as u64;
    }

    fn fails_early(&self, _: u32) -> bool {
        false
    }
}
