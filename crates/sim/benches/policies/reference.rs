//! Our simulator beside an independent one.

use downbeat_sim::{BAD_RATE_MAX, PolicySpec, RunReport, Scenario, Span, Until};
use rayon::prelude::*;

use crate::{counted, goodput, load, policy};

/// The cases, with the fluid bound that the reference was divided by.
const CASES: [(&str, f64); 5] = [
    ("one-model-8gpu", 5599.0),
    ("one-model-32gpu", 23053.0),
    ("eight-models-8gpu", 5802.0),
    ("mixed-24-models-8gpu", 3455.0),
    ("h200-10-models-2gpu", 3365.0),
];

/// Per policy: the reference's share of the bound in each case, Poisson and bursty. Means of two or three seeds.
const REFERENCE: [(&str, [(f64, f64); 5]); 8] = [
    ("deferred:drop=timeout", [(0.88, 0.74), (0.94, 0.86), (0.88, 0.77), (0.37, 0.54), (0.01, 0.03)]),
    ("deferred:drop=window", [(0.92, 0.75), (0.98, 0.87), (0.83, 0.76), (0.36, 0.47), (0.01, 0.03)]),
    ("eager:drop=timeout", [(0.87, 0.74), (0.94, 0.86), (0.93, 0.87), (0.93, 0.95), (0.74, 0.91)]),
    ("eager:drop=window", [(0.70, 0.56), (0.49, 0.48), (0.93, 0.90), (0.95, 0.94), (0.74, 0.92)]),
    ("guarded:k=1:drop=timeout", [(0.89, 0.74), (0.95, 0.86), (0.92, 0.85), (0.94, 0.89), (0.71, 0.85)]),
    ("guarded:k=2:drop=timeout", [(0.90, 0.76), (0.96, 0.87), (0.93, 0.86), (0.94, 0.95), (0.71, 0.90)]),
    ("guarded:k=2:drop=window", [(0.85, 0.72), (0.96, 0.86), (0.93, 0.88), (0.95, 0.95), (0.74, 0.90)]),
    ("guarded:k=4:drop=timeout", [(0.87, 0.76), (0.95, 0.88), (0.94, 0.86), (0.94, 0.95), (0.73, 0.92)]),
];

/// Two simulators agree within this.
const TOLERANCE: f64 = 0.03;

/// The reference measured single runs of this length.
const SHORT_RUN_S: f64 = 5.0;
const SHORT_RUN_SEEDS: u64 = 20;

pub(crate) fn print(seeds: u32) {
    println!("## The same rules in an independent simulator\n");
    println!(
        "Goodput over the bound the reference used; {}, each run with 5,000 requests of the rarest model.\n\
         Where the two differ by more than {TOLERANCE}, the reference's own method is repeated: bisection over runs of\n\
         {SHORT_RUN_S} s, here with {SHORT_RUN_SEEDS} seeds (mean, and deviation of a single seed). Runs that short hold a\n\
         few hundred requests of each model, so that the worst of many models looks worse than it is, and a rule that\n\
         collapses for good once it is overtaken (timeout drop) has little time to be overtaken.\n",
        counted(seeds)
    );
    println!("| case | policy | reference | measured | difference | by the reference's method |");
    println!("|---|---|---|---|---|---|");
    let policies: Vec<PolicySpec> = REFERENCE.iter().map(|(text, _)| policy(text)).collect();
    for (index, (case, bound)) in CASES.iter().enumerate() {
        for bursty in [false, true] {
            let name = if bursty { format!("{case}-bursty") } else { (*case).to_owned() };
            let scenario = load(&name);
            let report = goodput(&scenario, &policies, seeds);
            for ((text, expected), policy) in REFERENCE.iter().zip(&policies) {
                let expected = if bursty { expected[index].1 } else { expected[index].0 };
                let measured = report.policies[&policy.to_string()].goodput_rps / bound;
                let difference = measured - expected;
                let repeated = if difference.abs() > TOLERANCE {
                    let run = |scenario: &Scenario, seed| {
                        let run = policy.run(scenario, seed, Until::Failure);
                        run.unwrap_or_else(|error| panic!("{error}"))
                    };
                    let (mean, deviation) = short_runs(&scenario, *bound, &run);
                    format!("{mean:.3} ± {deviation:.3}")
                } else {
                    String::new()
                };
                println!(
                    "| {name} | {text} | {expected:.2} | {measured:.3} | {difference:+.3} | {repeated} |"
                );
            }
        }
    }
    println!();
}

/// A policy, run on a scenario with a seed.
type Run<'a> = dyn Fn(&Scenario, u64) -> RunReport + Sync + 'a;

/// Mean and standard deviation over seeds of the share that a bisection over short runs finds.
fn short_runs(scenario: &Scenario, bound: f64, run: &Run<'_>) -> (f64, f64) {
    let knees: Vec<f64> =
        (0..SHORT_RUN_SEEDS).into_par_iter().map(|seed| bisect(scenario, bound, seed, run)).collect();
    let mean = knees.iter().sum::<f64>() / knees.len() as f64;
    let variance = knees.iter().map(|knee| (knee - mean).powi(2)).sum::<f64>() / (knees.len() - 1) as f64;
    (mean, variance.sqrt())
}

fn bisect(scenario: &Scenario, bound: f64, seed: u64, run: &Run<'_>) -> f64 {
    let (mut passes, mut fails) = (0.0, 1.3);
    while fails - passes > 0.003 {
        let middle = (passes + fails) / 2.0;
        let mut short = scenario.with_rate(middle * bound);
        short.duration = short.warmup + Span::from_secs_f64(SHORT_RUN_S);
        if run(&short, seed).bad_rate_worst <= BAD_RATE_MAX {
            passes = middle;
        } else {
            fails = middle;
        }
    }
    passes
}
