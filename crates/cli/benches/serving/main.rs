//! `make bench-deadlines` and `make bench-throughput`: the server as a whole, as its clients see it.
//!
//! Starts the binary with emulated devices, which take exactly l(b), so that whatever a request takes beyond that is
//! the server's doing (and this program's: clients and server share the machine). Parts can be asked for by name:
//! `hopeless`, `feasible`, `overhead`, `throughput`.

#![allow(clippy::print_stdout, reason = "its output is what a benchmark is for")]
#![allow(clippy::disallowed_types, clippy::disallowed_methods, reason = "it measures real time")]

mod client;
mod cpu;
mod feasible;
mod hopeless;
mod overhead;
#[path = "../../tests/metrics/server.rs"]
mod server;
mod spread;
mod throughput;

use comfy_table::{CellAlignment, ContentArrangement, Table, presets};

const PARTS: [&str; 4] = ["hopeless", "feasible", "overhead", "throughput"];

#[tokio::main]
async fn main() {
    // Cargo passes `--bench` on.
    let words: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with("--")).collect();
    if let Some(word) = words.iter().find(|word| !PARTS.contains(&word.as_str())) {
        println!("there is no part {word:?}; there are {}", PARTS.join(", "));
        std::process::exit(2);
    }
    let asked = |part: &str| words.is_empty() || words.iter().any(|word| word == part);
    if asked("hopeless") {
        hopeless::print().await;
    }
    if asked("feasible") {
        feasible::print().await;
    }
    if asked("overhead") {
        overhead::print().await;
    }
    if asked("throughput") {
        throughput::print().await;
    }
}

/// A table whose first column is text and whose others are numbers.
fn table(header: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(header);
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}
