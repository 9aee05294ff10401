//! What is counted of one model, for the metrics and for the statistics of the protocol.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use downbeat_oip::Reason;
use downbeat_oip::proto::{InferBatchStatistics, InferStatistics, ModelStatistics, StatisticDuration};
use downbeat_profile::Span;
use downbeat_sched::Release;
use prometheus::core::{MetricVec, MetricVecBuilder};
use prometheus::{Histogram, IntCounter, IntGauge};

use super::ModelFamilies;

/// What is counted of one loaded version of a model. Loaded again, it is counted on; once it is unloaded, its series
/// end.
#[derive(Debug)]
pub(crate) struct ModelMeter {
    families: Arc<ModelFamilies>,
    model: String,
    version: String,
    success: IntCounter,
    rows: IntCounter,
    executions: IntCounter,
    pending: IntGauge,
    request_us: IntCounter,
    queue_us: IntCounter,
    compute_us: IntCounter,
    in_time: IntCounter,
    late: IntCounter,
    duration: Histogram,
    batch_rows: Histogram,
    overrun: Histogram,
    correction: prometheus::Gauge,
    statistics: Mutex<Statistics>,
}

/// The protocol's statistics.
#[derive(Debug, Default)]
struct Statistics {
    last_ms: u64,
    success: Tally,
    failed: Tally,
    queue: Tally,
    compute: Tally,
    rows: u64,
    executions: u64,
    /// Computing time by rows of a batch.
    batches: BTreeMap<u32, Tally>,
}

/// How often, and for how long in all.
#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    count: u64,
    ns: u64,
}

impl Tally {
    fn add(&mut self, span: Span) {
        self.count += 1;
        self.ns += span.as_nanos();
    }

    fn duration(self) -> StatisticDuration {
        StatisticDuration { count: self.count, ns: self.ns }
    }

    /// As often, but without any time: for what Downbeat does not tell apart.
    fn count_only(self) -> Tally {
        Tally { ns: 0, ..self }
    }
}

impl ModelMeter {
    pub(super) fn new(families: Arc<ModelFamilies>, model: &str, version: &str, slo: Span) -> ModelMeter {
        let labels = [model, version];
        // Held until all series are there: nobody may end them in between.
        let mut meters = families.meters.lock().unwrap_or_else(PoisonError::into_inner);
        *meters.entry(labels.map(str::to_owned)).or_default() += 1;
        families.slo.with_label_values(&labels).set(slo.as_secs_f64());
        // All there from the start, so that a rate over them is right from the first failure on.
        for reason in Reason::ALL.map(Reason::label) {
            families.failure.with_label_values(&[model, version, reason]);
            families.outcomes.with_label_values(&[model, version, reason]);
        }
        for reason in Release::ALL.map(release_label) {
            families.batches.with_label_values(&[model, version, reason]);
        }
        families.input_us.with_label_values(&labels);
        families.output_us.with_label_values(&labels);
        let correction = families.correction.with_label_values(&labels);
        correction.set(1.0);
        drop(meters);
        ModelMeter {
            model: model.to_owned(),
            version: version.to_owned(),
            success: families.success.with_label_values(&labels),
            rows: families.rows.with_label_values(&labels),
            executions: families.executions.with_label_values(&labels),
            pending: families.pending.with_label_values(&labels),
            request_us: families.request_us.with_label_values(&labels),
            queue_us: families.queue_us.with_label_values(&labels),
            compute_us: families.compute_us.with_label_values(&labels),
            in_time: families.outcomes.with_label_values(&[model, version, RESULTS[0]]),
            late: families.outcomes.with_label_values(&[model, version, RESULTS[1]]),
            duration: families.duration.with_label_values(&labels),
            batch_rows: families.batch_rows.with_label_values(&labels),
            overrun: families.overrun.with_label_values(&labels),
            correction,
            statistics: Mutex::default(),
            families,
        }
    }

    /// A request was answered with a result.
    pub(crate) fn completed(&self, rows: u32, total: Span, queue: Span, compute: Span, late: bool) {
        self.success.inc();
        self.rows.inc_by(rows.into());
        self.request_us.inc_by(total.as_nanos() / 1_000);
        self.queue_us.inc_by(queue.as_nanos() / 1_000);
        self.compute_us.inc_by(compute.as_nanos() / 1_000);
        if late {
            self.late.inc();
        } else {
            self.in_time.inc();
        }
        self.duration.observe(total.as_secs_f64());
        let mut statistics = self.statistics.lock().unwrap_or_else(PoisonError::into_inner);
        statistics.last_ms = now_ms();
        statistics.success.add(total);
        statistics.queue.add(queue);
        statistics.compute.add(compute);
        statistics.rows += u64::from(rows);
    }

    /// A request was answered without a result.
    pub(crate) fn failed(&self, reason: Reason) {
        let labels = [&self.model, &self.version, reason.label()];
        self.families.failure.with_label_values(&labels).inc();
        self.families.outcomes.with_label_values(&labels).inc();
        self.statistics.lock().unwrap_or_else(PoisonError::into_inner).failed.add(Span::ZERO);
    }

    /// How long a request took that was answered without a result; it is counted where that is known.
    pub(crate) fn spent_on_failure(&self, span: Span) {
        self.statistics.lock().unwrap_or_else(PoisonError::into_inner).failed.ns += span.as_nanos();
    }

    /// A batch was sent to a device.
    pub(crate) fn released(&self, rows: u32, reason: Release) {
        let labels = [self.model.as_str(), &self.version, release_label(reason)];
        self.families.batches.with_label_values(&labels).inc();
        self.batch_rows.observe(rows.into());
    }

    /// A batch was computed, and came back so much later than predicted.
    pub(crate) fn executed(&self, rows: u32, busy: Span, overrun: Span) {
        self.executions.inc();
        self.overrun.observe(overrun.as_secs_f64());
        let mut statistics = self.statistics.lock().unwrap_or_else(PoisonError::into_inner);
        statistics.executions += 1;
        statistics.batches.entry(rows).or_default().add(busy);
    }

    pub(crate) fn waiting(&self, requests: usize) {
        self.pending.set(requests as i64);
    }

    pub(crate) fn corrected(&self, factor: f64) {
        self.correction.set(factor);
    }

    /// What the protocol's statistics say. Moving tensors is part of computing here, so input and output count without
    /// taking time.
    pub(crate) fn statistics(&self) -> ModelStatistics {
        let statistics = self.statistics.lock().unwrap_or_else(PoisonError::into_inner);
        let duration = |tally: Tally| Some(tally.duration());
        let batch = |(&rows, &tally): (&u32, &Tally)| InferBatchStatistics {
            batch_size: rows.into(),
            compute_input: duration(tally.count_only()),
            compute_infer: duration(tally),
            compute_output: duration(tally.count_only()),
        };
        ModelStatistics {
            name: self.model.clone(),
            version: self.version.clone(),
            last_inference: statistics.last_ms,
            inference_count: statistics.rows,
            execution_count: statistics.executions,
            inference_stats: Some(InferStatistics {
                success: duration(statistics.success),
                fail: duration(statistics.failed),
                queue: duration(statistics.queue),
                compute_input: duration(statistics.compute.count_only()),
                compute_infer: duration(statistics.compute),
                compute_output: duration(statistics.compute.count_only()),
                cache_hit: duration(Tally::default()),
                cache_miss: duration(Tally::default()),
            }),
            batch_stats: statistics.batches.iter().map(batch).collect(),
            ..ModelStatistics::default()
        }
    }
}

impl Drop for ModelMeter {
    fn drop(&mut self) {
        let labels = [self.model.as_str(), self.version.as_str()];
        let mut meters = self.families.meters.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(count) = meters.get_mut(&labels.map(str::to_owned)) else { return };
        *count -= 1;
        if *count == 0 {
            meters.remove(&labels.map(str::to_owned));
            self.families.end(&self.model, &self.version);
        }
    }
}

impl ModelFamilies {
    /// Ends all series of a version of a model.
    fn end(&self, model: &str, version: &str) {
        let labels = [model, version];
        for family in [
            &self.success,
            &self.rows,
            &self.executions,
            &self.request_us,
            &self.queue_us,
            &self.compute_us,
            &self.input_us,
            &self.output_us,
        ] {
            end(family, &labels);
        }
        end(&self.pending, &labels);
        end(&self.duration, &labels);
        end(&self.batch_rows, &labels);
        end(&self.overrun, &labels);
        end(&self.slo, &labels);
        end(&self.correction, &labels);
        for reason in Reason::ALL.map(Reason::label) {
            end(&self.failure, &[model, version, reason]);
        }
        for outcome in Reason::ALL.map(Reason::label).into_iter().chain(RESULTS) {
            end(&self.outcomes, &[model, version, outcome]);
        }
        for reason in Release::ALL.map(release_label) {
            end(&self.batches, &[model, version, reason]);
        }
    }
}

fn end<B: MetricVecBuilder>(family: &MetricVec<B>, labels: &[&str]) {
    // A meter makes all of its series; none is missing.
    let _ = family.remove_label_values(labels);
}

/// The outcomes with a result: in time, and not.
const RESULTS: [&str; 2] = ["ok", "late"];

/// Every reason to start a batch.
fn release_label(reason: Release) -> &'static str {
    match reason {
        Release::Window => "window",
        Release::Full => "full",
        Release::Drain => "drain",
        Release::Guard => "guard",
        Release::Early => "early",
        Release::Eager => "eager",
    }
}

fn now_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64)
}

#[cfg(test)]
mod tests;
