//! Deadlines that can be met: are they?

use std::sync::Arc;
use std::time::{Duration, Instant};

use rand_distr::{Distribution, Exp};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;
use tokio::sync::{Mutex, mpsc};
use tokio::time::sleep_until;

use crate::client::{Answer, Connection, Limit, Protocol};
use crate::server::{EmulatedModel, Server};
use crate::spread::Spread;
use crate::table;

/// Four devices do up to 4 * 16 requests in 21 ms, 3047 rps.
const MODEL: EmulatedModel =
    EmulatedModel { name: "model", alpha_ms: 1.0, beta_ms: 5.0, max_batch: 16, slo_ms: 50.0 };
const DEADLINE: Duration = Duration::from_millis(50);
const LASTS: Duration = Duration::from_secs(8);
const CONNECTIONS: usize = 64;

#[derive(Default)]
struct Count {
    latency: Spread,
    late_by: Spread,
    in_time: usize,
    expired: usize,
    other: usize,
}

pub(crate) async fn print() {
    println!(
        "Deadlines that can be met: 50 ms, four devices, l(b) = b + 5 ms, Poisson arrivals, {} s each;\n\
         as the client sees it, waiting for one of its 64 connections included, ms\n",
        LASTS.as_secs()
    );
    let server = Server::start(&[MODEL], &["--device", "emulated:4"]);
    let header =
        ["load", "sent", "in time", "%", "late", "by p50", "by max", "expired", "other", "p50", "p99"];
    let mut table = table(&header);
    for protocol in Protocol::ALL {
        for rate_rps in [250.0, 500.0, 1000.0] {
            let mut count = run(&server, protocol, rate_rps).await;
            let sent = count.latency.len() + count.expired + count.other;
            let [p50, p99] = count.latency.shares([0.5, 0.99]);
            let late = count.late_by.len().to_string();
            let [by_p50, by_max] = count.late_by.shares([0.5, 1.0]);
            let share = format!("{:.2}", 100.0 * count.in_time as f64 / sent as f64);
            let numbers = [sent, count.in_time].map(|n| n.to_string());
            let [expired, other] = [count.expired, count.other].map(|n| n.to_string());
            let [sent, in_time] = numbers;
            let load = format!("{protocol}, {rate_rps} rps");
            table.add_row([load, sent, in_time, share, late, by_p50, by_max, expired, other, p50, p99]);
        }
    }
    println!("{table}\n");
}

/// Sends at random times, whether answers come or not.
async fn run(server: &Server, protocol: Protocol, rate_rps: f64) -> Count {
    let (arrivals, queue) = mpsc::unbounded_channel::<Instant>();
    let (queue, counts) = (Arc::new(Mutex::new(queue)), Arc::new(Mutex::new(Count::default())));
    let mut clients = Vec::new();
    for _ in 0..CONNECTIONS {
        let mut connection = Connection::open(server, protocol).await;
        let (queue, counts) = (Arc::clone(&queue), Arc::clone(&counts));
        clients.push(tokio::spawn(async move {
            loop {
                let Some(sent) = queue.lock().await.recv().await else { return };
                let answer = connection.infer(MODEL.name, Limit::Parameter(DEADLINE)).await;
                let latency = sent.elapsed();
                let mut counts = counts.lock().await;
                match answer {
                    Answer::Result { .. } => {
                        counts.latency.add(latency);
                        match latency.checked_sub(DEADLINE) {
                            Some(late) if late > Duration::ZERO => counts.late_by.add(late),
                            _ => counts.in_time += 1,
                        }
                    }
                    Answer::Expired => counts.expired += 1,
                    Answer::Other(_) => counts.other += 1,
                }
            }
        }));
    }
    let mut random = Xoshiro256PlusPlus::seed_from_u64(1);
    let gaps = Exp::new(rate_rps).expect("a rate");
    let mut next = Instant::now();
    let end = next + LASTS;
    while next < end {
        next += Duration::from_secs_f64(gaps.sample(&mut random));
        sleep_until(next.into()).await;
        // Timers tick in milliseconds, so a few requests come at once; their time counts from here.
        let _ = arrivals.send(Instant::now());
    }
    drop(arrivals);
    for client in clients {
        client.await.expect("a client");
    }
    std::mem::take(&mut *counts.lock().await)
}
