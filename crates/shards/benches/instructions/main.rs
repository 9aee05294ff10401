//! Instructions of the scheduler's parts, counted by callgrind: the same on any machine, so that a regression shows.
//!
//! `core` is a shard alone, from arrival to response. `shard_thread` is the shard with its thread around it: its turns,
//! queues and mailboxes. There requests come one in each turn, which is the worst case, or in groups, as they do when
//! the thread is busy. `make bench-instructions`. Each figure is for 10,000 requests, candidates or grants: the last
//! four digits are fractions.
//!
//! The authors' scheduler, on the other side of the comparison, takes 8,216 instructions for a request at a mean batch
//! of 80 and 5,807 at 14, on its model thread and without its generator; 956 for a candidate and 2,562 for a grant on
//! its matchmaker, and 128 for each model in every poll.

#![allow(missing_docs, unreachable_pub, reason = "the macros make public items")]

mod core;
mod matchmaker;
mod shard;

use gungraun::{
    Callgrind, EntryPoint, EventKind, LibraryBenchmarkConfig, library_benchmark, library_benchmark_group,
    main,
};

use core::Core;
use matchmaker::Matching;
use shard::Requests;

/// How many of whatever is counted.
const COUNT: u64 = 10_000;

/// Counts in functions of this name only, and not in those that it calls with `excluded` in their names; at most so
/// many instructions for each.
fn counting(function: &str, most: Option<u64>) -> LibraryBenchmarkConfig {
    let mut callgrind = Callgrind::with_args(["--toggle-collect=*excluded*"]);
    callgrind.entry_point(EntryPoint::Custom(format!("*{function}*")));
    if let Some(most) = most {
        callgrind.hard_limits([(EventKind::Ir, most * COUNT)]);
    }
    let mut config = LibraryBenchmarkConfig::default();
    config.tool(callgrind);
    config
}

#[library_benchmark(setup = Core::warm)]
#[bench::batch_80(args = (100.0, 40_000.0), config = counting("counted_request", Some(680)))]
#[bench::batch_14(args = (25.0, 40_000.0), config = counting("counted_request", Some(480)))]
fn core_per_request(mut core: Core) -> Core {
    core.run(COUNT);
    core
}

#[library_benchmark(setup = Requests::warm)]
#[bench::batch_80(args = (1, 100.0, 40_000.0, 1), config = counting("counted_turn", None))]
#[bench::batch_80_in_groups_of_4(args = (1, 100.0, 4_000_000.0, 4), config = counting("counted_turn", None))]
#[bench::batch_14(args = (1, 25.0, 40_000.0, 1), config = counting("counted_turn", None))]
#[bench::batch_14_in_groups_of_4(args = (1, 25.0, 4_000_000.0, 4), config = counting("counted_turn", None))]
#[bench::batch_14_on_100_models(args = (100, 25.0, 4_000_000.0, 1), config = counting("counted_turn", None))]
#[bench::batch_14_on_10000_models(args = (10_000, 25.0, 400_000_000.0, 1), config = counting("counted_turn", None))]
#[bench::slow_models(args = (1_000, 100.0, 200_000.0, 1), config = counting("counted_turn", None))]
fn shard_thread_per_request(mut requests: Requests) -> Requests {
    requests.run(COUNT);
    requests
}

#[library_benchmark(setup = Matching::warm)]
#[bench::m1_g1000(args = (1, 1_000), config = counting("counted_post", None))]
#[bench::m100_g1000(args = (100, 1_000), config = counting("counted_post", None))]
#[bench::m10000_g1000(args = (10_000, 1_000), config = counting("counted_post", None))]
#[bench::m10000_g50000(args = (10_000, 50_000), config = counting("counted_post", None))]
fn matchmaker_per_candidate(mut matching: Matching) -> Matching {
    matching.run_candidates(COUNT);
    matching
}

#[library_benchmark(setup = Matching::warm)]
#[bench::m1_g1000(args = (1, 1_000), config = counting("counted_grant", Some(640)))]
#[bench::m100_g1000(args = (100, 1_000), config = counting("counted_grant", None))]
#[bench::m10000_g1000(args = (10_000, 1_000), config = counting("counted_grant", None))]
#[bench::m10000_g50000(args = (10_000, 50_000), config = counting("counted_grant", None))]
fn matchmaker_per_grant(mut matching: Matching) -> Matching {
    matching.run_grants(COUNT);
    matching
}

library_benchmark_group!(
    name = instructions,
    benchmarks = [core_per_request, shard_thread_per_request, matchmaker_per_candidate, matchmaker_per_grant]
);

main!(library_benchmark_groups = instructions);
