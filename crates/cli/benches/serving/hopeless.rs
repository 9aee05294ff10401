//! Deadlines that cannot be met: how long after that could be known are they answered?

use std::time::{Duration, Instant};

use tokio::time::sleep;

use crate::client::{Answer, Connection, Limit, Protocol};
use crate::server::{EmulatedModel, Server};
use crate::spread::Spread;
use crate::table;

/// l(1) = 10 ms.
const MODEL: EmulatedModel =
    EmulatedModel { name: "model", alpha_ms: 1.0, beta_ms: 9.0, max_batch: 8, slo_ms: 1000.0 };
/// Keeps the only device busy.
const BLOCKER: EmulatedModel =
    EmulatedModel { name: "blocker", alpha_ms: 0.0, beta_ms: 150.0, max_batch: 1, slo_ms: 1000.0 };

const SHORT: Duration = Duration::from_millis(5);
const LONG: Duration = Duration::from_millis(50);
/// A request with the longer deadline could start until then.
const LAST_CHANCE_MS: f64 = 40.0;

pub(crate) async fn print() {
    println!(
        "Deadlines that cannot be met (one device, l(1) = 10 ms), ms from when it could be known to the answer\n"
    );
    // Nothing is kept back of a deadline, so that the last moment is the deadline less l(1).
    let arguments = [
        "--device",
        "emulated:1",
        "--max-wait-ms",
        "0",
        "--response-reserve-us",
        "0",
        "--control-delay-us",
        "0",
    ];
    let server = Server::start(&[MODEL, BLOCKER], &arguments);
    let mut table = table(&["case", "knowable", "n", "p50", "p99", "max", "other"]);
    for protocol in Protocol::ALL {
        let mut connection = Connection::open(&server, protocol).await;
        let mut trip = Spread::default();
        for _ in 0..1000 {
            let sent = Instant::now();
            connection.live().await;
            trip.add(sent.elapsed());
        }
        row(&mut table, format!("{protocol}, nothing but the round trip"), "-", trip, 0);

        let limits: &[(&str, Limit)] = match protocol {
            Protocol::Http => &[("a timeout", Limit::Parameter(SHORT))],
            Protocol::Grpc => {
                &[("a timeout", Limit::Parameter(SHORT)), ("a gRPC deadline", Limit::Call(SHORT))]
            }
        };
        for (name, limit) in limits {
            let (mut delay, mut other) = (Spread::default(), 0);
            for _ in 0..1000 {
                let sent = Instant::now();
                match connection.infer(MODEL.name, *limit).await {
                    Answer::Expired => delay.add(sent.elapsed()),
                    _ => other += 1,
                }
            }
            row(&mut table, format!("{protocol}, {name} of 5 ms"), "on arrival", delay, other);
        }
        let (delay, other) = behind_a_blocker(&server, protocol, &mut connection).await;
        row(&mut table, format!("{protocol}, 50 ms, device busy for 140"), "after 40 ms", delay, other);
    }
    println!("{table}\n");
}

async fn behind_a_blocker(
    server: &Server,
    protocol: Protocol,
    connection: &mut Connection,
) -> (Spread, usize) {
    let (mut delay, mut other) = (Spread::default(), 0);
    for _ in 0..100 {
        let mut blocking = Connection::open(server, protocol).await;
        let blocker = tokio::spawn(async move { blocking.infer(BLOCKER.name, Limit::Slo).await });
        sleep(Duration::from_millis(10)).await;
        let sent = Instant::now();
        match connection.infer(MODEL.name, Limit::Parameter(LONG)).await {
            Answer::Expired => delay.add_ms(sent.elapsed().as_secs_f64() * 1e3 - LAST_CHANCE_MS),
            _ => other += 1,
        }
        let blocked = blocker.await.expect("the blocker's task");
        assert!(matches!(blocked, Answer::Result { .. }), "{blocked:?}");
    }
    (delay, other)
}

fn row(table: &mut comfy_table::Table, case: String, knowable: &str, mut delay: Spread, other: usize) {
    let n = delay.len().to_string();
    let [p50, p99, max] = delay.shares([0.5, 0.99, 1.0]);
    table.add_row([case, knowable.to_owned(), n, p50, p99, max, other.to_string()]);
}
