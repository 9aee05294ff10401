//! Leaving a server in good order.

use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use tokio::signal::unix::{SignalKind, signal};

use super::Line;
use crate::link::message::{FromWorker, Leaving};

/// Whether a worker is to leave, and who must be told. All clones are one.
#[derive(Clone, Debug, Default)]
pub struct Departure {
    shared: Arc<(Mutex<State>, Condvar)>,
}

#[derive(Debug, Default)]
struct State {
    wanted: bool,
    /// The way to the server, while there is one.
    line: Option<Line>,
}

impl Departure {
    /// Begins with SIGTERM or SIGINT: the server sends no more batches, the worker finishes those it has, and ends. A
    /// second signal ends the process at once.
    pub fn on_signal() -> io::Result<Departure> {
        let departure = Departure::default();
        let told = departure.clone();
        on_each_signal(move |count| {
            if count > 1 {
                tracing::warn!("a second signal: ending at once");
                std::process::exit(1);
            }
            told.begin();
        })?;
        Ok(departure)
    }

    /// Never: for a worker whose server ends it. Whoever ends all processes of a service at once means that the server
    /// is to drain, for which it needs its workers.
    pub fn left_to_server() -> io::Result<Departure> {
        on_each_signal(|_| {})?;
        Ok(Departure::default())
    }

    /// Tells the server, if there is one.
    fn begin(&self) {
        let mut state = self.lock();
        state.wanted = true;
        if let Some(line) = &state.line {
            tracing::info!("leaving the server: finishing the batches that are here");
            line.say(FromWorker::Leaving(Leaving {}));
        }
        self.shared.1.notify_all();
    }

    pub(super) fn is_wanted(&self) -> bool {
        self.lock().wanted
    }

    /// The way to the server is there, or not any more.
    pub(super) fn connected(&self, line: Option<Line>) {
        let mut state = self.lock();
        if let Some(line) = line.as_ref().filter(|_| state.wanted) {
            line.say(FromWorker::Leaving(Leaving {}));
        }
        state.line = line;
    }

    /// Waits, unless and until the worker is to leave.
    pub(super) fn pause(&self, pause: Duration) {
        let state = self.lock();
        let waited = self.shared.1.wait_timeout_while(state, pause, |state| !state.wanted);
        drop(waited.unwrap_or_else(PoisonError::into_inner));
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.shared.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Calls `then` with 1, 2, ... from a thread of its own.
fn on_each_signal(then: impl Fn(u32) + Send + 'static) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    let (mut terminate, mut interrupt) = {
        let _inside = runtime.enter();
        (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?)
    };
    let listen = move || {
        runtime.block_on(async {
            for count in 1.. {
                tokio::select! {
                    _ = terminate.recv() => {}
                    _ = interrupt.recv() => {}
                }
                then(count);
            }
        });
    };
    thread::Builder::new().name("signals".to_owned()).spawn(listen).map(drop)
}
