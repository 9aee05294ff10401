//! A cluster whose GPUs come and go while it runs: provisioning, the scheduler's signals, the bill.

use std::collections::{BTreeSet, VecDeque};

use downbeat_scale::Signals;
use downbeat_sched::{ClassId, GpuId, ModelId, PortfolioScheduler, Span, Time};

use super::ledger::Ledger;
use crate::scenario::Scenario;
use crate::simulation::{Simulation, Until};

/// How often the need is looked at between two decisions: it is told from the last second's arrivals.
const GLANCES: u64 = 5;

const CLASS: ClassId = ClassId(0);

/// A cluster of one class of devices, run by Downbeat's scheduler, whose size changes.
#[derive(Clone)]
pub(super) struct Elastic {
    simulation: Simulation<Ledger>,
    scheduler: PortfolioScheduler,
    now: Time,
    provision: Span,
    /// Those that take work.
    ready: BTreeSet<GpuId>,
    /// Those that were asked for, by when they will be ready.
    coming: VecDeque<Time>,
    models: usize,
    gpu_seconds: f64,
    ledger_mark: Mark,
}

/// The counts at the last decision.
#[derive(Clone, Default)]
struct Mark {
    arrivals: u64,
    answered: u64,
    bad: u64,
    batches: u64,
    rows: u64,
    busy: Vec<Span>,
}

impl Elastic {
    /// A cluster of `scenario`, which has as many devices as there may ever be, of which `gpus` are there.
    pub(super) fn new(scenario: &Scenario, seed: u64, provision: Span, gpus: u32) -> Elastic {
        let slots = scenario.cluster().gpus.len();
        let mut elastic = Elastic {
            simulation: Simulation::new(scenario, seed, Ledger::new(scenario, slots)),
            scheduler: PortfolioScheduler::new(scenario.rule, scenario.delays),
            now: Time::ZERO,
            provision,
            ready: BTreeSet::new(),
            coming: VecDeque::new(),
            models: scenario.models.len(),
            gpu_seconds: 0.0,
            ledger_mark: Mark { busy: vec![Span::ZERO; slots], ..Mark::default() },
        };
        elastic.simulation.introduce_models(&mut elastic.scheduler);
        (0..gpus).for_each(|_| elastic.join());
        elastic
    }

    /// Goes on to `until`; what was asked for joins when it is ready. Returns what the scheduler saw since the last
    /// time.
    pub(super) fn advance(&mut self, until: Time) -> Signals {
        let begin = self.now;
        let over = until.since(begin);
        let (mut needed, mut deviation) = (0.0, 0.0);
        for glance in 1..=GLANCES {
            self.go_to(begin + Span::from_nanos(over.as_nanos() * glance / GLANCES));
            let need = self.scheduler.need(CLASS);
            needed += need.mean() / GLANCES as f64;
            deviation += need.deviation() / GLANCES as f64;
        }
        let ledger = &self.simulation.books;
        let mark = &self.ledger_mark;
        let busy = self.ready.iter().map(|gpu| gpu.0 as usize).map(|gpu| ledger.busy[gpu] - mark.busy[gpu]);
        let signals = Signals {
            now: until,
            over,
            gpus: self.ready.len() as u32,
            coming: self.coming.len() as u32,
            arrivals: ledger.arrivals - mark.arrivals,
            answered: ledger.answered - mark.answered,
            bad: ledger.bad - mark.bad,
            batches: ledger.batches - mark.batches,
            rows: ledger.rows - mark.rows,
            waiting: self.waiting(),
            needed,
            deviation,
            busy: busy.map(|span| span.as_secs_f64() / over.as_secs_f64().max(1e-9)).collect(),
        };
        self.ledger_mark = Mark {
            arrivals: ledger.arrivals,
            answered: ledger.answered,
            bad: ledger.bad,
            batches: ledger.batches,
            rows: ledger.rows,
            busy: ledger.busy.clone(),
        };
        signals
    }

    /// Asks for devices or gives some back, so that there are `wanted` once all that was asked for is there.
    ///
    /// What is not there yet is given back first, the latest first; then the device that load gathers on last.
    pub(super) fn scale_to(&mut self, wanted: u32) {
        while self.gpus() + self.coming() < wanted {
            self.coming.push_back(self.now + self.provision);
        }
        while self.gpus() + self.coming() > wanted {
            if self.coming.pop_back().is_none() {
                let Some(last) = self.ready.pop_last() else { return };
                self.simulation.leave(&mut self.scheduler, self.now, last);
            }
        }
        self.join_those_ready();
    }

    /// Has `wanted` devices at once, however long they take: for one who asked for them in time.
    pub(super) fn set(&mut self, wanted: u32) {
        while self.gpus() < wanted {
            self.join();
        }
        self.scale_to(wanted);
    }

    pub(super) fn gpus(&self) -> u32 {
        self.ready.len() as u32
    }

    pub(super) fn coming(&self) -> u32 {
        self.coming.len() as u32
    }

    /// Device time paid for: from when a device is asked for to when it is given back, or fails.
    pub(super) fn gpu_seconds(&self) -> f64 {
        self.gpu_seconds
    }

    /// Requests that wait for a device.
    fn waiting(&self) -> u64 {
        (0..self.models).map(|model| self.scheduler.waiting(ModelId(model as u32)) as u64).sum()
    }

    pub(super) fn ledger(&self) -> &Ledger {
        &self.simulation.books
    }

    pub(super) fn ledger_mut(&mut self) -> &mut Ledger {
        &mut self.simulation.books
    }

    /// Counts what has not left as never answered.
    pub(super) fn close(&mut self) {
        self.simulation.close();
    }

    fn go_to(&mut self, until: Time) {
        while let Some(&ready_at) = self.coming.front().filter(|&&ready_at| ready_at <= until) {
            self.run_to(ready_at);
            self.join_those_ready();
        }
        self.run_to(until);
    }

    fn run_to(&mut self, until: Time) {
        self.simulation.run(&mut self.scheduler, Until::End, until);
        self.gpu_seconds += f64::from(self.gpus() + self.coming()) * until.since(self.now).as_secs_f64();
        self.now = until;
        let simulation = &self.simulation;
        self.ready.retain(|&gpu| !simulation.has_failed(gpu));
    }

    fn join_those_ready(&mut self) {
        while self.coming.front().is_some_and(|&ready_at| ready_at <= self.now) {
            self.coming.pop_front();
            self.join();
        }
    }

    /// Lets the first device that is not there join.
    fn join(&mut self) {
        if let Some(gpu) = (0..).map(GpuId).find(|gpu| !self.ready.contains(gpu)) {
            self.simulation.join(&mut self.scheduler, self.now, gpu);
            self.ready.insert(gpu);
        }
    }
}
