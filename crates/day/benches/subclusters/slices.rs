//! 200 small services on MIG slices: one service per slice, and pooled on shared slices.

use std::fmt::Write;
use std::time::Instant;

use downbeat_day::subclusters::{plan, replay};
use downbeat_day::verify;
use downbeat_plan::{self as partition, Unsimulated, solvers};
use downbeat_profile::ProfileFile;
use downbeat_subclusters::{Epoch, Method, Problem};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::Bench;
use crate::workload::run as a_run;

const SERVICES: usize = 200;

/// A small service: its model, requests per second and SLO.
struct Small {
    model: String,
    rate_rps: f64,
    slo_ms: f64,
}

fn services(bench: &Bench, seed: u64) -> Vec<Small> {
    let measured = ProfileFile::read(bench.root.join("profiles/h200.csv")).expect("the profiles");
    let names: Vec<&str> = measured.models().collect();
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut drawn = Vec::new();
    while drawn.len() < SERVICES {
        let model = names[random.random_range(0..names.len())];
        let slo_ms = [50.0, 100.0, 200.0][random.random_range(0..3)];
        let Some(&(_, alone)) = measured.points(model, "1g").and_then(|points| points.first()) else {
            continue;
        };
        // From 1 to 20 % of a 1g slice, one request at a time.
        let busy = 0.01 * 20f64.powf(random.random_range(0.0..1.0f64));
        if alone * 4.0 < slo_ms {
            drawn.push(Small { model: model.to_owned(), rate_rps: busy * 1e3 / alone, slo_ms });
        }
    }
    drawn
}

pub(crate) fn run(bench: &Bench) {
    println!("## {SERVICES} small services on slices of H200s\n");
    println!(
        "Each keeps a 1g slice busy for 1 to 20 % of the time. One service per slice is planned by `downbeat plan` under the rule `staggered`.\n"
    );
    println!("| seed | division | sub-clusters | slices | GPUs | saved | seconds | services in SLO |");
    println!("|---|---|---|---|---|---|---|---|");
    for seed in 1..=3 {
        let services = services(bench, seed);
        let alone = one_per_slice(bench, &services, seed);
        for slices in [&["1g"][..], &["1g", "2g", "3g", "4g", "7g"][..]] {
            pooled(bench, &services, slices, alone, seed);
        }
    }
    println!();
}

fn one_per_slice(bench: &Bench, services: &[Small], seed: u64) -> u32 {
    let mut text = "gpu = \"H200-141GB\"\nprofiles = \"h200.csv\"\nrule = \"staggered\"\n".to_owned();
    for (index, Small { model, rate_rps, slo_ms }) in services.iter().enumerate() {
        let _ = writeln!(
            text,
            "[[service]]\nname = \"s{index}\"\nmodel = \"{model}\"\nrate_rps = {rate_rps:.3}\nslo_ms = {slo_ms}"
        );
    }
    let origin = bench.root.join("profiles/small.toml");
    let problem = partition::Problem::parse(&text, &origin, &Unsimulated).expect("a problem");
    let begin = Instant::now();
    let stop = || begin.elapsed().as_secs() > 60;
    let run = partition::Run { stop: &stop, on_progress: &|_| {}, backend: &bench.backend, seed: 1 };
    let plan = partition::plan(&problem, &solvers::Auto, &run, None).expect("a plan");
    let seconds = begin.elapsed().as_secs_f64();
    let replay = verify(&problem, &plan, 1, &|| false).expect("a replay");
    let slices: usize = plan.layout.iter().map(|gpu| gpu.instances.len()).sum();
    println!(
        "| {seed} | one service per slice | - | {slices} | {} | | {seconds:.1} | {} of {SERVICES} |",
        plan.gpus,
        replay.services.iter().filter(|service| service.passed).count()
    );
    plan.gpus
}

fn pooled(bench: &Bench, services: &[Small], slices: &[&str], alone: u32, seed: u64) {
    let mut text = format!("gpu = \"H200-141GB\"\nprofiles = \"h200.csv\"\nslices = {slices:?}\n");
    for (index, Small { model, rate_rps, slo_ms }) in services.iter().enumerate() {
        let _ = writeln!(
            text,
            "[[model]]\nname = \"s{index}\"\nmeasured = \"{model}\"\nrate_rps = {rate_rps:.3}\nslo_ms = {slo_ms}"
        );
    }
    let problem = Problem::parse(&text, &bench.root.join("profiles/small.toml")).expect("a problem");
    let stop = || false;
    let begin = Instant::now();
    let planned = plan(&problem, Epoch::default(), Method::Auto, &a_run(&bench.backend, &stop), true, &|| {})
        .expect("a plan");
    let seconds = begin.elapsed().as_secs_f64();
    let replays = replay(&problem, &planned.plan, 1).expect("a replay");
    let passed = replays.iter().flat_map(|replay| &replay.models).filter(|model| model.passed).count();
    let plan = &planned.plan;
    println!(
        "| {seed} | pooled on {} | {} | {} | {} | {} ({:.0} %) | {seconds:.1} | {passed} of {SERVICES} |",
        slices.join(", "),
        plan.subclusters.len(),
        plan.subclusters.iter().map(|subcluster| subcluster.count).sum::<u32>(),
        plan.gpus,
        alone - plan.gpus.min(alone),
        (1.0 - f64::from(plan.gpus) / f64::from(alone)) * 100.0
    );
}
