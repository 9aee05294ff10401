//! Threads without which the server cannot go on.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread;

/// The process's exit code where one of its own parts has failed (EX_SOFTWARE).
const EXIT_BUG: i32 = 70;

/// Starts a thread that must not end by a panic. Where it does, the process ends, so that whoever started it starts it
/// again: a server that looks ready and answers nothing is worse than none.
pub(crate) fn spawn_vital(name: &'static str, run: impl FnOnce() + Send + 'static) -> io::Result<()> {
    let run = move || {
        if catch_unwind(AssertUnwindSafe(run)).is_err() {
            end_after_panic(name);
        }
    };
    thread::Builder::new().name(name.to_owned()).spawn(run).map(drop)
}

/// Ends the process, because a thread has panicked without which it cannot go on.
pub(crate) fn end_after_panic(name: &str) {
    tracing::error!("the thread {name} has panicked, and nothing works without it: the server ends");
    std::process::exit(EXIT_BUG);
}
