//! Random problems, out of measured profiles.

use std::fmt::Write;

use downbeat_milp::Backend;
use downbeat_profile::ProfileFile;
use downbeat_subclusters::{Epoch, Method, Problem, Run};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::Bench;

/// What kind of models a problem has.
#[derive(Clone, Copy)]
pub(crate) struct Mix {
    pub(crate) models: usize,
    /// The GPUs that all models together keep busy, roughly.
    pub(crate) busy_gpus: f64,
    /// The spread of the models' shares of that: the standard deviation of their logarithm is about a third of it.
    pub(crate) spread: f64,
    /// The least and the most weights, in MiB; uniform in the logarithm.
    pub(crate) weights_mib: (f64, f64),
    pub(crate) gpus: Option<u32>,
}

/// A problem of measured models with random rates, objectives and weights on whole H200s.
pub(crate) fn problem(bench: &Bench, mix: Mix, seed: u64) -> Problem {
    let measured = ProfileFile::read(bench.root.join("profiles/h200.csv")).expect("the profiles");
    let names: Vec<&str> = measured.models().collect();
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    let draw: Vec<f64> = (0..mix.models).map(|_| (random.random_range(0.0..mix.spread)).exp()).collect();
    let sum: f64 = draw.iter().sum();
    let mut text = "gpu = \"H200-141GB\"\nprofiles = \"h200.csv\"\n".to_owned();
    if let Some(gpus) = mix.gpus {
        let _ = writeln!(text, "gpus = {gpus}");
    }
    for (index, share) in draw.iter().enumerate() {
        let (name, slo_ms, rate) = loop {
            let name = names[random.random_range(0..names.len())];
            let points = measured.points(name, "7g").unwrap_or_default();
            let slo_ms = [20.0, 30.0, 50.0, 100.0, 200.0][random.random_range(0..5)];
            let Some(&(_, alone)) = points.first().filter(|(_, alone)| alone * 3.0 < slo_ms) else {
                continue;
            };
            // What a batch of a third of the SLO costs each request.
            let costs = points.iter().filter(|(_, ms)| *ms <= slo_ms / 3.0).map(|(b, ms)| ms / f64::from(*b));
            break (name, slo_ms, 1e3 * mix.busy_gpus * share / sum / costs.fold(alone, f64::min));
        };
        let (least, most) = mix.weights_mib;
        let weights = least * (most / least).powf(random.random_range(0.0..1.0f64));
        let _ = writeln!(
            text,
            "[[model]]\nname = \"{name}-{index}\"\nmeasured = \"{name}\"\nrate_rps = {rate:.3}\nslo_ms = {slo_ms}\n\
             weights_mib = {weights:.0}\nactivation_mib = {:.0}",
            500.0 + weights * 0.2
        );
    }
    let origin = bench.root.join(format!("profiles/{}-models-{seed}.toml", mix.models));
    Problem::parse(&text, &origin).expect("a problem")
}

/// The previous epoch's problem with other rates: each model's changes by up to this factor, up or down.
pub(crate) fn another_day(problem: &Problem, factor: f64, seed: u64) -> Problem {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut problem = problem.clone();
    for model in &mut problem.models {
        model.rate_rps *= factor.powf(random.random_range(-1.0..1.0f64));
    }
    problem
}

/// Runs without a limit of time.
pub(crate) fn solved(
    bench: &Bench,
    problem: &Problem,
    method: Method,
    stop: &(dyn Fn() -> bool + Sync),
) -> downbeat_subclusters::Solution {
    let run = Run { stop, backend: &bench.backend, seed: 1, on_progress: &|_, _, _| {} };
    downbeat_subclusters::solve(problem, Epoch::default(), method, &run).expect("a solution")
}

/// A run for [`downbeat_day::subclusters::plan`].
pub(crate) fn run<'a>(backend: &'a Backend, stop: &'a (dyn Fn() -> bool + Sync)) -> Run<'a> {
    Run { stop, backend, seed: 1, on_progress: &|_, _, _| {} }
}
