//! The account of a run: what became of every request, what every device did.

use downbeat_sched::{Span, Time};
use hdrhistogram::Histogram;
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::Quantiles;
use crate::devices::Executed;
use crate::in_flight::Traveller;
use crate::report::{Execution, GpuReport, ModelReport, RunDetail, RunReport};
use crate::scenario::Scenario;
use crate::simulation::Books;
use crate::workload::{RESPONSES, random_stream};

/// Batches kept for the timeline.
const TIMELINE: usize = 4_000;

/// Latencies are kept in microseconds up to this; nothing that waits longer is served.
const LATENCY_MAX_US: u64 = 600_000_000;

/// What became of every request that arrived in the measured part of the run. Its memory does not grow with the run.
#[derive(Debug)]
pub(crate) struct Account {
    /// Requests that arrive in this part count, and work that devices do in it.
    from: Time,
    until: Time,
    /// How long the way back takes: always as long, or drawn.
    response_reserve: Span,
    response: Option<(Quantiles, Xoshiro256PlusPlus)>,
    models: Vec<ModelAccount>,
    busy: Vec<Span>,
    timeline: Vec<Execution>,
    total_rps: f64,
    longest_cycle: Span,
    /// What is to be known of the scenario.
    notes: Vec<String>,
}

#[derive(Debug)]
struct ModelAccount {
    name: String,
    slo: Span,
    /// Past so many bad requests the model has failed whatever comes; see [`Account::fails_early`].
    bad_limit: u64,
    offered: u64,
    in_slo: u64,
    late: u64,
    expired: u64,
    latency_us: Histogram<u64>,
    batch_sizes: Vec<u64>,
}

impl Account {
    pub(crate) fn new(scenario: &Scenario, seed: u64) -> Account {
        let measured_s = (scenario.duration - scenario.warmup).as_secs_f64();
        let models = scenario.models.iter().map(|model| ModelAccount {
            name: model.name.clone(),
            slo: model.slo,
            bad_limit: (0.02 * model.share * scenario.total_rps * measured_s) as u64 + 50,
            offered: 0,
            in_slo: 0,
            late: 0,
            expired: 0,
            latency_us: latency_histogram(),
            batch_sizes: Vec::new(),
        });
        Account {
            from: Time::ZERO + scenario.warmup,
            until: Time::ZERO + scenario.duration,
            response_reserve: scenario.response_reserve,
            response: scenario.response.clone().map(|it| (it, random_stream(seed, 0, RESPONSES))),
            models: models.collect(),
            busy: vec![Span::ZERO; scenario.classes.iter().map(|class| class.count as usize).sum()],
            timeline: Vec::new(),
            total_rps: scenario.total_rps,
            longest_cycle: scenario.longest_cycle(),
            notes: scenario.impossible(),
        }
    }

    fn counts(&self, arrived: Time) -> bool {
        self.from <= arrived && arrived < self.until
    }

    pub(crate) fn into_report(self, policy: String, seed: u64, requests_simulated: u64) -> RunReport {
        let measured_s = self.until.since(self.from).as_secs_f64();
        let offered: u64 = self.models.iter().map(|model| model.offered).sum();
        let in_slo: u64 = self.models.iter().map(|model| model.in_slo).sum();
        let batches = self.models.iter().flat_map(|model| &model.batch_sizes).sum();
        let models: Vec<ModelReport> = self.models.iter().map(ModelAccount::report).collect();
        let offered_rps = offered as f64 / measured_s;
        let mut notes = self.notes;
        notes.extend(rate_note(offered_rps, self.total_rps, measured_s, self.longest_cycle.as_secs_f64()));
        RunReport {
            policy,
            seed,
            offered_rps,
            in_slo_rps: in_slo as f64 / measured_s,
            bad_rate_worst: models.iter().map(|model| model.bad_rate).fold(0.0, f64::max),
            models,
            gpus: gpu_report(&self.busy, measured_s),
            batches,
            requests_simulated,
            wall_s: 0.0,
            detail: RunDetail {
                latency_cdf: self.models.iter().map(ModelAccount::latency_cdf).collect(),
                slo_ms: self.models.iter().map(|model| model.slo.as_millis_f64()).collect(),
                batch_sizes: self.models.into_iter().map(|model| model.batch_sizes).collect(),
                timeline: self.timeline,
                from_ms: self.from.since_origin().as_millis_f64(),
                notes,
            },
        }
    }
}

impl Books for Account {
    fn arrived(&mut self, traveller: Traveller) {
        if self.counts(traveller.arrived) {
            self.models[traveller.model as usize].offered += 1;
        }
    }

    fn expired(&mut self, traveller: Traveller, _: Time) {
        if self.counts(traveller.arrived) {
            self.models[traveller.model as usize].expired += 1;
        }
    }

    fn finished(&mut self, traveller: Traveller, finish: Time) {
        if !self.counts(traveller.arrived) {
            return;
        }
        let response = match &mut self.response {
            Some((response, random)) => response.draw(random),
            None => self.response_reserve,
        };
        let latency = finish.since(traveller.arrived) + response;
        let model = &mut self.models[traveller.model as usize];
        if latency <= model.slo {
            model.in_slo += 1;
        } else {
            model.late += 1;
        }
        model.latency_us.saturating_record(latency.as_nanos() / 1_000);
    }

    fn executed(&mut self, executed: &Executed) {
        let (start, finish) = (executed.start.max(self.from), executed.finish.min(self.until));
        self.busy[executed.gpu.0 as usize] += finish.since(start);
        if executed.finish <= self.from || executed.start >= self.until {
            return;
        }
        let size = executed.requests.len();
        if self.timeline.len() < TIMELINE {
            self.timeline.push(Execution {
                gpu: executed.gpu.0,
                model: executed.model,
                batch: size as u32,
                start_ms: executed.start.since_origin().as_millis_f64(),
                end_ms: executed.finish.since_origin().as_millis_f64(),
            });
        }
        if executed.start < self.from {
            return;
        }
        let sizes = &mut self.models[executed.model as usize].batch_sizes;
        if sizes.len() < size {
            sizes.resize(size, 0);
        }
        sizes[size - 1] += 1;
    }

    /// Whether a model already has so many bad requests that it must end above 1 %, even if twice as many requests come
    /// as its mean rate promises.
    fn fails_early(&self, model: u32) -> bool {
        let model = &self.models[model as usize];
        model.late + model.expired > model.bad_limit
    }
}

impl ModelAccount {
    fn report(&self) -> ModelReport {
        let bad = self.late + self.expired;
        let batches: u64 = self.batch_sizes.iter().sum();
        let batched: u64 = (1..).zip(&self.batch_sizes).map(|(size, count)| size * count).sum();
        let share = |part: u64, whole: u64| if whole == 0 { 0.0 } else { part as f64 / whole as f64 };
        let quantile_ms = |q: f64| self.latency_us.value_at_quantile(q) as f64 / 1e3;
        ModelReport {
            name: self.name.clone(),
            offered: self.offered,
            in_slo: self.in_slo,
            late: self.late,
            expired: self.expired,
            bad_rate: share(bad, self.offered),
            p50_ms: quantile_ms(0.5),
            p99_ms: quantile_ms(0.99),
            mean_batch: share(batched, batches),
        }
    }

    fn latency_cdf(&self) -> Vec<(f64, f64)> {
        let steps = self.latency_us.iter_quantiles(10);
        steps.map(|step| (step.value_iterated_to() as f64 / 1e3, step.quantile())).collect()
    }
}

/// Says that a run was offered another rate than it was asked for, and why; `None` where it was about the same.
fn rate_note(offered_rps: f64, asked_rps: f64, measured_s: f64, cycle_s: f64) -> Option<String> {
    if (offered_rps - asked_rps).abs() <= 0.1 * asked_rps {
        return None;
    }
    let why = if cycle_s > measured_s {
        format!(
            "the {measured_s} s that are measured are only a part of the arrival pattern, which is {cycle_s} s long; \
             make duration_s longer"
        )
    } else if cycle_s > 0.0 {
        format!(
            "the {measured_s} s that are measured are no whole number of passes of the arrival pattern, which is \
             {cycle_s} s long; change duration_s"
        )
    } else {
        format!("{measured_s} s of such arrivals need not reach their mean rate; make duration_s longer")
    };
    Some(format!(
        "{offered_rps:.0} rps were offered instead of the {asked_rps:.0} that were asked for: {why}"
    ))
}

fn latency_histogram() -> Histogram<u64> {
    // The bounds are constants for which the constructor cannot fail; an auto-sizing histogram is the same but larger.
    Histogram::new_with_bounds(1, LATENCY_MAX_US, 3).unwrap_or_else(|_| unreachable!("valid bounds"))
}

fn gpu_report(busy: &[Span], measured_s: f64) -> GpuReport {
    let total: f64 = busy.iter().map(|span| span.as_secs_f64()).sum();
    let mut busiest: Vec<f64> = busy.iter().map(|span| span.as_secs_f64()).collect();
    busiest.sort_by(|a, b| b.total_cmp(a));
    let mut carried = 0.0;
    let used = busiest.iter().take_while(|&&seconds| {
        let needed = carried < 0.99 * total;
        carried += seconds;
        needed
    });
    GpuReport {
        count: busy.len(),
        used: used.count(),
        busy_fraction: busy.iter().map(|span| span.as_secs_f64() / measured_s).collect(),
    }
}
