use downbeat_mig::Catalogue;
use downbeat_transition::{Driver, Options, plan};
mod exhaustive;
mod random;
use exhaustive::{Answer, Exhaustive};
use rand::RngExt;
use random::Random;

fn main() {
    let n: u64 = std::env::args().filter_map(|a| a.parse().ok()).next().unwrap_or(100);
    let catalogue = Catalogue::builtin();
    let gpu = catalogue.find("H200").unwrap();
    small(n * 5, &catalogue);
    if n < 8 {
        return;
    }
    for driver in [Driver::Nvml, Driver::MigParted] {
        for mode in ["equal", "free", "rearranged", "holes"] {
            let mut spares = [0usize; 8];
            let (mut steps, mut bound, mut ratio, mut time) = (0, 0, 0.0, 0f64);
            let mut worst = 0f64;
            for seed in 0..n {
                let mut pick = Random::new(gpu, 1, seed + 77);
                let a = pick.rng.random_range(1..=50u32);
                let b = if mode == "free" { pick.rng.random_range(1..=50u32) } else { a };
                let services = pick.rng.random_range(1..=30usize.min(a.min(b) as usize * 1));
                let mut random = Random::new(gpu, services, seed);
                let hole = if mode == "holes" { 0.15 } else { 0.0 };
                let from = random.layout(a, hole);
                let to = if mode == "rearranged" { random.rearranged(&from) } else { random.layout(b, hole) };
                let t = std::time::Instant::now();
                let found = plan(&from, &to, &catalogue, &Options { driver, ..Options::default() })
                    .unwrap_or_else(|e| panic!("seed {seed}: {e}"));
                let took = t.elapsed().as_secs_f64();
                time += took;
                worst = worst.max(took);
                spares[found.spares.len().min(7)] += 1;
                steps += found.steps.len();
                bound += found.lower_bound;
                ratio += found.steps.len() as f64 / found.lower_bound.max(1) as f64;
            }
            println!(
                "{driver:?} {mode}: spares {spares:?} steps {steps} bound {bound} ratio {:.3} time avg {:.3} max {worst:.3}",
                ratio / n as f64,
                time / n as f64
            );
        }
    }
}

fn small(n: u64, catalogue: &Catalogue) {
    let gpu = catalogue.find("H200").unwrap();
    for mode in ["equal", "rearranged"] {
        let (mut same, mut worse, mut unknown, mut zero) = (0, 0, 0, 0);
        for seed in 0..n {
            let mut pick = Random::new(gpu, 1, seed + 77);
            let a = pick.rng.random_range(1..=4u32);
            let services = pick.rng.random_range(1..=4usize.min(a as usize));
            let mut random = Random::new(gpu, services, seed);
            let from = random.layout(a, 0.1);
            let to = if mode == "rearranged" { random.rearranged(&from) } else { random.layout(a, 0.1) };
            let found = plan(&from, &to, &catalogue, &Options::default())
                .unwrap_or_else(|e| panic!("seed {seed}: {e}"));
            let k = found.spares.len();
            if k == 0 {
                zero += 1;
                continue;
            }
            match Exhaustive::new(gpu, &from, &to, k - 1).answer(20_000) {
                Answer::Reachable => {
                    worse += 1;
                    println!("  {mode} seed {seed}: planner {k}, search fewer, gpus {a} services {services}");
                }
                Answer::Unreachable => same += 1,
                Answer::Unknown => unknown += 1,
            }
        }
        println!("small {mode}: zero {zero} same {same} worse {worse} unknown {unknown}");
    }
}
