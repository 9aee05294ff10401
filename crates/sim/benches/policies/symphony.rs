//! `deferred`, Shepherd and Nexus beside what Symphony's authors' own code reached.

use downbeat_sim::Span;

use crate::{goodput, load, policy};

/// Measured in real time on 8 emulated GPUs with l(b) = 1.082 b + 5.204 ms, 100 us of control delay, 50 us of data delay
/// per request: requests/s at 1 % bad. `deferred` kept 2 ms for the response, the others nothing.
const AUTHORS: [(&str, f64, f64, Option<f64>); 4] = [
    ("symphony-1model-slo100", 6740.0, 6500.0, None),
    ("symphony-1model-slo25", 4800.0, 4400.0, None),
    ("symphony-8model-slo100", 6060.0, 5800.0, None),
    ("symphony-8model-slo25", 3290.0, 2400.0, Some(1500.0)),
];

pub(crate) fn print(seeds: u32) {
    println!("## The same systems run in real time by Symphony's authors\n");
    println!(
        "Requests/s at 1 % bad; {seeds} seeds. Their Nexus follows its plan with only the GPUs that the mean rate\n\
         needs and little head room for Poisson arrivals (`nexus:headroom=1`); ours spreads the plan over all GPUs, which is\n\
         what an operator with idle GPUs would do, and is stronger for it.\n"
    );
    println!("| case | policy | authors | ours | difference |");
    println!("|---|---|---|---|---|");
    for (case, deferred, shepherd, nexus) in AUTHORS {
        let with_reserve = load(case);
        let mut without = with_reserve.clone();
        without.response_reserve = Span::ZERO;
        let rows = [
            (&with_reserve, "deferred", Some(deferred)),
            (&without, "shepherd", Some(shepherd)),
            (&without, "nexus", nexus),
            (&without, "nexus:headroom=1", nexus),
        ];
        for (scenario, name, authors) in rows {
            let Some(authors) = authors else { continue };
            let report = goodput(scenario, &[policy(name)], seeds);
            let ours = report.policies[name].goodput_rps;
            let difference = 100.0 * (ours / authors - 1.0);
            println!("| {case} | {name} | {authors:.0} | {ours:.0} | {difference:+.1} % |");
        }
    }
    println!();
}
