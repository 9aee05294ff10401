//! Prints by how much the emulated device oversleeps, beside what a plain sleep does.

#![expect(
    clippy::print_stdout,
    clippy::disallowed_types,
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "it measures real time and prints"
)]

use std::time::{Duration, Instant};

use downbeat_engine::{Model, emulated::EmulatedModel};
use downbeat_profile::LatencyProfile;

fn main() {
    for wanted_us in [100, 500, 2_000, 10_000] {
        let wanted = Duration::from_micros(wanted_us);
        let plain =
            std::thread::spawn(move || late_us(wanted, || std::thread::sleep(wanted))).join().unwrap();
        let profile = LatencyProfile::linear(0.0, wanted_us as f64 / 1e3, 1).unwrap();
        let mut model = EmulatedModel::new(profile, Vec::new());
        // A thread of its own: how punctual a thread is, its children inherit.
        let emulated = move || late_us(wanted, || drop(model.run(&[], 1).unwrap()));
        let emulated = std::thread::spawn(emulated).join().unwrap();
        println!("{wanted_us:>6} us: late by [median, p99] plain {plain:?} us, emulated {emulated:?} us");
    }
}

/// The median and the 99th percentile of how late `run` returns.
fn late_us(wanted: Duration, mut run: impl FnMut()) -> [u128; 2] {
    let mut late: Vec<u128> = (0..200)
        .map(|_| {
            let start = Instant::now();
            run();
            start.elapsed().saturating_sub(wanted).as_micros()
        })
        .collect();
    late.sort_unstable();
    [late[100], late[198]]
}
