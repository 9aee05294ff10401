//! How far the estimate of needs is from what the simulator asks for.

use std::collections::BTreeMap;

use downbeat_day::subclusters::confirm;
use downbeat_subclusters::Method;

use crate::Bench;
use crate::workload::{Mix, problem, solved};

pub(crate) fn run(bench: &Bench) {
    println!("## The estimate beside the simulator\n");
    println!(
        "Random sub-clusters as the solver makes them: what it estimated, and the size that passes in simulation.\n"
    );
    let mut by_size: BTreeMap<u32, Vec<i64>> = BTreeMap::new();
    for (seed, &(models, busy)) in
        [(12usize, 2.0), (12, 4.0), (24, 6.0), (24, 12.0), (40, 16.0), (40, 30.0), (60, 45.0)]
            .iter()
            .enumerate()
    {
        for round in 0..4u64 {
            let weights_mib = (1_000.0, 30_000.0);
            let mix = Mix { models, busy_gpus: busy, spread: 3.0, weights_mib, gpus: None };
            let problem = problem(bench, mix, 100 * seed as u64 + round);
            let solution = solved(bench, &problem, Method::Heuristic, &|| false);
            let counts = confirm(&problem, &solution.subclusters, 1, &|| {}).expect("sizes");
            for (subcluster, count) in solution.subclusters.iter().zip(counts) {
                by_size
                    .entry(subcluster.count)
                    .or_default()
                    .push(i64::from(count) - i64::from(subcluster.count));
            }
        }
    }
    println!(
        "| estimated devices | sub-clusters | fewer in simulation | the same | one more | more | mean difference |"
    );
    println!("|---|---|---|---|---|---|---|");
    let row = |label: String, differences: &[i64]| {
        let count = |wanted: &dyn Fn(i64) -> bool| differences.iter().filter(|&&d| wanted(d)).count();
        let mean = differences.iter().sum::<i64>() as f64 / differences.len().max(1) as f64;
        println!(
            "| {label} | {} | {} | {} | {} | {} | {mean:+.2} |",
            differences.len(),
            count(&|d| d < 0),
            count(&|d| d == 0),
            count(&|d| d == 1),
            count(&|d| d > 1),
        );
    };
    let mut all = Vec::new();
    for (size, differences) in &by_size {
        row(size.to_string(), differences);
        all.extend_from_slice(differences);
    }
    row("all".to_owned(), &all);
    println!();
}
