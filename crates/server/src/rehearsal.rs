//! The whole server in one process under virtual time, with everything that can go wrong, drawn from a seed.
//!
//! Real: both frontends with their protocols, the service behind them, the dispatcher with the scheduler, the frames
//! between server and workers. Played: the clock, the clients, the network and the workers. Nothing sleeps and nothing
//! runs beside anything else, so that a seed always gives the same run. To see one again:
//!
//! ```text
//! DOWNBEAT_SEED=4711 cargo test -p downbeat-server rehearsal -- --nocapture
//! ```

mod client;
mod stage;
mod worker;

use std::sync::atomic::{AtomicU64, Ordering};

use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use stage::Stage;

/// How many seeds are tried.
const SEEDS: u64 = 2_000;

/// What may happen in a run.
#[derive(Clone, Debug)]
struct Play {
    workers: usize,
    devices_per_worker: usize,
    requests: usize,
    /// The requests come within so many milliseconds.
    over_ms: u64,
    /// How often a worker dies, hangs, or leaves for a while.
    deaths: usize,
    hangs: usize,
    leaves: usize,
    /// How often models are loaded anew.
    reloads: usize,
    /// How often the server stands still, as a process does that is stopped, for up to two seconds.
    standstills: usize,
    /// The chance that a batch fails, that a device takes up to ten times as long, that a client goes away.
    failing: f64,
    slow: f64,
    leaving: f64,
    /// How long a message takes between server and worker, and how late timers are, at most, in microseconds.
    network_us: u64,
    timers_us: u64,
}

impl Play {
    /// Nothing goes wrong.
    fn calm(random: &mut Xoshiro256PlusPlus) -> Play {
        Play {
            workers: random.random_range(1..=3),
            devices_per_worker: random.random_range(1..=4),
            requests: random.random_range(1..=40),
            over_ms: random.random_range(1..=300),
            deaths: 0,
            hangs: 0,
            leaves: 0,
            reloads: 0,
            standstills: 0,
            failing: 0.0,
            slow: 0.0,
            leaving: 0.0,
            network_us: 0,
            timers_us: 0,
        }
    }

    /// Some of what can go wrong does.
    fn eventful(random: &mut Xoshiro256PlusPlus) -> Play {
        let some = |random: &mut Xoshiro256PlusPlus, most: usize| {
            if random.random_bool(0.5) { random.random_range(0..=most) } else { 0 }
        };
        let chance = |random: &mut Xoshiro256PlusPlus| {
            if random.random_bool(0.5) { random.random_range(0.0..0.4) } else { 0.0 }
        };
        Play {
            deaths: some(random, 4),
            hangs: some(random, 2),
            leaves: some(random, 2),
            reloads: some(random, 3),
            standstills: some(random, 2),
            failing: chance(random),
            slow: chance(random),
            leaving: chance(random),
            network_us: some(random, 5_000) as u64,
            timers_us: some(random, 5_000) as u64,
            ..Play::calm(random)
        }
    }
}

/// Plays one run; panics where something is wrong.
fn play(seed: u64) -> Vec<String> {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    let play = if seed.is_multiple_of(4) { Play::calm(&mut random) } else { Play::eventful(&mut random) };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    runtime.block_on(async { Stage::new(play, random).run() })
}

#[test]
fn whatever_happens_every_request_is_answered_once_with_its_own_answer() {
    if let Some(seed) = std::env::var("DOWNBEAT_SEED").ok().and_then(|seed| seed.parse().ok()) {
        for line in play(seed) {
            println!("{line}");
        }
        return;
    }
    let next = AtomicU64::new(0);
    let play_some = || {
        let mut seeds =
            std::iter::repeat_with(|| next.fetch_add(1, Ordering::Relaxed)).take_while(|&it| it < SEEDS);
        seeds.find(|&seed| std::panic::catch_unwind(|| play(seed)).is_err())
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let wrong = std::thread::scope(|scope| {
        let players: Vec<_> = (0..threads).map(|_| scope.spawn(play_some)).collect();
        players.into_iter().filter_map(|player| player.join().unwrap()).min()
    });
    if let Some(seed) = wrong {
        panic!("see it again: DOWNBEAT_SEED={seed} cargo test -p downbeat-server rehearsal -- --nocapture");
    }
}

#[test]
fn a_seed_always_gives_the_same_run() {
    for seed in 0..40 {
        assert_eq!(play(seed), play(seed), "seed {seed}");
    }
}
