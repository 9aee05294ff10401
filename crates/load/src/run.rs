//! One run: requests go out as planned, answers are counted as they come.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use tokio::runtime::Handle;

use crate::account::{Account, Ending, State, Tally};
use crate::control::Control;
use crate::loader::Loader;
use crate::outcome::Outcome;
use crate::pacer::{Epoch, pace};
use crate::plan::{Due, Plan};
use crate::report::LoadReport;
use crate::summary::summarise;

/// How often a run is looked at while it goes on.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// How far a run is.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// Since its beginning, warm-up included.
    pub elapsed: Duration,
    /// How long it will be, warm-up included.
    pub length: Duration,
    /// Whether requests do not count yet.
    pub is_warmup: bool,
    /// Requests that were due.
    pub offered: u64,
    /// Requests that were answered in time.
    pub in_slo: u64,
    /// Requests that were not.
    pub bad: u64,
    /// Requests on their way.
    pub waiting: u64,
    /// 99th percentile of latency so far, in ms.
    pub p99_ms: f64,
}

/// What one run is asked for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RunSettings {
    pub(crate) rate_rps: f64,
    pub(crate) seed: u64,
    pub(crate) warmup: Duration,
    /// The run ends when some model is sure not to have this share in SLO.
    pub(crate) give_up_below: Option<f64>,
}

/// A run, and whether it was given up.
pub(crate) struct Ran {
    pub(crate) report: LoadReport,
    pub(crate) given_up: bool,
}

impl Loader {
    /// Sends requests at this mean rate for as long as the load says. `watch` is called now and then from this task.
    pub async fn run(
        &self,
        rate_rps: f64,
        control: &Control,
        watch: &mut (dyn FnMut(&Progress) + Send),
    ) -> LoadReport {
        let Self { load, .. } = self;
        let settings = RunSettings { rate_rps, seed: load.seed, warmup: load.warmup, give_up_below: None };
        self.run_as(settings, control, watch).await.report
    }

    pub(crate) async fn run_as(
        &self,
        settings: RunSettings,
        control: &Control,
        watch: &mut (dyn FnMut(&Progress) + Send),
    ) -> Ran {
        let RunSettings { rate_rps, seed, warmup, give_up_below } = settings;
        let Self { load, .. } = self;
        let length = warmup + self.duration_at(rate_rps);
        let plan = Plan::new(&load.models, &load.arrival.process, rate_rps, seed, length);
        // Past so many bad requests a model cannot have its share any more.
        let bad_limits: Option<Vec<u64>> = give_up_below.map(|share| {
            plan.counts_from(warmup).into_iter().map(|count| ((1.0 - share) * count as f64) as u64).collect()
        });
        let account = Account::new(load.models.iter().map(|model| model.slo).collect(), warmup, length);
        let epoch = Epoch::soon();
        let inner = control.inner();
        let pacing = self.start_pacing(plan, epoch, &account, &inner);

        let mut look = tokio::time::interval(LOOK_EVERY);
        let (mut given_up, mut sent_for, mut waits_since) = (false, None, None);
        loop {
            look.tick().await;
            let elapsed = epoch.elapsed();
            let progress = account.look(|state| progress(state, elapsed, length, warmup, account.waiting()));
            watch(&progress);
            let failed = |state: &State| {
                let bad = state.models.iter().map(Tally::bad);
                bad_limits.as_ref().is_some_and(|limits| bad.zip(limits).any(|(bad, limit)| bad > *limit))
            };
            if !given_up && account.look(failed) {
                given_up = true;
                inner.stop();
            }
            if !pacing.is_finished() {
                continue;
            }
            // The last request may have gone before the end; what counts is how long there could have been one.
            sent_for.get_or_insert(if inner.is_stopped() { elapsed.min(length) } else { length });
            let waited = elapsed.saturating_sub(*waits_since.get_or_insert(elapsed));
            if account.waiting() == 0 || waited >= load.patience || inner.is_abandoned() {
                break;
            }
        }
        let measured = sent_for.unwrap_or(length).saturating_sub(warmup);
        let mut report = summarise(&load.models, &account.close(), measured);
        report.url = load.target.to_string();
        report.arrival = load.arrival.to_string();
        (report.seed, report.rate_rps) = (seed, rate_rps);
        report.interrupted = control.is_stopped();
        report.notes.splice(0..0, self.notes.iter().cloned());
        Ran { report, given_up }
    }

    /// Sends the requests of a plan from a thread of its own.
    fn start_pacing(
        &self,
        plan: Plan,
        epoch: Epoch,
        account: &Arc<Account>,
        control: &Control,
    ) -> thread::JoinHandle<()> {
        let (account, control) = (Arc::clone(account), control.clone());
        let (connections, letters) = (Arc::clone(&self.connections), self.letters.clone());
        let (runtime, waiting_max) = (Handle::current(), self.load.waiting_max);
        let mut turns = vec![0; letters.len()];
        let mut send = move |due: Due| {
            let mut ticket = account.issue(due);
            if account.waiting() > waiting_max {
                let why = format!("{waiting_max} requests were waiting for their answers");
                ticket.settle(epoch.elapsed(), Ending::Lost(Outcome::Unsent, why));
                return;
            }
            let of_model = &letters[due.model];
            let letter = of_model[turns[due.model] % of_model.len()].clone();
            turns[due.model] += 1;
            let connections = Arc::clone(&connections);
            runtime.spawn(async move {
                let protocol = connections.protocol();
                let reply = connections.exchange(&letter, || ticket.sent(epoch.elapsed())).await;
                let now = epoch.elapsed();
                let ending = match reply {
                    Ok(reply) => Ending::Answered(reply.answer(protocol)),
                    Err(error) => Ending::Lost(Outcome::Transport, error.to_string()),
                };
                ticket.settle(now, ending);
            });
        };
        thread::spawn(move || pace(plan, epoch, &control, &mut send))
    }
}

fn progress(state: &State, elapsed: Duration, length: Duration, warmup: Duration, waiting: u64) -> Progress {
    Progress {
        elapsed: elapsed.min(length),
        length,
        is_warmup: elapsed < warmup,
        offered: state.models.iter().map(|tally| tally.offered).sum(),
        in_slo: state.models.iter().map(|tally| tally.count(Outcome::Ok)).sum(),
        bad: state.models.iter().map(Tally::bad).sum(),
        waiting,
        p99_ms: state.latency_us.value_at_quantile(0.99) as f64 / 1e3,
    }
}
