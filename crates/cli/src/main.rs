//! The `downbeat` command: arguments, output and progress; no logic of its own.

mod goodput;
mod output;
mod simulate;

use std::io::{self, Write};
use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Serves many DNN models inside their latency objectives, on as few GPUs as possible.
#[derive(Parser)]
#[command(name = "downbeat", version, propagate_version = true, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Simulate(simulate::Arguments),
    Goodput(goodput::Arguments),
}

fn main() -> ExitCode {
    let result = match Cli::parse().command {
        Command::Simulate(arguments) => simulate::run(&arguments),
        Command::Goodput(arguments) => goodput::run(&arguments),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        // Whoever read our output has seen enough: `downbeat ... | head` is not an error.
        Err(error) if is_closed_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            // Nothing can be done if even this cannot be written.
            let _ = writeln!(io::stderr(), "error: {error:#}");
            ExitCode::from(2)
        }
    }
}

fn is_closed_pipe(error: &anyhow::Error) -> bool {
    error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}
