//! What is left to gain: each rule beside the best schedule of small cases.

use downbeat_sched::{Delays, DropRule, Rule, Scheduler};
use downbeat_sim::{Served, SmallCase};

const CASES: u64 = 3_000;

pub(crate) fn print() {
    println!("## Share of what a clairvoyant schedule serves\n");
    println!(
        "{CASES} small cases (4 to 7 requests, one or two models, one or two GPUs), each with the best schedule of all,\n\
         made with every arrival known in advance.\n"
    );
    println!("| policy | share |");
    println!("|---|---|");
    row("adaptive", Rule::ADAPTIVE);
    row("deferred", Rule::DEFERRED);
    row("deferred:drop=timeout", Rule::DEFERRED.with_drop(DropRule::Timeout));
    row("guarded:k=1:drop=timeout", Rule::guarded(1.0).with_drop(DropRule::Timeout));
    row("guarded:k=2:drop=timeout", Rule::guarded(2.0).with_drop(DropRule::Timeout));
    row("eager", Rule::EAGER);
    row("eager:drop=window", Rule::EAGER.with_drop(DropRule::Window));
    println!();
}

fn row(name: &str, rule: Rule) {
    let mut all = Served::default();
    for seed in 0..CASES {
        let served = SmallCase::random(seed).serve(&mut Scheduler::new(rule, Delays::default()));
        all.in_time += served.in_time;
        all.possible += served.possible;
    }
    println!("| {name} | {:.3} |", all.share());
}
