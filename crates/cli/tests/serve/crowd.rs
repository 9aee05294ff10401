//! Many devices, many clients, idle and slow ones.

use std::thread;

use crate::client::send;
use crate::models::{Emulated, Models, QUICK};
use crate::server::Server;

#[test]
fn sixty_four_devices_serve_many_clients() {
    let names = ["a", "b", "c", "d"];
    let model = Emulated { beta_ms: 20.0, max_batch: 4, ..QUICK };
    let models = names.iter().fold(Models::new(), |models, name| models.and(name, model));
    let server = Server::start(&models, &["--device", "emulated:64"]);
    assert_eq!(server.metric("downbeat_device_up", &[]), 64.0);
    thread::scope(|scope| {
        for client in 0..24 {
            let server = &server;
            scope.spawn(move || {
                for round in 0..20 {
                    let answer = server.infer(names[(client + round) % names.len()]);
                    assert_eq!(answer.status, 200, "{answer:?}");
                }
            });
        }
    });
    assert_eq!(server.metric("nv_inference_request_success", &[]), 480.0);
    assert_eq!(server.children().len(), 1, "one process owns all emulated devices");
}

#[test]
fn idle_and_slow_connections_hinder_nobody() {
    let server = Server::start(&Models::with("quick", QUICK), &["--device", "emulated:1"]);
    let beginnings =
        ["", "POST /v2/models/quick/infer HTTP/1.1\r\nhost: t\r\ncontent-length: 1000\r\n\r\n{", "GE"];
    let idle: Vec<_> = (0..300).map(|index| send(server.http, beginnings[index % 3])).collect();
    let _idle_elsewhere: Vec<_> = (0..50).map(|_| send(server.grpc, "PRI * HT")).collect();
    for _ in 0..20 {
        assert_eq!(server.infer("quick").status, 200);
    }
    drop(idle);
    assert_eq!(server.infer("quick").status, 200);
}

#[test]
fn strangers_on_the_port_for_workers_are_turned_away() {
    let server = Server::start(&Models::with("quick", QUICK), &["--device", "emulated:1"]);
    let _silent = send(server.workers, "");
    let _nonsense = send(server.workers, "GET / HTTP/1.1\r\nhost: t\r\n\r\n");
    let _huge = send(server.workers, "\u{1}\u{1}\u{1}\u{7f}\u{7f}\u{7f}\u{7f}\u{7f}\u{7f}\u{7f}\u{7f}\u{7f}");
    server.process.await_line("a worker could not be taken in");
    assert_eq!(server.infer("quick").status, 200);
    assert_eq!(server.metric("downbeat_device_up", &[]), 1.0);
}
