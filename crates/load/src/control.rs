//! How a run is stopped from outside.

#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Stops runs before their end. Copies are about the same runs.
#[derive(Clone, Debug, Default)]
pub struct Control {
    flags: Arc<Flags>,
    /// A run within these: it ends with them, and they go on without it.
    outer: Option<Arc<Flags>>,
}

#[derive(Debug, Default)]
struct Flags {
    stopped: AtomicBool,
    abandoned: AtomicBool,
}

impl Control {
    /// No more requests are sent; answers are waited for. The second time they are not.
    pub fn stop(&self) {
        if self.flags.stopped.swap(true, Ordering::Relaxed) {
            self.flags.abandoned.store(true, Ordering::Relaxed);
        }
    }

    /// Whether no more requests are to be sent.
    pub fn is_stopped(&self) -> bool {
        self.any(|flags| &flags.stopped)
    }

    /// Whether answers are not to be waited for.
    pub fn is_abandoned(&self) -> bool {
        self.any(|flags| &flags.abandoned)
    }

    /// A control that stops with this one, and can be stopped alone.
    pub(crate) fn inner(&self) -> Control {
        Control { flags: Arc::default(), outer: Some(Arc::clone(&self.flags)) }
    }

    fn any(&self, flag: impl Fn(&Flags) -> &AtomicBool) -> bool {
        let set = |flags: &Arc<Flags>| flag(flags).load(Ordering::Relaxed);
        set(&self.flags) || self.outer.as_ref().is_some_and(set)
    }
}
