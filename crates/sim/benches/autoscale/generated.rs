//! Days that nobody has tuned anything on: their shape, their models and what goes wrong are drawn at random.

use std::fmt::Write;
use std::path::Path;
use std::sync::Arc;

use downbeat_sched::{GpuId, LatencyProfile, Priority};
use downbeat_sim::{Arrival, Autoscale, Fault, GpuClass, Jitter, Model, RateTrace, Scenario, Span};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

const DAY_S: u64 = 86_400;

/// A trace has a piece for every so many seconds.
const PIECE_S: u64 = 300;

/// How much work there is in the mean over the day, in GPUs.
const MEAN_GPUS: f64 = 12.0;

/// A day of one or two humps, 3 to 6 times as high as its night, two surges, a failure of one or two GPUs, and 8 to 24
/// models of different speeds and objectives.
pub(crate) fn day(seed: u64) -> Scenario {
    let random = &mut Xoshiro256PlusPlus::seed_from_u64(seed);
    let fold = random.random_range(3.0..6.0);
    let humps: Vec<(f64, f64, f64)> = (0..random.random_range(1..=2))
        .map(|_| {
            (random.random_range(8.0..22.0), random.random_range(2.0..4.0), random.random_range(0.6..1.0))
        })
        .collect();
    let surges: Vec<(u64, u64, f64)> = (0..2)
        .map(|_| {
            let from = random.random_range(2..22) * 3_600;
            (from, from + random.random_range(900..3_600), random.random_range(1.3..1.8))
        })
        .collect();
    let calm = Arc::new(trace(fold, &humps, &surges[..1]));
    let lively = Arc::new(trace(fold, &humps, &surges));
    let models: Vec<Model> = (0..random.random_range(8..=24))
        .map(|number| {
            let (alpha_ms, beta_ms) = (random.random_range(8.0..40.0), random.random_range(40.0..160.0));
            let profile = LatencyProfile::linear(alpha_ms, beta_ms, 64).expect("coefficients above 0");
            let slo_ms = (alpha_ms + beta_ms) * random.random_range(4.0..9.0);
            Model {
                name: format!("model-{number}"),
                slo: Span::from_millis_f64(slo_ms),
                share: random.random_range(0.3..3.0),
                profiles: vec![Some(profile)],
                priority: Priority::default(),
                arrival: Arrival::Trace(Arc::clone(if number % 4 == 3 { &lively } else { &calm })),
            }
        })
        .collect();
    // Enough to begin with: a run that starts short of GPUs says nothing about scaling.
    let gpus = (1.25 * MEAN_GPUS * calm.pieces()[0].rate / calm.mean_rate()).ceil() as u32 + 1;
    let at = Span::from_secs_f64(random.random_range(1.0..23.0) * 3_600.0);
    let faults = (0..random.random_range(1..=2)).map(|gpu| Fault { gpu: GpuId(gpu), at }).collect();
    let settings = downbeat_scale::Settings::between(2, 80).expect("2 is less than 80");
    scaled(Scenario {
        subclusters: Vec::new(),
        name: format!("generated day {seed}"),
        classes: vec![GpuClass { name: "gpu".to_owned(), count: gpus }],
        duration: Span::from_millis(DAY_S * 1_000),
        warmup: Span::from_millis(1_000),
        seed,
        delays: downbeat_sched::Delays { control: Span::ZERO, data: Span::ZERO },
        rule: downbeat_sched::Rule::ADAPTIVE,
        response_reserve: Span::ZERO,
        response: None,
        jitter: Jitter::None,
        total_rps: 1.0,
        models,
        faults,
        autoscale: Some(Autoscale { interval: Span::from_millis(5_000), settings }),
    })
}

/// The scenario at the rate that keeps [`MEAN_GPUS`] busy with batches of a third of each objective.
fn scaled(mut scenario: Scenario) -> Scenario {
    let shares: f64 = scenario.models.iter().map(|model| model.share).sum();
    let mut gpus_per_rps = 0.0;
    for model in &mut scenario.models {
        model.share /= shares;
        let Some(profile) = &model.profiles[0] else { continue };
        let batch = (1..=64).take_while(|&batch| profile.latency(batch) * 3 <= model.slo).last().unwrap_or(1);
        gpus_per_rps += model.share * profile.latency(batch).as_secs_f64() / f64::from(batch);
    }
    scenario.with_rate(MEAN_GPUS / gpus_per_rps)
}

/// Humps over a floor of 1, and from time to time more.
fn trace(fold: f64, humps: &[(f64, f64, f64)], surges: &[(u64, u64, f64)]) -> RateTrace {
    let height = |hour: f64| -> f64 {
        let hump = |&(middle, width, share): &(f64, f64, f64)| {
            let away = (hour - middle).abs().min(24.0 - (hour - middle).abs());
            share * (-0.5 * (away / width).powi(2)).exp()
        };
        humps.iter().map(hump).sum()
    };
    let heights: Vec<f64> = (0..24 * 12).map(|twelfth| height(f64::from(twelfth) / 12.0)).collect();
    let highest = heights.iter().copied().fold(0.0, f64::max);
    let lowest = heights.iter().copied().fold(highest, f64::min);
    let mut csv = "time_s,rate\n".to_owned();
    for at in (0..=DAY_S).step_by(PIECE_S as usize) {
        let rise: f64 =
            surges.iter().filter(|(from, to, _)| (*from..*to).contains(&at)).map(|s| s.2).product();
        let rate = (1.0 + (fold - 1.0) * (height(at as f64 / 3_600.0) - lowest) / (highest - lowest)) * rise;
        let _ = writeln!(csv, "{at},{rate:.4}");
    }
    RateTrace::parse(&csv, Path::new("generated")).expect("a trace as it should be")
}
