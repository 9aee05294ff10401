//! What jitter and delays cost `adaptive` and `deferred`.

use downbeat_sim::{Jitter, Scenario, Span};

use crate::{counted, goodput, load, policy};

const SIGMA: f64 = 0.1;
const DELAY: Span = Span::from_micros(200);
const POLICIES: [&str; 3] = ["adaptive", "deferred", "deferred:drop=timeout"];

pub(crate) fn print(seeds: u32) {
    println!("## adaptive and deferred under jitter and delays\n");
    println!(
        "Goodput in requests/s, and what of it is lost: by execution jitter (log-normal, sigma {SIGMA}, unknown to the\n\
         scheduler), by 200 us from the scheduler to the GPU, and by both. {}.\n",
        counted(seeds)
    );
    println!("| case | policy | none | jitter | delays | both | loses by jitter | by delays | by both |");
    println!("|---|---|---|---|---|---|---|---|---|");
    for name in ["one-model-8gpu", "eight-models-8gpu", "mixed-24-models-8gpu"] {
        let none = load(name);
        let jitter = Scenario { jitter: Jitter::Lognormal { sigma: SIGMA }, ..none.clone() };
        let delayed = |mut scenario: Scenario| {
            scenario.delays.control = DELAY;
            scenario
        };
        let scenarios = [delayed(none.clone()), delayed(jitter.clone())];
        let [delays, both] = scenarios;
        let specs = POLICIES.map(policy);
        let reports = [none, jitter, delays, both].map(|scenario| goodput(&scenario, &specs, seeds));
        for text in POLICIES {
            let [none, disturbed @ ..] = reports.each_ref().map(|report| report.policies[text].goodput_rps);
            let rates = disturbed.map(|rps| format!("{rps:.0}")).join(" | ");
            let losses = disturbed.map(|rps| format!("{:.1} %", 100.0 * (1.0 - rps / none))).join(" | ");
            println!("| {name} | {text} | {none:.0} | {rates} | {losses} |");
        }
    }
    println!();
}
