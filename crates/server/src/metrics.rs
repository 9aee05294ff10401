//! What is counted, under Triton's names where the meaning is the same and under `downbeat_` where it is new.

mod device;
mod endpoint;
mod model;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use downbeat_oip::Reason;
use downbeat_profile::{DeviceClass, Span};
use downbeat_scale::Decision;
use downbeat_sched::{ALTERNATIVES, ClassId, Rule};
use prometheus::{
    CounterVec, GaugeVec, Histogram, HistogramOpts, HistogramVec, IntCounterVec, IntGaugeVec, Opts, Registry,
    TextEncoder, core::Collector, exponential_buckets,
};

pub(crate) use device::DeviceMeter;
pub(crate) use endpoint::serve_metrics;
pub(crate) use model::ModelMeter;

/// All metrics of the server.
#[derive(Debug)]
pub(crate) struct Metrics {
    registry: Registry,
    model: Arc<ModelFamilies>,
    device: DeviceFamilies,
    rejected: IntCounterVec,
    lag: Histogram,
    needed: GaugeVec,
    gpus_needed: GaugeVec,
    gpus_idle: GaugeVec,
    rule: GaugeVec,
    decisions: Mutex<BTreeMap<String, Decision>>,
    restarts: IntCounterVec,
    classes: Mutex<Vec<(ClassId, String)>>,
}

#[derive(Debug)]
struct ModelFamilies {
    success: IntCounterVec,
    failure: IntCounterVec,
    rows: IntCounterVec,
    executions: IntCounterVec,
    pending: IntGaugeVec,
    request_us: IntCounterVec,
    queue_us: IntCounterVec,
    compute_us: IntCounterVec,
    input_us: IntCounterVec,
    output_us: IntCounterVec,
    outcomes: IntCounterVec,
    duration: HistogramVec,
    batch_rows: HistogramVec,
    batches: IntCounterVec,
    overrun: HistogramVec,
    slo: GaugeVec,
    correction: GaugeVec,
    /// How many meters count under each model and version.
    meters: Mutex<BTreeMap<[String; 2], usize>>,
}

#[derive(Debug)]
struct DeviceFamilies {
    up: IntGaugeVec,
    busy: CounterVec,
    present: CounterVec,
    /// The ranks under which devices are counted, by name and class.
    ranks: Mutex<BTreeMap<[String; 2], BTreeSet<String>>>,
}

const MODEL: [&str; 2] = ["model", "version"];

/// Triton's dashboards add up input, inference and output.
const MOVING: &str = "Always 0: moving tensors is part of computing here";

impl Metrics {
    pub(crate) fn new() -> prometheus::Result<Metrics> {
        let registry = Registry::new();
        let r = &registry;
        let with_reason = ["model", "version", "reason"];
        let model = ModelFamilies {
            success: counters(r, "nv_inference_request_success", "Requests answered with a result", &MODEL)?,
            failure: counters(
                r,
                "nv_inference_request_failure",
                "Requests answered without a result, by reason",
                &with_reason,
            )?,
            rows: counters(r, "nv_inference_count", "Rows computed for requests that were answered", &MODEL)?,
            executions: counters(r, "nv_inference_exec_count", "Batches computed", &MODEL)?,
            pending: registered(
                r,
                IntGaugeVec::new(
                    Opts::new("nv_inference_pending_request_count", "Requests that wait for a device"),
                    &MODEL,
                )?,
            )?,
            request_us: counters(
                r,
                "nv_inference_request_duration_us",
                "Time from arrival to answer, summed over requests with a result",
                &MODEL,
            )?,
            queue_us: counters(
                r,
                "nv_inference_queue_duration_us",
                "Time that requests waited, summed over requests with a result",
                &MODEL,
            )?,
            compute_us: counters(
                r,
                "nv_inference_compute_infer_duration_us",
                "Time that devices computed, summed over requests with a result",
                &MODEL,
            )?,
            input_us: counters(r, "nv_inference_compute_input_duration_us", MOVING, &MODEL)?,
            output_us: counters(r, "nv_inference_compute_output_duration_us", MOVING, &MODEL)?,
            outcomes: counters(
                r,
                "downbeat_requests_total",
                "Requests by outcome: ok and late were answered with a result, ok inside the deadline",
                &["model", "version", "outcome"],
            )?,
            duration: histograms(
                r,
                "downbeat_request_duration_seconds",
                "Time from arrival to answer",
                exponential_buckets(0.000_5, 2.0, 16)?,
            )?,
            batch_rows: histograms(
                r,
                "downbeat_batch_rows",
                "Rows of each batch",
                exponential_buckets(1.0, 2.0, 12)?,
            )?,
            batches: counters(
                r,
                "downbeat_batches_total",
                "Batches by the reason for which they were started",
                &with_reason,
            )?,
            overrun: histograms(
                r,
                "downbeat_batch_overrun_seconds",
                "How much later than predicted batches came back",
                exponential_buckets(0.000_02, 2.0, 16)?,
            )?,
            slo: gauges(r, "downbeat_model_slo_seconds", "The model's latency objective", &MODEL)?,
            correction: gauges(
                r,
                "downbeat_profile_correction",
                "How much longer batches take than the profile says",
                &MODEL,
            )?,
            meters: Mutex::default(),
        };
        let device_labels = ["device", "class", "rank"];
        let device = DeviceFamilies {
            up: registered(
                r,
                IntGaugeVec::new(
                    Opts::new("downbeat_device_up", "Whether the device takes batches"),
                    &device_labels,
                )?,
            )?,
            busy: registered(
                r,
                CounterVec::new(
                    Opts::new(
                        "downbeat_device_busy_seconds_total",
                        "Time that the device computed; load is \
                        gathered on the lowest ranks",
                    ),
                    &["device", "class", "rank", "start"],
                )?,
            )?,
            present: registered(
                r,
                CounterVec::new(
                    Opts::new(
                        "downbeat_device_present_seconds_total",
                        "Time that the device was there; less the \
                        busy time, it is idle time",
                    ),
                    &device_labels,
                )?,
            )?,
            ranks: Mutex::default(),
        };
        let lag = HistogramOpts::new(
            "downbeat_scheduling_lag_seconds",
            "How much later than it was decided, or should have been, a batch was started",
        )
        .buckets(exponential_buckets(0.000_01, 2.0, 14)?);
        let rejected = counters(
            r,
            "downbeat_rejected_total",
            "Requests that failed before they reached a model, by reason",
            &["reason"],
        )?;
        for reason in Reason::ALL.map(Reason::label) {
            rejected.with_label_values(&[reason]);
        }
        Ok(Metrics {
            model: Arc::new(model),
            device,
            rejected,
            lag: registered(r, Histogram::with_opts(lag)?)?,
            needed: gauges(
                r,
                "downbeat_needed_devices",
                "Devices that the present traffic needs to meet its deadlines: the scaling signal",
                &["class"],
            )?,
            gpus_needed: gauges(
                r,
                "downbeat_gpus_needed",
                "Devices that there should be, a reserve for bursts included: what the autoscaler decides",
                &["class"],
            )?,
            gpus_idle: gauges(
                r,
                "downbeat_gpus_idle",
                "Whole devices that had next to nothing to do in the last minutes",
                &["class"],
            )?,
            rule: gauges(
                r,
                "downbeat_rule",
                "1 for the rule by which devices of a class are given away",
                &["class", "rule"],
            )?,
            decisions: Mutex::default(),
            restarts: counters(r, "downbeat_worker_restarts_total", "Workers started again", &["device"])?,
            classes: Mutex::default(),
            registry,
        })
    }

    /// The text of the metrics endpoint.
    pub(crate) fn render(&self) -> String {
        // Only a metric without a name cannot be encoded.
        TextEncoder::new().encode_to_string(&self.registry.gather()).unwrap_or_default()
    }

    pub(crate) fn model(&self, model: &str, version: &str, slo: Span) -> Arc<ModelMeter> {
        Arc::new(ModelMeter::new(Arc::clone(&self.model), model, version, slo))
    }

    pub(crate) fn device(&self, name: &str, class: &DeviceClass, rank: u32) -> Arc<DeviceMeter> {
        Arc::new(DeviceMeter::new(&self.device, name, class, rank))
    }

    /// A request failed before it was known which model it is for.
    pub(crate) fn rejected(&self, reason: Reason) {
        self.rejected.with_label_values(&[reason.label()]).inc();
    }

    pub(crate) fn scheduling_lag(&self, lag: Span) {
        self.lag.observe(lag.as_secs_f64());
    }

    /// A worker is looked after from now on: its restarts count from 0, so that a rate sees the first one.
    pub(crate) fn worker_kept(&self, device: &str) {
        self.restarts.with_label_values(&[device]);
    }

    pub(crate) fn worker_restarted(&self, device: &str) {
        self.restarts.with_label_values(&[device]).inc();
    }

    pub(crate) fn add_class(&self, id: ClassId, class: String) {
        self.follows(&class, Rule::default());
        self.classes.lock().unwrap_or_else(PoisonError::into_inner).push((id, class));
    }

    /// Every class of devices there ever was.
    pub(crate) fn classes(&self) -> Vec<(ClassId, String)> {
        self.classes.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Exports the devices that the traffic needs of a class.
    pub(crate) fn needs(&self, class: &str, devices: f64) {
        self.needed.with_label_values(&[class]).set(devices);
    }

    /// Exports how many devices of a class there should be, and keeps the reason for who asks.
    pub(crate) fn decided(&self, class: &str, decision: Decision) {
        self.gpus_needed.with_label_values(&[class]).set(decision.wanted.into());
        self.gpus_idle.with_label_values(&[class]).set(decision.idle.into());
        self.decisions.lock().unwrap_or_else(PoisonError::into_inner).insert(class.to_owned(), decision);
    }

    /// Exports which rule is followed on a class of devices.
    pub(crate) fn follows(&self, class: &str, followed: Rule) {
        // By name: the own rule has one name, whether it uses spare devices or not.
        let followed = followed.to_string();
        for rule in [Rule::ADAPTIVE].into_iter().chain(ALTERNATIVES).map(|rule| rule.to_string()) {
            let follows = f64::from(u8::from(rule == followed));
            self.rule.with_label_values(&[class, &rule]).set(follows);
        }
    }

    /// The last decision about every class, by its name.
    pub(crate) fn decisions(&self) -> BTreeMap<String, Decision> {
        self.decisions.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

fn registered<C: Collector + Clone + 'static>(registry: &Registry, collector: C) -> prometheus::Result<C> {
    registry.register(Box::new(collector.clone()))?;
    Ok(collector)
}

fn counters(
    registry: &Registry,
    name: &str,
    help: &str,
    labels: &[&str],
) -> prometheus::Result<IntCounterVec> {
    registered(registry, IntCounterVec::new(Opts::new(name, help), labels)?)
}

fn gauges(registry: &Registry, name: &str, help: &str, labels: &[&str]) -> prometheus::Result<GaugeVec> {
    registered(registry, GaugeVec::new(Opts::new(name, help), labels)?)
}

fn histograms(
    registry: &Registry,
    name: &str,
    help: &str,
    buckets: Vec<f64>,
) -> prometheus::Result<HistogramVec> {
    registered(registry, HistogramVec::new(HistogramOpts::new(name, help).buckets(buckets), &MODEL)?)
}
