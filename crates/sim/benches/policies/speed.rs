//! How fast the simulator is, and that its memory does not grow with the run.

#![allow(clippy::disallowed_types, reason = "measures this machine")]

use std::time::Instant;

use downbeat_sim::{Span, Until};

use crate::{load, policy};

const REPEATS: usize = 5;

pub(crate) fn print() {
    println!("## Simulator speed, one core\n");
    println!(
        "| scenario | policy | virtual s | requests | million requests/s, median (range) | peak memory MiB |"
    );
    println!("|---|---|---|---|---|---|");
    for (name, text) in [
        ("one-model-8gpu", "deferred"),
        ("one-model-8gpu", "guarded"),
        ("eight-models-8gpu", "guarded"),
        ("zipf-100-models-32gpu", "guarded"),
        ("h200-54-models-16gpu", "guarded"),
    ] {
        for seconds in [100.0, 1000.0] {
            let mut scenario = load(name);
            scenario.duration = Span::from_secs_f64(seconds);
            let mut requests = 0;
            let mut rates: Vec<f64> = (0..REPEATS)
                .map(|_| {
                    let begin = Instant::now();
                    let run =
                        policy(text).run(&scenario, 1, Until::End).unwrap_or_else(|error| panic!("{error}"));
                    requests = run.requests_simulated;
                    requests as f64 / begin.elapsed().as_secs_f64() / 1e6
                })
                .collect();
            rates.sort_by(f64::total_cmp);
            let (least, median, most) = (rates[0], rates[REPEATS / 2], rates[REPEATS - 1]);
            println!(
                "| {name} | {text} | {seconds:.0} | {requests} | {median:.1} ({least:.1} to {most:.1}) | {} |",
                peak_memory_mib().map_or_else(|| "?".to_owned(), |mib| format!("{mib:.0}"))
            );
        }
    }
    println!(
        "\nPeak memory is that of the whole process so far: it must not rise between 100 s and 1,000 s."
    );
}

/// From the kernel's accounts; only Linux keeps them there.
fn peak_memory_mib() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.trim().strip_suffix("kB")?.trim().parse::<f64>().ok()? / 1024.0)
}
