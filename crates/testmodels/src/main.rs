//! Writes the test models as a model repository.

use std::path::PathBuf;
use std::process::ExitCode;

#[expect(clippy::print_stderr, clippy::print_stdout, reason = "a command talks to its user")]
fn main() -> ExitCode {
    let Some(directory) = std::env::args_os().nth(1).map(PathBuf::from) else {
        eprintln!("usage: downbeat-testmodels DIR");
        return ExitCode::from(2);
    };
    match downbeat_testmodels::write_repository(&directory) {
        Ok(()) => {
            println!("{}", directory.display());
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("cannot write {}: {error}", directory.display());
            ExitCode::FAILURE
        }
    }
}
