//! The heuristic beside the optimum, in the exact solver's range.

use std::time::{Duration, Instant};

use downbeat_subclusters::Method;

use crate::Bench;
use crate::workload::{Mix, problem, solved};

/// How long the exact solver may take for an instance.
const LIMIT: Duration = Duration::from_secs(30);
const ROUNDS: u64 = 10;

pub(crate) fn run(bench: &Bench) {
    println!("## The heuristic beside the optimum\n");
    println!(
        "Devices by the estimate; {ROUNDS} random instances a row; {} s at most for the exact solver.\n",
        LIMIT.as_secs()
    );
    println!(
        "| models | busy GPUs | proved | mean GPUs | heuristic above the optimum, mean | worst | heuristic s, mean | exact s, mean |"
    );
    println!("|---|---|---|---|---|---|---|---|");
    let (mut all_above, mut all_proved) = (Vec::new(), 0);
    for (models, busy) in [(10, 4.0), (20, 6.0), (20, 20.0), (30, 10.0), (30, 30.0), (40, 20.0), (50, 20.0)] {
        let (mut above, mut proved, mut gpus, mut seconds) = (Vec::new(), 0, 0, [0.0; 2]);
        for seed in 0..ROUNDS {
            let weights_mib = (2_000.0, 60_000.0);
            let mix = Mix { models, busy_gpus: busy, spread: 3.0, weights_mib, gpus: None };
            let problem = problem(bench, mix, seed);
            let begin = Instant::now();
            let quick = solved(bench, &problem, Method::Heuristic, &|| false);
            seconds[0] += begin.elapsed().as_secs_f64();
            let begin = Instant::now();
            let best = solved(bench, &problem, Method::Exact, &|| begin.elapsed() > LIMIT);
            seconds[1] += begin.elapsed().as_secs_f64();
            proved += usize::from(best.units == best.bound_units);
            // Against the bound where the optimum is not known: the heuristic is at most so far off.
            above.push(quick.units as f64 / best.bound_units.max(1) as f64 - 1.0);
            gpus += best.units;
        }
        let mean = |sum: f64| sum / ROUNDS as f64;
        println!(
            "| {models} | {busy} | {proved} of {ROUNDS} | {:.1} | {:.2} % | {:.1} % | {:.2} | {:.2} |",
            mean(gpus as f64),
            mean(above.iter().sum::<f64>()) * 100.0,
            above.iter().copied().fold(0.0, f64::max) * 100.0,
            mean(seconds[0]),
            mean(seconds[1]),
        );
        all_above.extend(above);
        all_proved += proved;
    }
    let mean = all_above.iter().sum::<f64>() / all_above.len() as f64;
    let optimal = all_above.iter().filter(|above| **above <= 0.0).count();
    println!(
        "\nAll: {all_proved} of {} proved; the heuristic is optimal in {optimal} and {:.2} % above the optimum (or the bound) on average.\n",
        all_above.len(),
        mean * 100.0
    );
}
