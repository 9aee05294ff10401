//! Reports that look like real ones, for the tests: the roughest form that still draws true pictures.

use std::collections::BTreeMap;

use crate::{
    Execution, GoodputReport, GpuReport, LoadPoint, ModelReport, PolicyGoodput, RunDetail, RunReport,
};

/// Numbers that look random and are the same every time.
struct Noise(u64);

impl Noise {
    /// Uniform between 0 and 1.
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// A run of `models` models on `gpus` GPUs. `waste` is 0 for a policy that keeps its SLOs, 1 if it misses most.
pub(super) fn run(policy: &str, models: usize, gpus: usize, waste: f64) -> RunReport {
    let mut noise = Noise(policy.bytes().map(u64::from).sum());
    let slo_ms: Vec<f64> = (0..models).map(|i| 25.0 + 10.0 * (i % 8) as f64).collect();
    let reports: Vec<ModelReport> = (0..models).map(|i| model(i, slo_ms[i], waste, &mut noise)).collect();
    let offered: u64 = reports.iter().map(|m| m.offered).sum();
    let in_slo: u64 = reports.iter().map(|m| m.in_slo).sum();
    let busy: Vec<f64> = (0..gpus)
        .map(|gpu| (1.35 - gpu as f64 / gpus as f64 - 0.05 * noise.next()).clamp(0.0, 0.97))
        .collect();
    RunReport {
        policy: policy.to_owned(),
        seed: 1,
        offered_rps: offered as f64 / 12.0,
        in_slo_rps: in_slo as f64 / 12.0,
        bad_rate_worst: reports.iter().map(|m| m.bad_rate).fold(0.0, f64::max),
        gpus: GpuReport { count: gpus, used: busy.iter().filter(|b| **b > 0.4).count(), busy_fraction: busy },
        batches: offered / 9,
        requests_simulated: offered * 13 / 12,
        wall_s: 0.021,
        detail: RunDetail {
            batch_sizes: (0..models).map(|i| batch_sizes(8.0 + 3.0 * (i % 8) as f64, &mut noise)).collect(),
            latency_cdf: slo_ms.iter().map(|slo| latency_cdf(*slo, waste, &mut noise)).collect(),
            slo_ms,
            timeline: timeline(models, gpus, &mut noise),
            from_ms: 1000.0,
            notes: Vec::new(),
        },
        models: reports,
    }
}

fn model(index: usize, slo_ms: f64, waste: f64, noise: &mut Noise) -> ModelReport {
    let offered = (60_000.0 / (index as f64 + 1.0).powf(0.9)) as u64 + 500;
    let late = (offered as f64 * waste * 0.4 * noise.next()) as u64;
    let expired = (offered as f64 * (0.009 * noise.next() + waste * 0.6 * noise.next())) as u64;
    ModelReport {
        name: format!("vision/resnet50-v{index}"),
        offered,
        in_slo: offered - late - expired,
        late,
        expired,
        bad_rate: (late + expired) as f64 / offered as f64,
        p50_ms: slo_ms * 0.72,
        p99_ms: slo_ms * (0.97 + waste),
        mean_batch: 8.0 + 3.0 * (index % 8) as f64,
    }
}

fn batch_sizes(mean: f64, noise: &mut Noise) -> Vec<u64> {
    let height = |size: usize| (-((size as f64 - mean) / (mean / 3.0)).powi(2)).exp() * 900.0;
    (1..=64).map(|size| (height(size) * (0.9 + 0.2 * noise.next())) as u64).collect()
}

fn latency_cdf(slo_ms: f64, waste: f64, noise: &mut Noise) -> Vec<(f64, f64)> {
    let steep = 6.0 + 8.0 * noise.next();
    let end = slo_ms * (1.0 + waste * 2.0);
    (1..=400).map(|i| i as f64 / 400.0).map(|x| (end * x, 1.0 - (1.0 - x.powf(steep)).powf(1.5))).collect()
}

/// About 3,000 batches on 32 GPUs, back to back on the first, with gaps on the last.
fn timeline(models: usize, gpus: usize, noise: &mut Noise) -> Vec<Execution> {
    let mut all = Vec::new();
    for gpu in (0..gpus).filter(|_| models > 0) {
        let mut start_ms = 1000.0 + 12.0 * noise.next();
        while start_ms < 2400.0 {
            let model = (noise.next().powi(3) * models as f64) as u32;
            let batch = 4 + (noise.next() * 12.0) as u32;
            let end_ms = start_ms + 5.204 + 1.082 * f64::from(batch);
            all.push(Execution { gpu: gpu as u32, model, batch, start_ms, end_ms });
            start_ms = end_ms + (gpu as f64 / gpus as f64 - 0.4).max(0.0) * 60.0 * noise.next();
        }
    }
    all
}

/// A goodput report of six policies.
pub(super) fn goodput(models: usize, gpus: usize) -> GoodputReport {
    let fluid_bound_rps = 700.0 * gpus as f64;
    let ratios = [
        ("guarded", 0.93, "k = 2"),
        ("deferred", 0.90, "window drop, smallest id"),
        ("eager", 0.87, "timeout drop"),
        ("delayed", 0.61, "max_queue_delay = 2 ms, no queue timeout"),
        ("clockwork", 0.72, ""),
        ("nexus", 0.48, ""),
    ];
    let policy = |(name, ratio, settings): (&str, f64, &str)| {
        let goodput_rps = ratio * fluid_bound_rps;
        let by_seed_rps: Vec<f64> = {
            let mut noise = Noise(name.bytes().map(u64::from).sum());
            (0..5).map(|_| goodput_rps * (0.98 + 0.04 * noise.next())).collect()
        };
        let found = PolicyGoodput {
            goodput_rps,
            spread_rps: 0.04 * goodput_rps,
            ratio_to_bound: ratio,
            by_seed_rps,
            capped: false,
            settings: settings.to_owned(),
            curve: curve(fluid_bound_rps, ratio, gpus, name == "eager"),
            at_goodput: Some(RunReport {
                offered_rps: goodput_rps,
                in_slo_rps: 0.995 * goodput_rps,
                ..run(name, models, gpus, 0.0)
            }),
        };
        (name.to_owned(), found)
    };
    GoodputReport {
        scenario: "eight-vision-models".to_owned(),
        fluid_bound_rps,
        rarest_requests: 5000,
        notes: Vec::new(),
        policies: ratios.map(policy).into(),
    }
}

fn curve(bound: f64, ratio: f64, gpus: usize, work_conserving: bool) -> Vec<LoadPoint> {
    let coarse = (1..=7).map(|i| i as f64 * 0.15);
    let fine = (-4..=4).map(|i| ratio + f64::from(i) * 0.005);
    let mut loads: Vec<f64> = coarse.chain(fine).collect();
    loads.sort_by(f64::total_cmp);
    let point = |load: f64| {
        let bad_rate_worst = (0.01 * ((load - ratio) * 40.0).exp()).min(0.8);
        let share = if work_conserving { 1.0 } else { (load * 1.08).min(1.0) };
        LoadPoint {
            offered_rps: load * bound,
            bad_rate_worst: if bad_rate_worst < 2e-5 { 0.0 } else { bad_rate_worst },
            in_slo_rps: load * bound * (1.0 - bad_rate_worst),
            gpus_used: (share * gpus as f64).ceil() as usize,
        }
    };
    loads.into_iter().map(point).collect()
}

/// Every number missing or not a number.
pub(super) fn hollow_run() -> RunReport {
    let mut hollow = run("hollow", 3, 2, 0.0);
    hollow.offered_rps = f64::NAN;
    hollow.in_slo_rps = f64::INFINITY;
    hollow.bad_rate_worst = f64::NAN;
    for model in &mut hollow.models {
        (model.bad_rate, model.p50_ms, model.p99_ms, model.mean_batch) =
            (f64::NAN, f64::NAN, f64::NAN, f64::NAN);
    }
    hollow.gpus.busy_fraction = vec![f64::NAN, 0.0];
    hollow.detail.slo_ms = vec![f64::NAN, 0.0];
    hollow.detail.latency_cdf = vec![vec![], vec![(f64::NAN, 0.5)], vec![(3.0, 1.0)]];
    hollow.detail.batch_sizes = vec![vec![], vec![0, 0], vec![1]];
    let same = Execution { gpu: 70, model: 9, batch: 0, start_ms: 5.0, end_ms: 5.0 };
    hollow.detail.timeline = vec![same, Execution { start_ms: f64::NAN, ..same }];
    hollow
}

/// A goodput report in which nothing was found.
pub(super) fn hollow_goodput() -> GoodputReport {
    let nothing = PolicyGoodput {
        goodput_rps: f64::NAN,
        spread_rps: f64::NAN,
        ratio_to_bound: f64::NAN,
        by_seed_rps: vec![f64::NAN, 0.0],
        capped: true,
        settings: String::new(),
        curve: vec![LoadPoint {
            offered_rps: f64::NAN,
            bad_rate_worst: f64::NAN,
            in_slo_rps: 0.0,
            gpus_used: 0,
        }],
        at_goodput: None,
    };
    let zero = PolicyGoodput {
        goodput_rps: 0.0,
        by_seed_rps: vec![0.0],
        curve: vec![],
        at_goodput: Some(hollow_run()),
        ..nothing.clone()
    };
    let policies = BTreeMap::from([("nothing".to_owned(), nothing), ("zero".to_owned(), zero)]);
    GoodputReport {
        scenario: String::new(),
        fluid_bound_rps: f64::NAN,
        rarest_requests: 0,
        notes: vec!["nothing".into()],
        policies,
    }
}
