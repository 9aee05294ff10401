//! How much may be in the server at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use downbeat_oip::{Failure, Reason};

/// Counts the bytes of the requests that are in the server, and lets no more in than it was told to: bodies while they
/// come in, then the tensors that were made of them.
#[derive(Clone, Debug)]
pub struct Admission {
    bytes: Arc<AtomicU64>,
    bytes_max: u64,
}

/// A request's place in the server, given back when dropped.
#[derive(Debug)]
pub(crate) struct Permit {
    admission: Admission,
    held: u64,
}

impl Admission {
    /// Lets in so many bytes at once.
    pub fn new(bytes_max: u64) -> Admission {
        Admission { bytes: Arc::default(), bytes_max }
    }

    pub(crate) fn admit(&self, bytes: u64) -> Result<Permit, Failure> {
        let mut permit = self.permit();
        permit.hold(bytes)?;
        Ok(permit)
    }

    /// A place that takes no room yet.
    pub(crate) fn permit(&self) -> Permit {
        Permit { admission: self.clone(), held: 0 }
    }
}

impl Permit {
    /// Takes room for so many bytes instead of what it had. Where there is none, it keeps what it had.
    pub(crate) fn hold(&mut self, bytes: u64) -> Result<(), Failure> {
        let Admission { bytes: all, bytes_max } = &self.admission;
        if bytes <= self.held {
            all.fetch_sub(self.held - bytes, Ordering::Relaxed);
        } else {
            let more = bytes - self.held;
            if all.fetch_add(more, Ordering::Relaxed).saturating_add(more) > *bytes_max {
                all.fetch_sub(more, Ordering::Relaxed);
                let limit = bytes_max >> 20;
                let message =
                    format!("the server holds {limit} MiB of requests, its limit (pending_max_mib)");
                return Err(Failure::new(Reason::Overloaded, message));
            }
        }
        self.held = bytes;
        Ok(())
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.admission.bytes.fetch_sub(self.held, Ordering::Relaxed);
    }
}
