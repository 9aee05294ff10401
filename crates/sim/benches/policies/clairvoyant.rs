//! What is left to gain: each rule beside the best schedule of small cases.

use downbeat_sched::{
    Adaptive, Deferred, Delays, Eager, Guarded, Policy, Scheduler, SmallestId, TimeoutDrop, WindowDrop,
};
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
    row("adaptive", &Adaptive);
    row("deferred", &Deferred::<WindowDrop, SmallestId>::new());
    row("deferred:drop=timeout", &Deferred::<TimeoutDrop, SmallestId>::new());
    row("guarded:k=1:drop=timeout", &Guarded::<TimeoutDrop, SmallestId>::new(1.0));
    row("guarded:k=2:drop=timeout", &Guarded::<TimeoutDrop, SmallestId>::new(2.0));
    row("eager", &Eager::<TimeoutDrop, SmallestId>::new());
    row("eager:drop=window", &Eager::<WindowDrop, SmallestId>::new());
    println!();
}

fn row<P: Policy>(name: &str, policy: &P) {
    let mut all = Served::default();
    for seed in 0..CASES {
        let served = SmallCase::random(seed).serve(&mut Scheduler::new(policy.clone(), Delays::default()));
        all.in_time += served.in_time;
        all.possible += served.possible;
    }
    println!("| {name} | {:.3} |", all.share());
}
