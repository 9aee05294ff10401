//! The `downbeat` command: arguments, output and progress; no logic of its own.

mod autoscale;
mod bench;
mod goodput;
mod load;
mod log;
mod output;
mod plan;
mod profile;
mod serve;
mod simulate;
mod transition;
mod worker;

use std::io::{self, Write};
use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

/// Serves many DNN models inside their latency objectives, on as few GPUs as possible.
#[derive(Parser)]
#[command(name = "downbeat", version, propagate_version = true, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Serve(Box<serve::Arguments>),
    Worker(worker::Arguments),
    Profile(profile::Arguments),
    Simulate(simulate::Arguments),
    Goodput(goodput::Arguments),
    Autoscale(autoscale::Arguments),
    Load(Box<load::Arguments>),
    Plan(Box<plan::Arguments>),
    Bench(bench::Arguments),
    Transition(transition::Arguments),
}

fn main() -> ExitCode {
    // The matches tell a flag from an environment variable, which the arguments do not.
    let matches = serve::show_defaults(Cli::command()).mut_subcommands(without_empty_variables).get_matches();
    let cli = Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    let result = match cli.command {
        Command::Serve(arguments) => match matches.subcommand() {
            Some((_, matches)) => serve::run(*arguments, matches),
            None => Ok(()),
        },
        Command::Worker(arguments) => worker::run(arguments),
        Command::Profile(arguments) => profile::run(&arguments),
        Command::Simulate(arguments) => simulate::run(&arguments),
        Command::Goodput(arguments) => goodput::run(&arguments),
        Command::Autoscale(arguments) => autoscale::run(&arguments),
        Command::Load(arguments) => load::run(&arguments),
        Command::Plan(arguments) => plan::run(&arguments),
        Command::Bench(arguments) => bench::run(&arguments),
        Command::Transition(arguments) => transition::run(&arguments),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        // Whoever read our output has seen enough: `downbeat ... | head` is not an error.
        Err(error) if is_closed_pipe(&error) => ExitCode::SUCCESS,
        Err(error) if error.is::<load::NoResult>() => {
            let _ = writeln!(io::stderr(), "error: {error:#}");
            ExitCode::from(1)
        }
        Err(error) => {
            // Nothing can be done if even this cannot be written.
            let _ = writeln!(io::stderr(), "error: {error:#}");
            ExitCode::from(2)
        }
    }
}

/// An environment variable that is empty sets nothing: many tools can empty one, but not remove it.
fn without_empty_variables(command: clap::Command) -> clap::Command {
    command.mut_args(|argument| {
        let value = argument.get_env().and_then(std::env::var_os);
        if value.is_some_and(|value| value.is_empty()) { argument.env(None) } else { argument }
    })
}

fn is_closed_pipe(error: &anyhow::Error) -> bool {
    error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}
