//! How many requests a second, and what each costs.

use std::time::{Duration, Instant};

use crate::client::{Answer, Connection, Limit, Protocol};
use crate::server::{EmulatedModel, Server};
use crate::spread::Spread;
use crate::{cpu, table};

/// So fast that the devices are not what limits.
const MODEL: EmulatedModel =
    EmulatedModel { name: "model", alpha_ms: 0.01, beta_ms: 0.05, max_batch: 64, slo_ms: 100.0 };
const LASTS: Duration = Duration::from_secs(5);

pub(crate) async fn print() {
    println!(
        "Requests per second at saturation: eight devices, l(b) = 0.01 b + 0.05 ms, --max-wait-ms 0; latency in ms;\n\
         processor time of server and worker per request, in microseconds, by thread\n"
    );
    let server = Server::start(&[MODEL], &["--device", "emulated:8", "--max-wait-ms", "0"]);
    let mut table = table(&["clients", "rps", "p50", "p99", "other", "CPU", "of that"]);
    for protocol in Protocol::ALL {
        for clients in [1, 16, 32] {
            let mut connections = Vec::new();
            for _ in 0..clients {
                connections.push(Connection::open(&server, protocol).await);
            }
            let before = cpu::by_thread(server.id());
            let tasks: Vec<_> = connections
                .into_iter()
                .map(|connection| tokio::spawn(one_after_the_other(connection)))
                .collect();
            let (mut latency, mut other) = (Spread::default(), 0);
            for task in tasks {
                let (more, more_other) = task.await.expect("a client");
                latency.extend(more);
                other += more_other;
            }
            let n = latency.len();
            let mut spent: Vec<(String, f64)> = cpu::by_thread(server.id())
                .into_iter()
                .map(|(name, ms)| {
                    let used = ms - before.get(&name).copied().unwrap_or_default();
                    (name, used * 1e3 / n as f64)
                })
                .collect();
            spent.sort_by(|a, b| b.1.total_cmp(&a.1));
            let all: f64 = spent.iter().map(|(_, us)| us).sum();
            let parts: Vec<String> = spent
                .iter()
                .filter(|(_, us)| *us >= 0.5)
                .map(|(name, us)| format!("{name} {us:.0}"))
                .collect();
            let [p50, p99] = latency.shares([0.5, 0.99]);
            let rps = format!("{:.0}", n as f64 / LASTS.as_secs_f64());
            let name = format!("{clients} over {protocol}");
            table.add_row([name, rps, p50, p99, other.to_string(), format!("{all:.0}"), parts.join(", ")]);
        }
    }
    println!("{table}\n");
}

async fn one_after_the_other(mut connection: Connection) -> (Spread, usize) {
    let (mut latency, mut other) = (Spread::default(), 0);
    let start = Instant::now();
    while start.elapsed() < LASTS {
        let sent = Instant::now();
        match connection.infer(MODEL.name, Limit::Slo).await {
            Answer::Result { .. } => latency.add(sent.elapsed()),
            _ => other += 1,
        }
    }
    (latency, other)
}
