//! What the server adds to the time on the device.

use std::time::{Duration, Instant};

use crate::client::{Answer, Connection, Limit, Protocol};
use crate::server::{EmulatedModel, Server};
use crate::spread::Spread;
use crate::table;

const MODEL: EmulatedModel =
    EmulatedModel { name: "model", alpha_ms: 0.0, beta_ms: 2.0, max_batch: 1, slo_ms: 100.0 };
const L1: Duration = Duration::from_millis(2);
const LASTS: Duration = Duration::from_secs(3);

pub(crate) async fn print() {
    println!(
        "What a request takes beyond l(1) = 2 ms, with --max-wait-ms 0 and eight devices, ms;\n\
         of that, the device's own: how much longer than l(1) it slept\n"
    );
    let server = Server::start(&[MODEL], &["--device", "emulated:8", "--max-wait-ms", "0"]);
    let mut table = table(&["clients", "n", "p50", "p90", "p99", "max", "device p50", "p99", "other"]);
    for protocol in Protocol::ALL {
        for clients in [1, 4] {
            let mut tasks = Vec::new();
            for _ in 0..clients {
                tasks.push(tokio::spawn(one_after_the_other(Connection::open(&server, protocol).await)));
            }
            let (mut beyond, mut device, mut other) = (Spread::default(), Spread::default(), 0);
            for task in tasks {
                let (more_beyond, more_device, more_other) = task.await.expect("a client");
                beyond.extend(more_beyond);
                device.extend(more_device);
                other += more_other;
            }
            let n = beyond.len().to_string();
            let [p50, p90, p99, max] = beyond.shares([0.5, 0.9, 0.99, 1.0]);
            let [device_p50, device_p99] = device.shares([0.5, 0.99]);
            let name = format!("{clients} over {protocol}");
            table.add_row([name, n, p50, p90, p99, max, device_p50, device_p99, other.to_string()]);
        }
    }
    println!("{table}\n");
}

async fn one_after_the_other(mut connection: Connection) -> (Spread, Spread, usize) {
    let (mut beyond, mut device, mut other) = (Spread::default(), Spread::default(), 0);
    let start = Instant::now();
    while start.elapsed() < LASTS {
        let sent = Instant::now();
        match connection.infer(MODEL.name, Limit::Slo).await {
            Answer::Result { busy } => {
                beyond.add(sent.elapsed().saturating_sub(L1));
                device.add(busy.saturating_sub(L1));
            }
            _ => other += 1,
        }
    }
    (beyond, device, other)
}
