//! Ctrl-C ends a search, not the program.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

/// Whether the user has asked to stop.
#[derive(Clone)]
pub(super) struct Stop(Arc<AtomicBool>);

impl Stop {
    /// Listens for Ctrl-C, on a thread of its own. A second one ends the program as usual.
    pub(super) fn on_interrupt() -> Stop {
        let asked = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&asked);
        thread::spawn(move || {
            // Without a runtime Ctrl-C does what it does to every program.
            let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() else {
                return;
            };
            runtime.block_on(async {
                if tokio::signal::ctrl_c().await.is_ok() {
                    told.store(true, Ordering::Relaxed);
                }
                if tokio::signal::ctrl_c().await.is_ok() {
                    std::process::exit(130);
                }
            });
        });
        Stop(asked)
    }

    pub(super) fn is_asked(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
