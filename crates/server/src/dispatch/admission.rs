//! How much may be in the server at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use downbeat_oip::{Failure, Reason};

/// Counts the bytes of the requests that are in the server, and lets no more in than it was told to.
#[derive(Clone, Debug)]
pub(crate) struct Admission {
    bytes: Arc<AtomicU64>,
    bytes_max: u64,
}

/// A request's place in the server, given back when dropped.
#[derive(Debug)]
pub(crate) struct Permit {
    bytes: Arc<AtomicU64>,
    held: u64,
}

impl Admission {
    pub(crate) fn new(bytes_max: u64) -> Admission {
        Admission { bytes: Arc::default(), bytes_max }
    }

    pub(crate) fn admit(&self, bytes: u64) -> Result<Permit, Failure> {
        let held = self.bytes.fetch_add(bytes, Ordering::Relaxed) + bytes;
        let permit = Permit { bytes: Arc::clone(&self.bytes), held: bytes };
        if held > self.bytes_max {
            let message =
                format!("the server holds {} MiB of waiting tensors, its limit", self.bytes_max >> 20);
            return Err(Failure::new(Reason::Overloaded, message));
        }
        Ok(permit)
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.bytes.fetch_sub(self.held, Ordering::Relaxed);
    }
}
